"""Servers that we start: the command from the configuration, the process, its early death, its end."""
