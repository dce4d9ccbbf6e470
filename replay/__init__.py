"""Observe: exchange values, wire decoding, backends and the sending edge."""
