"""How often the verdict is wrong, measured: made and resampled runs, the judge and four other judges on the same data."""
