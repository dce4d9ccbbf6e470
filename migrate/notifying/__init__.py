"""Telling people of a verdict: what is news, to whom it goes, and the judgement that is made while a run goes on."""
