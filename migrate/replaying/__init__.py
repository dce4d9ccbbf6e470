"""Captured requests to baseline and candidate again, on a schedule.

Two processes, as in the gateway and for the same reason: the sender has nothing to do but send, note times and keep bytes;
the keeper reads the answers, redacts, and writes. ``plan`` says what a replay does, ``prepare`` makes calls of captured
requests, ``pace`` and ``spending`` hold it to the limits of a backend, ``sender`` sends, ``link`` and ``keeper`` are the two
ends of what lies between.
"""
