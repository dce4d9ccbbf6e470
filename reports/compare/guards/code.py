"""Fenced code and shell commands: what a reader would copy and run.

Nothing here runs or understands a program. White space, comments, quotes and how a program is cut into blocks do not
count. A program that differs in a few places is another program; one written wholly otherwise may do the same, and is
a WARN that leaves the decision to similarity.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reports.compare.model import both, excerpt, odd_one
from reports.compare.normal import Code, Plain
from reports.judgement import Finding, Severity

_SHELLS = frozenset("sh bash zsh shell console terminal cmd bat powershell ps1 shellsession".split())  # noqa: SIM905
_PROMPT = re.compile(r"\A\s*(?:[$%#] |(?:PS )?[A-Z]:\\[^>]{0,80}> ?)")
_COMMENT = re.compile(r"(?:\A|(?<=\s))(?:#(?=[\s!]|\Z)|//|--\s).*\Z|/\*.{0,2000}?\*/")
_TOKEN = re.compile(r"\w+|[<>=!+*/&|:.-]{2}|[^\w\s]")
_NAME = re.compile(r"[^\W\d]\w*\Z")
_CLOSING = frozenset(";,")
_ALIKE = 0.8
"""Share of common tokens from which two programs are one that was changed in a few places."""
_MAIN = 0.5
"""Share of an answer from which its code is the answer."""
_SHOWN = 8
_TOKENS = 20_000
"""Tokens of a program that are looked at."""

Line = tuple[int, tuple[str, ...]]
"""Depth of indentation, and tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    """All the code of one answer."""

    lines: tuple[Line, ...]
    commands: tuple[str, ...]


def guard_code(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK for other commands, for a program changed in a few places, and for an answer whose code has gone; else WARN."""
    if not (baseline.code or candidate.code):
        return None
    side = odd_one(bool(baseline.code), bool(candidate.code))
    if side:
        return _alone(side, baseline, candidate)
    old, new = _program(baseline.code), _program(candidate.code)
    return _commands(old, new) or _programs(old, new)


def _alone(side: str, baseline: Plain, candidate: Plain) -> Finding | None:
    """Code without a fence on the other side is the same code."""
    has, lacks = (baseline, candidate) if side == "baseline" else (candidate, baseline)
    code = "".join(line for block in has.code for line in block.lines)
    bare = "".join(code.split())
    if bare in "".join(lacks.text.split()):
        return None
    severity = Severity.BLOCK if len(bare) >= _MAIN * len("".join(has.text.split())) else Severity.WARN
    message = f"code stands on the {side}'s side only: {excerpt(code.strip(), 80)}"
    return _finding("text.code", severity, message, both(baseline.text, candidate.text), side)


def _commands(old: _Program, new: _Program) -> Finding | None:
    was, now = frozenset(old.commands), frozenset(new.commands)
    gone, come = (
        [one for one in old.commands if one not in now],
        [one for one in new.commands if one not in was],
    )
    if not (gone or come):
        return None
    severity = Severity.BLOCK if gone and come else Severity.WARN
    message = f"commands differ: the baseline has {_list(gone)}, the candidate {_list(come)}"
    return _finding("text.command", severity, message, both(_list(gone), _list(come)))


def _programs(old: _Program, new: _Program) -> Finding | None:
    if old.lines == new.lines:
        return None
    gone, come = _only(old.lines, new.lines), _only(new.lines, old.lines)
    evidence = both(_text(gone), _text(come))
    if not (gone or come):
        return _finding("text.code", Severity.WARN, "the lines of code stand in another order", evidence)
    was, now = _tokens(old.lines), _tokens(new.lines)
    if was == now:
        message = f"the code is indented otherwise: {_text(gone or come)}"
        return _finding("text.code", Severity.BLOCK, message, evidence)
    if _renamed(was, now):
        return _finding("text.code", Severity.WARN, "names in the code differ", evidence)
    common = sum((Counter(was) & Counter(now)).values())
    if common >= _ALIKE * max(len(was), len(now)):
        lines = max(len(gone), len(come))
        message = f"the code differs in {lines} line{'s' * (lines > 1)}: {_text(gone or come)}"
        return _finding("text.code", Severity.BLOCK, message, evidence)
    return _finding("text.code", Severity.WARN, "the code is written otherwise", evidence)


def _program(blocks: Iterable[Code]) -> _Program:
    lines: list[str] = []
    commands: list[str] = []
    for block in blocks:
        if block.language in _SHELLS or (not block.language and _all_prompts(block.lines)):
            commands += _typed(block.lines)
        else:
            lines += block.lines
    return _Program(lines=tuple(_read(lines)), commands=tuple(dict.fromkeys(commands)))


def _all_prompts(lines: Sequence[str]) -> bool:
    first = next((line for line in lines if line.strip()), "")
    return first.lstrip().startswith("$ ")


def _typed(lines: Sequence[str]) -> Iterator[str]:
    """What is typed: lines behind a prompt where there are prompts, without them all lines but comments."""
    prompts = any(line.lstrip().startswith(("$ ", "% ")) for line in lines)
    for line in lines:
        prompt = _PROMPT.match(line)
        if prompts and not prompt:
            continue
        typed = " ".join(_COMMENT.sub("", line[prompt.end() :] if prompt and prompts else line).split())
        if typed:
            yield typed.replace('"', "'")


def _read(lines: Sequence[str]) -> Iterator[Line]:
    """Lines as tokens, with their depth: how many spaces a level takes does not count, nor any depth beside braces."""
    depths: list[int] = []
    braces = any(line.rstrip().endswith("{") for line in lines)
    for line in lines:
        tokens = _TOKEN.findall(_COMMENT.sub("", line).replace('"', "'"))
        while tokens and tokens[-1] in _CLOSING:
            tokens.pop()
        if not tokens:
            continue
        indent = 0 if braces else len(line) - len(line.lstrip())
        while depths and depths[-1] >= indent:
            depths.pop()
        depths.append(indent)
        yield len(depths), tuple(tokens)


def _only(some: Sequence[Line], others: Sequence[Line]) -> list[Line]:
    return list((Counter(some) - Counter(others)).elements())


def _tokens(lines: Iterable[Line]) -> list[str]:
    return [token for _, tokens in lines for token in tokens][:_TOKENS]


def _renamed(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the one becomes the other by giving each name another, one for one."""
    if len(old) != len(new):
        return False
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    for was, now in zip(old, new, strict=True):
        if was != now and not (_NAME.match(was) and _NAME.match(now)):
            return False
        if there.setdefault(was, now) != now or back.setdefault(now, was) != was:
            return False
    return True


def _text(lines: Iterable[Line]) -> str:
    return excerpt(" / ".join(" ".join(tokens) for _, tokens in lines), 100)


def _list(commands: Sequence[str]) -> str:
    return excerpt("; ".join(commands[:_SHOWN]), 80) or "none of its own"


def _finding(category: str, severity: Severity, message: str, evidence: str, side: str = "pair") -> Finding:
    return Finding(
        comparator="text", category=category, severity=severity, message=message, side=side, evidence=evidence
    )
