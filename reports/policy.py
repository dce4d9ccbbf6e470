"""The policy: the promises a candidate has to keep, set before anybody looks at the data.

A policy is a value. It is the ``policy:`` section of a configuration, is stored with each run, and together with the
observations and the seed it determines the verdict.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import re2
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo

from replay.units import parse_duration, parse_share

WRITTEN = "written"
"""The context in which what a person wrote is validated: there ``24`` is no duration and ``1`` no share."""


def _as_written(value: object, info: ValidationInfo) -> object:
    """YAML reads ``24`` as a number; to whoever wrote it, it is text without a unit."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number and info.context == WRITTEN else value


Duration = Annotated[float, BeforeValidator(parse_duration), BeforeValidator(_as_written)]
"""Seconds; written ``50ms``, ``30s``, ``24h``."""
Share = Annotated[float, BeforeValidator(parse_share), BeforeValidator(_as_written)]
"""0 to 1; written ``10 %`` or ``0.1``."""


SLOW_BY_DEFINITION = 0.01
"""Share of a backend's requests that are slower than its own p99."""


class Section(BaseModel):
    """A part of a configuration: immutable, and it refuses words it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ShareRule(Section):
    """A share of requests may be worse by at most ``margin`` (percentage points)."""

    margin: Share = Field(lt=1)
    """In percentage points."""
    required: bool = True
    """GO and ROLLBACK rest on it; else it is only shown. So in every rule."""


class LimitRule(Section):
    """A share of candidate requests may be at most ``limit``, which is above the 1 % of a baseline against its own p99."""

    limit: Share = Field(gt=SLOW_BY_DEFINITION, lt=1)
    """Of the candidate."""
    required: bool = True


class LatencyRule(Section):
    """Latency may be worse by at most ``margin`` seconds, or by ``or`` of the baseline's, whichever is larger."""

    margin: Duration
    """By how much it may be slower."""
    relative: Share | None = Field(default=None, alias="or")
    """Of the baseline's, where that is more."""
    required: bool = True


class CostRule(Section):
    """What a request costs may grow by at most ``margin`` of what it costs at the baseline."""

    margin: Share
    """Of the baseline's cost."""
    required: bool = False


class DisagreementRule(Section):
    """Answers may differ by at most ``margin`` above the noise floor; ``similarity`` is the cosine floor of a text pair."""

    margin: Share = Field(default=0.03, lt=1)
    """Above the noise floor, in percentage points."""
    similarity: float = Field(default=0.75, ge=-1, le=1)
    """Cosine from which on two texts may count as reworded."""
    required: bool = True


def linear(pattern: str) -> Any:
    """The pattern compiled by a matcher whose time is linear in the text. Raises ValueError when it does not take it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args else "unknown"
        raise ValueError(
            f"{pattern!r} is no regular expression of RE2's ({reason}); it has no look-around and no back-references"
        ) from None


def _one_group(pattern: str) -> str:
    groups = linear(pattern).groups
    if groups != 1:
        raise ValueError(
            f"{pattern!r} has {groups} groups; put one pair of parentheses around what is taken, such as "
            "'Answer: (\\w+)', and write others as (?:…)"
        )
    return pattern


def keys(path: str) -> tuple[str, ...]:
    """The steps of ``$.items[0].total``, which may be written ``items.0.total`` too; ``()`` for ``$``, the whole value."""
    dotted = path.removeprefix("$").replace("[", ".").replace("]", "")
    steps = dotted.removeprefix(".").split(".") if dotted else []
    if not path or not all(steps) or any(mark in path for mark in "*?@'\"(,: "):
        raise ValueError(
            f"{path!r} is no path of keys and places joined by dots, such as result.items.0.total, or $ for the whole value"
        )
    return tuple(steps)


def _path(path: str) -> str:
    keys(path)
    return path


class Extractor(Section):
    """What decides in the answers to some requests, and how two of them are compared; the text around it does not."""

    route: str | None = Field(default=None, min_length=1)
    """The request's path, without its query; ``*`` stands for anything. ``None``: any."""
    model: str | None = Field(default=None, min_length=1)
    """The model that the request names, likewise."""
    take: Literal["last_number", "choice", "label", "code_fence"] | None = None
    """What is known how to find."""
    regex: Annotated[str, AfterValidator(_one_group)] | None = None
    """What its one group matches first."""
    path: Annotated[str, AfterValidator(_path)] | None = Field(default=None, alias="json")
    """A value within the answer's JSON, see ``keys``."""
    kind: Literal["number", "text", "labels", "json"] | None = Field(default=None, alias="as")
    """How what ``regex`` or ``json`` takes is compared; ``None``: as text, or as JSON. ``take`` knows by itself."""
    within: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """How far apart two numbers may be and count as equal."""

    @model_validator(mode="after")
    def _whole(self) -> Extractor:
        if [self.take, self.regex, self.path].count(None) != 2:
            raise ValueError("give one of take, regex and json: what to take out of the answer")
        if self.take and self.kind:
            raise ValueError(f"take: {self.take} knows how it is compared; as: goes with regex and json")
        if self.within and self.compared != "number":
            raise ValueError("within is a distance of numbers; it goes with take: last_number and as: number")
        return self

    @property
    def compared(self) -> str:
        """As what: ``number``, ``text``, ``labels``, ``json``, or ``code``."""
        if self.take is not None:
            return {"last_number": "number", "code_fence": "code"}.get(self.take, "text")
        return self.kind or ("text" if self.regex else "json")


