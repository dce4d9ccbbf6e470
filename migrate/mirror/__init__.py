"""The mirror process: copies to the candidate, baseline repeats, decoding, redaction and the store."""
