"""Real servers where there is a GPU: what was tested on the CPU or against a dialect, once more against the thing itself."""