class BreakerPolicy(Section):
    """After ``failures`` in a row copies stop; after ``recovery`` one may try again."""

    failures: int = Field(default=5, ge=1)
    """In a row."""
    recovery: Duration = 60.0
    """Until one copy may try again."""


def _with_margin(field: FieldInfo | None, given: Any) -> Any:
    default = field.default if field is not None else None
    if not isinstance(default, ShareRule | LimitRule | LatencyRule | CostRule) or not isinstance(given, dict):
        return given
    kept = default.model_dump(by_alias=True)
    if isinstance(default, LatencyRule):
        kept["margin"] = f"{default.margin}s"  # as it would be written
    return given if given.keys() & {"margin", "limit", "relative"} else kept | given


class Policy(Section):
    """All promises, with the defaults the report prints.

    ``alpha`` is the chance of a wrong ROLLBACK over the whole run, and of a wrong GO at each margin.
    """

    minimum_span: Duration = 86_400.0
    """From the first to the last pair, for GO: a daily cycle."""
    minimum_pairs: int = Field(default=1_000, ge=1)
    """That both answered, for GO."""
    warmup: Duration = 900.0
    """Of the candidate's start, not counted."""
    valid_for: Duration = Field(default=604_800.0, gt=0, le=315_360_000.0)
    """From the time of judging (the end of the run, when it has ended) until the verdict expires."""
    analysis: Literal["anytime", "fixed"] = "anytime"
    """``anytime``: evidence that holds at every look. ``fixed``: one exact analysis at the end of a run whose size was known
    before, such as a replay; until then no rule says anything."""
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Chance of a wrong ROLLBACK over the whole run, and of a wrong GO at each margin."""
    minimum_coverage: Share = 0.98
    """Of its pairs that a rule has to read."""
    trim_blocks: int = Field(default=0, ge=0, le=288)
    """ROLLBACK has to hold without the candidate's worst blocks, this many (of 5 minutes, or a 288th of a shorter
    ``minimum_span``), a day's at most: an incident is not a trend. A rehearsal trims none."""
    errors: ShareRule = ShareRule(margin=0.01)
    """Requests that failed."""
    timeouts: ShareRule = ShareRule(margin=0.05)
    """Requests that did not end in time."""
    slow_share: LimitRule = LimitRule(limit=0.05)
    """Requests slower than the baseline's p99."""
    latency_median: LatencyRule = LatencyRule(margin=0.05)
    """End to end."""
    latency_p95: LatencyRule = LatencyRule(margin=0.05, relative=0.10)
    """Its tail."""
    ttft_median: LatencyRule = LatencyRule(margin=0.05)
    """To the first token, of streams."""
    ttft_p95: LatencyRule = LatencyRule(margin=0.05, relative=0.10)
    """Its tail."""
    itl_median: LatencyRule = LatencyRule(margin=0.01, relative=0.10, required=False)
    """Of the p95 of each answer's gaps."""
    itl_p95: LatencyRule = LatencyRule(margin=0.01, relative=0.10, required=False)
    """Its tail."""
    tpot_median: LatencyRule = LatencyRule(margin=0.005, relative=0.10)
    """For each token after the first."""
    tpot_p95: LatencyRule = LatencyRule(margin=0.005, relative=0.10, required=False)
    """Its tail."""
    disagreement: DisagreementRule = DisagreementRule()
    """Answers that would serve a user differently."""
    format_breaks: ShareRule = ShareRule(margin=0.01)
    """Answers that are not the JSON that was asked for."""
    refusals: ShareRule = ShareRule(margin=0.01)
    """Answers that decline."""
    truncations: ShareRule = ShareRule(margin=0.01)
    """Answers cut off at their limit."""
    tool_calls: ShareRule = ShareRule(margin=0.01)
    """Tool calls no longer made."""
    cost: CostRule = CostRule(margin=0.10)
    """Of a request."""
    compare: tuple[Extractor, ...] = ()
    """What decides by task; the first entry that matches a request is used, and without one the whole answer counts."""
    circuit_breaker: BreakerPolicy = BreakerPolicy()
    """When copies to a failing candidate stop."""
    rehearsal: bool = False
    """A shortened policy for demonstrations; every report says so."""

    @model_validator(mode="before")
    @classmethod
    def _margins(cls, given: Any) -> Any:
        """A rule without a margin of its own, such as ``errors: {required: false}``, keeps the default's."""
        if not isinstance(given, dict):
            return given
        return {name: _with_margin(cls.model_fields.get(name), rule) for name, rule in given.items()}

    @model_validator(mode="after")
    def _reachable(self) -> Policy:
        for at, entry in enumerate(self.compare[:-1]):
            if entry.route is entry.model is None:
                raise ValueError(
                    f"compare.{at} takes every answer, so the entries behind it are never used; give it a route or a model, "
                    "or put it last"
                )
        return self
