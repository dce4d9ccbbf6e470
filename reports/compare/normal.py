"""One spelling for texts that differ in formatting only; what a reader would not call another answer."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u200b\u2060\ufeff\u00ad", None),
        "\u2026": "...",
        "\u00d7": "x",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2260": "!=",
    }
)
"""Quotation marks, primes, dashes and mathematical signs to ASCII; characters without width to nothing."""
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
_NARROW_GROUPED = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_OPENING = re.compile(r"(?<![\w*_])[*_]{1,3}(?=[\w\"'(\[$#-])")
_CLOSING = re.compile(r"(?<=[\w\"')\].,!?:;%])[*_]{1,3}(?![\w*_])")
_PREFIX = re.compile(r"\A\s*(?:#{1,6}\s+|>\s?|[*+•‣◦▪●-]\s+)")
_FENCE = re.compile(r"\A\s*(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*\Z")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\((\w+:[^()\s]{1,1000})\)")
_TEX = re.compile(
    r"\\[()\[\]]|\\(?:boxed|text|mathrm|mathbf)\{([^{}\\]{0,200})\}|\\(times|cdot|leq?|geq?|neq?)(?![a-z])"
)
_TEX_SIGNS = {"times": "x", "cdot": "x", "l": "<=", "g": ">=", "n": "!="}
_TEX_INLINE = re.compile(r"(?<![\w$\\])\$([^$\s](?:[^$\n]{0,200}[^$\s])?)\$(?![\w$])")
_RULE = re.compile(r"\A\s*(?:[-*_]\s*){3,}\Z")
_LABEL = re.compile(r"\A\s*(\d{1,3})[.)]\s+(?=\S)")
_SENTENCE_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|(?<=[\u3002\uff01\uff1f])")
_WORD = re.compile(r"\S+")
_LONGEST_WORD = 1024
_ADDRESS = re.compile(
    r"\b(?:(?:https?|ftp)://|(?=www\.))([^\s<>\"'`()\[\]{}]{3,2000}(?<![.,;:!?*_]))"
    r"|\b([\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})\b",
    re.IGNORECASE,
)
_TRAILING = " \t.!;:,"
_MARKS = re.compile(r"(?<![.,;:!]) ?[.,;:!]++(?=\s|\Z)")
_WORDS = re.compile(r"[^\W_]+")
_QUOTE = str.maketrans('"', "'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A block of fenced code."""

    language: str
    """As the fence names it, in lower case; empty when it does not."""
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A text without its formatting."""

    text: str
    """On one line, code included."""
    sentences: tuple[str, ...]
    """The same in sentences; lines of code are some too."""
    prose: str
    """On one line, without fenced code and addresses."""
    code: tuple[Code, ...]
    links: tuple[str, ...]
    """Addresses of pages and mailboxes in one spelling: no scheme, no "www.", the host in lower case."""
    words: frozenset[str]
    """Letters and digits in a row, in lower case: a quick look at what may be in the text."""
    key: str
    """Equal for texts that differ in formatting only: without the marks that end words and sentences, quotes of one kind."""


def normalise(text: str) -> Plain:
    """Unicode NFC; white space, quotes, dashes, Markdown and TeX marks, grouped digits and closing punctuation levelled.

    Lines of fenced code keep their indentation. Time and memory are linear in the text.
    """
    text = _NARROW_GROUPED.sub("", nfc(_printable(text)).translate(_CHARACTERS))
    lines, prose, code = _lines(text)
    _unnumber(lines, prose)
    sentences = [part for line in lines for part in _split(line)]
    whole = " ".join(sentences).strip(_TRAILING)
    said = " ".join(part for at in prose for part in _split(lines[at])).strip(_TRAILING) if code else whole
    said, links = _unlinked(said)
    key = _MARKS.sub("", whole).translate(_QUOTE)
    words = frozenset(_WORDS.findall(whole.lower()))
    return Plain(
        text=whole, sentences=tuple(sentences), prose=said, code=code, links=links, words=words, key=key
    )


def _lines(text: str) -> tuple[list[str], list[int], tuple[Code, ...]]:
    """The lines without their marks, which of them are prose, and the blocks of code."""
    lines: list[list[str]] = []
    prose: list[int] = []
    code: list[Code] = []
    fence, language, start, flowing = "", "", 0, False
    for line in (*text.splitlines(), None):
        mark = _FENCE.match(line) if line and ("```" in line or "~~~" in line) else None
        if fence and (line is None or (mark and mark[1][:3] == fence)):
            code.append(Code(language=language, lines=tuple(one for (one,) in lines[start:])))
            fence, flowing = "", False
        elif line is None:
            break
        elif fence:
            lines.append([line.rstrip()])
        elif mark:
            fence, language, start = mark[1][:3], mark[2].lower(), len(lines)
        elif not _RULE.match(line):
            plain = _unmarked(line)
            if flowing and plain[:1].islower() and line.lstrip().startswith(plain[0]):
                lines[-1].append(plain)  # a sentence that was broken over lines
            else:
                prose.append(len(lines))
                lines.append([plain])
            flowing = bool(plain)
    return [" ".join(parts) for parts in lines], prose, tuple(code)


def _unlinked(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without its addresses, and these."""
    if not ("@" in text or "://" in text or "www." in text):
        return text, ()
    links = tuple(_address(match) for match in _ADDRESS.finditer(text))
    return (_ADDRESS.sub(" ", text), links) if links else (text, ())


