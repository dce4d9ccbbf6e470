"""Names of environment variables in a configuration: where a secret was written instead, it is refused and not repeated."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from migrate.sensitive import hide_keys

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9]{20,}")
"""Many providers' keys are so long a mixture of letters and digits, and no name is."""


def variable(name: str) -> str:
    """The name. Raises ValueError, without the value, for what is none or looks like a key."""
    if _NAME.fullmatch(name) is None or _RANDOM.fullmatch(name) or hide_keys(name, lambda *_: "") != name:
        raise ValueError(
            "is no name of an environment variable: export the secret, and write the variable's name here, never the "
            "secret itself"
        )
    return name


Variable = Annotated[str, AfterValidator(variable)]
