"""The canary's share, in the words of proxies that people have: one file for each, a pure function from the share to its text."""