def _address(match: re.Match[str]) -> str:
    if match[2]:
        return match[2].lower()
    host, slash, path = match[1].rstrip("/").partition("/")
    return host.lower().removeprefix("www.") + slash + path


def nfc(text: str) -> str:
    """Unicode NFC, word by word. Words beyond any language's stay as they are: a megabyte of combining marks would
    take hours, for composing is quadratic in their number."""
    return text if text.isascii() else _WORD.sub(_composed, text)


def _composed(match: re.Match[str]) -> str:
    word = match[0]
    return unicodedata.normalize("NFC", word) if len(word) <= _LONGEST_WORD else word


def same_text(one: str, two: str) -> bool:
    """Whether two texts differ in formatting at most."""
    return one == two or normalise(one).key == normalise(two).key


def _printable(text: str) -> str:
    """Lone surrogates are no text: no encoder takes them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _unmarked(line: str) -> str:
    """A line of prose without Markdown marks; grouped digits joined."""
    line = _PREFIX.sub("", line.strip(), count=1).replace("`", "")
    if "*" in line or "_" in line:
        line = _CLOSING.sub("", _OPENING.sub("", line))
    if "](" in line:
        line = _LINK.sub(_linked, line)
    if "\\" in line:
        line = _TEX.sub(_tex, line)
    if "$" in line:
        line = _TEX_INLINE.sub(r"\1", line)
    if "," in line:
        line = _GROUPED.sub(_joined, line)
    return " ".join(line.split())


def _linked(match: re.Match[str]) -> str:
    return match[2] if match[1] == match[2] else f"{match[1]} ({match[2]})"


def _tex(match: re.Match[str]) -> str:
    """What a reader of TeX sees: "5 x 3" for ``\\(5 \\times 3\\)``, the content of a box."""
    if match[2]:
        return _TEX_SIGNS.get(match[2]) or _TEX_SIGNS[match[2][0]]
    return match[1] or ""


def _joined(match: re.Match[str]) -> str:
    return match[0].replace(",", "")


def _unnumber(lines: list[str], prose: list[int]) -> None:
    """Drops the labels of lists that count 1, 2, 3 …; a lone "3. Rome" is an answer and keeps its number."""
    labels = [(at, match) for at in prose if (match := _LABEL.match(lines[at]))]
    if len(labels) > 1 and _count_up([int(match[1]) for _, match in labels]):
        for at, match in labels:
            lines[at] = lines[at][match.end() :]


def _count_up(numbers: list[int]) -> bool:
    """Whether numbers are those of lists, one after another or one within another."""
    lists: list[int] = []
    for number in numbers:
        while number != 1 and lists and lists[-1] != number - 1:
            lists.pop()
        if number == 1:
            lists.append(0)
        if not lists:
            return False
        lists[-1] = number
    return True


def _split(line: str) -> list[str]:
    if not line:
        return []
    if line[0] in " \t":  # only fenced code is still indented
        return [line]
    return [part.rstrip(_TRAILING) or part for part in _SENTENCE_END.split(line) if part]
