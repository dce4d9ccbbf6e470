"""Captured requests to baseline and candidate again, on a schedule.

Three processes: ``feed`` reads ahead what is due and makes it ready, the sender has nothing to do but send, note times and keep
bytes, the keeper reads the answers, redacts, and writes. ``plan`` says what a replay does, ``prepare`` makes calls of captured
requests, ``pace`` holds it to the limits of a backend, ``sender`` sends, ``link`` and ``keeper`` are the two ends of what lies
between, ``alone`` keeps a second replay from the same run.
"""
