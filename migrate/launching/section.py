"""What a configuration may say of a server that ``migrate launch`` starts."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Any

from pydantic import Field, field_validator, model_validator

from migrate.sensitive import hide_keys
from migrate.variables import Variable
from reports.policy import Duration, Section

Value = bool | int | float | str | list[bool | int | float | str] | dict[str, Any]
"""Of one option: ``true`` for a switch, a list for several values, a mapping for JSON."""

_OURS = {
    "host": "url: says where it listens",
    "port": "url: says where it listens",
    "model": "launch.model: names it",
    "api_key": "api_key_env: names the environment variable that holds it",
    "hf_token": "write secrets: [HF_TOKEN] and export it",
}
SECRET = re.compile(r"(?:^|[_-])(?:token|(?:api)?key|secret|password|passwd)$", re.IGNORECASE)
"""What a variable or option is called that holds one, whatever the value looks like."""


def _option(word: str) -> str:
    """The name of an option; empty for a word that is none."""
    return word.lstrip("-").partition("=")[0] if word.startswith("-") else ""


class Launch(Section):
    """How a backend is started here. Where it listens is its ``url``, how it is called its ``model``."""

    model: str = Field(min_length=1)
    """A Hugging Face id, or the directory of a checkpoint."""
    executable: str | None = Field(default=None, min_length=1)
    """``vllm`` or ``trtllm-serve`` of the server's own environment; ``None``: the one on PATH."""
    image: str | None = Field(default=None, min_length=1)
    """For ``--docker`` and ``--kubernetes``."""
    args: dict[str, Value] = Field(default_factory=dict)
    """Options by name, without the dashes. A name that the server does not know is refused."""
    unchecked: tuple[str, ...] = ()
    """Words that go to the server as they are, for a version that knows more than ours does."""
    env: dict[Variable, str] = Field(default_factory=dict)
    """Set for the server."""
    secrets: tuple[Variable, ...] = ()
    """Environment variables with secrets, such as HF_TOKEN: by name, so that no command or manifest holds one."""
    gpus: int | None = Field(default=None, ge=0, le=1024)
    """For a container; ``None``: as many as the parallel sizes say."""
    ready_within: Duration = 1800.0
    """Until it answers; then it is stopped."""

    @field_validator("args", mode="before")
    @classmethod
    def _given(cls, args: Any) -> Any:
        for name, value in args.items() if isinstance(args, dict) else ():
            if value is None:
                raise ValueError(f"{name} has no value: true for a switch; leave it out for the server's own")
        return args

    @field_validator("args")
    @classmethod
    def _named_elsewhere(cls, args: dict[str, Value]) -> dict[str, Value]:
        for name in args:
            if name.startswith("-"):
                raise ValueError(f"{name!r} is written without the dashes: {name.lstrip('-')}")
            if instead := _OURS.get(name.replace("-", "_")):
                raise ValueError(f"{name} is not given here: {instead}")
        return args

    @field_validator("env", mode="before")
    @classmethod
    def _texts(cls, env: Any) -> Any:
        """``1`` is as good as ``"1"``."""
        plain = (int, float)
        return (
            {k: str(v) if isinstance(v, plain) and not isinstance(v, bool) else v for k, v in env.items()}
            if isinstance(env, dict)
            else env
        )

    @model_validator(mode="after")
    def _no_secrets(self) -> Launch:
        # an option may have its value in the word behind it
        words = zip_longest(self.unchecked, self.unchecked[1:], fillvalue="")
        said = [("unchecked", f"{word} {value}", _option(word)) for word, value in words]
        said += [
            (name, f"{name}={value}", name if isinstance(value, str) else "")
            for name, value in self.args.items()
        ]
        said += [(name, f"{name}={value}", name) for name, value in self.env.items()]
        for name, text, holder in said:
            if "\0" in text:
                raise ValueError(f"{name} holds a NUL character, which no command can have")
            if SECRET.search(holder) or hide_keys(text, lambda *_: "") != text:
                raise ValueError(
                    f"{name} looks like a secret: export it, and name the variable under secrets: or api_key_env:"
                )
        return self
