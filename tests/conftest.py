"""What all tests stand on."""

from __future__ import annotations

import signal

# A shell starts a job in the background with interrupts ignored, and so would be every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
