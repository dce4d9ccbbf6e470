"""A store's address as it may be shown and kept. Pure, and light enough for an application's process."""

from __future__ import annotations

import re

_USER = re.compile(r"(:/*[^/:@]*):.*@", re.DOTALL)
_PARAMETER = re.compile(r"(?<=[?&])([^=&]*passw?[^=&]*=)[^&]*", re.IGNORECASE)


def shown(url: str) -> str:
    """The address without its password, also of one that is misspelt."""
    return _PARAMETER.sub(r"\1***", _USER.sub(r"\1:***@", url))
