"""A backend for rehearsals and tests: deterministic answers, real pacing, faults planted on purpose."""
