"""The facts of one kind of backend. docs/backends.md says where each comes from, and what was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How one kind of backend is asked, beside the OpenAI interface that all speak. Every key goes as a bearer token."""

    kind: str
    name: str
    """As people call it."""
    owner: str | None = None
    """``owned_by`` in its model list, by which it can be told; ``None``: says nothing of the software."""
    health: str | None = None
    """The route that answers 200 when the server is up; ``None``: it has none."""
    ready: str | None = None
    """The route that answers 200 only after it made a token; ``None``: it has none, and only a request can tell."""
    version: str | None = None
    """The route of ``{"version": …}``; ``None``: it does not tell."""
    metrics: tuple[str, ...] = ()
    """Routes of its Prometheus text, in the order to look; empty: it has none about one server."""
    drained: tuple[str, ...] = ()
    """Routes whose data is gone once it was read: another reader's, asked only where a configuration says so."""
    context: tuple[str, ...] = ()
    """Fields of a model's card that state the longest context, in tokens; empty: the card does not say."""
    lists_models: bool = True
    """Its model list names everything that may be asked for."""
    envelopes: tuple[str, ...] = ("openai",)
    """Shapes of its errors, as ``replay.failures.envelope_of`` names them."""
    refuses_unknown: bool | None = None
    """A field that it does not know is an error; ``None``: by the upstream."""
    checks_model: bool | None = None
    """A model name that it does not have is an error; ``None``: by the upstream."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """By check of ``migrate check``: what to change where the backend fails it."""
