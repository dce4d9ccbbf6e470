"""Measurements that print tables; none of them is part of the installed packages."""
