"""One file a command: it opens, calls one function, translates the result into output and an exit code."""
