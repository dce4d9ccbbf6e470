"""Judge: pair, compare, measure the noise floor, decide and render. Pure functions over observations."""
