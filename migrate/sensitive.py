"""Where secrets and personal data stand in a text: keys, e-mail addresses, card and phone numbers. Pure.

Each function replaces what it finds by ``hide(kind, value)`` and changes nothing else. Where a number may or may not be private
its shape decides: an identifier, price, date or decimal stays. Every pattern takes time linear in the text, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import re2

Hide = Callable[[str, str], str]
"""Kind (``key``, ``email``, ``card``, ``phone``) and value to its placeholder."""

PLACEHOLDER = re.compile(r"\[[a-z]+:[a-p]{12}\]")
"""What stands in place of a hidden value; nothing in it is looked at again."""

_MIXED = r"(?:\d|[a-z][A-Z])"
"""What random characters have and words do not."""
_FIRST = r"\d(?:(?<![A-Za-z0-9_]\d)|(?<=\\[nrt]\d))"
"""A digit that is not within a word; the escaped line break of a string within a string is none. It stands first, and looks
back from there, because a search is fast only for patterns that begin with a character."""

# No possessive quantifiers and no atomic groups anywhere: in Python 3.11 before 3.11.5 they miss what they should find.
_PRIVATE = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
    r"(?:[^-]{0,20000}(?:-(?!----)[^-]{0,20000}){0,2000}-----END [A-Z ]{0,30}PRIVATE KEY-----"
    r"|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{40,})+(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{1,39})?)"
)
_TOKENS = re.compile(
    r"(?<![\w-])eyJ[\w-]{8,4000}\.[\w-]{8,16000}\.[\w-]{2,4000}(?:\.[\w-]{2,4000}){0,2}"
    r"|(?<![A-Za-z0-9])(?:"
    r"(?:sk-|hs[-_]|sk_(?:live|test)_|(?:gsk|xai|nvapi|gh[opsru]|github_pat|glpat|xox[abeprs])[-_])[\w-]{16,500}"
    rf"|(?:sk_|[pr]k[-_]|hf_|r8_|key-)(?=[\w-]{{0,60}}?{_MIXED})[\w-]{{16,500}}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|AIza[\w-]{35})"
)
_BEARER = re.compile(
    r"(\bbearer[\s:]{1,4})"
    rf"((?=[\w.~+/-]{{0,60}}?{_MIXED})[\w.~+/-]{{12,4000}}=*|[A-Za-z]{{20,4000}})",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"(authorization[\"'\\]{0,4}\s{0,3}[:=]\s{0,3}[\"'\\]{0,4}(?:basic|token|apikey)\s{1,4})([\w.~+/-]{8,4000}=*)",
    re.IGNORECASE,
)
_NAMES = (
    r"(?:api[_-]?key|(?:access|auth|refresh|session|id)[_-]?token|client[_-]?secret"
    r"|(?:secret|private|access)[_-]?(?:access[_-]?)?key|passw(?:or)?d|passphrase)"
)
_ASSIGNED = re.compile(
    rf"({_NAMES}[\"'\\]{{0,4}}\s{{0,3}}[=:]\s{{0,3}}[\"'\\]{{0,4}})"
    rf"(?!{PLACEHOLDER.pattern}(?:[^\w!-]|$))([^\s\"'\\,;&]{{8,500}})",
    re.IGNORECASE,
)
_BY_NAME = (
    (_BEARER, ("bearer",)),
    (_LOGIN, ("authorization",)),
    (_ASSIGNED, ("key", "token", "secret", "passw", "passphrase")),
)
_SECRET_NAME = re.compile(rf"(?:^|.*[^A-Za-z0-9]){_NAMES}", re.IGNORECASE | re.DOTALL)
_TYPE_WORDS = frozenset({"", "string", "str", "text", "null", "none", "required", "optional"})
_IN_URL = re.compile(r"(?<=://)([^\s/@:\"'\[]{0,200}:)(?!\[key:)([^\s/@\"']{1,200})(?=@)")

_EMAILS = re.compile(
    r"(?<![\w.%+-])(?!\d{1,6}%40)[\w.%+-]{1,64}(?:@|%40)(?:[\w-]{1,63}\.){1,8}(?:xn--[\w-]{2,59}|[^\W\d_]{2,63})"
)

_CARD_SHAPES = tuple(
    re.compile(rf"{_FIRST}(?<!\d\.\d){shape}(?![A-Za-z0-9_])")
    for shape in (
        r"\d{3}([ \xa0.-])\d{4}\1\d{4}\1\d{4}\1\d{3}",
        r"\d{3}([ \xa0.-])\d{4}\1\d{4}\1\d{4}",
        r"\d{3}([ \xa0.-])\d{6}\1\d{4,5}",
        r"\d{12,18}",
    )
)
_CARD_DIGITS = re.compile(r"\d{4}[ \xa0.-]?\d{4}[ \xa0.-]?\d{4}|\d{4}[ \xa0.-]\d{6}")
_ISSUED = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|(?:5\d|6[0-9]|35)\d{14}|62\d{14,17}|2(?:2[2-9]|[3-6]\d|7[012])\d{13}"
    r"|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
)
"""First digits and lengths in use: Visa, Mastercard, Maestro, Discover, JCB, UnionPay, American Express, Diners."""

_PLUS_PHONE = re.compile(r"\+(?<![\w+.]\+)[1-9](?:[ .()/\xa0-]{0,3}\d){6,14}(?!\w)")
_CODE_PHONE = re.compile(r"\((?:(?<![\w.+-]\()|(?<=\\[nrt]\())\d{3,5}\) ?\d{3,4}[ .-]\d{3,4}(?!\w)")
_PHONE = re.compile(
    rf"{_FIRST}(?<![.+-]\d)(?:"
    r"\d\d([.-])\d{3}\1\d{4}"
    r"|(?<=1)([ .-])\d{3}\2\d{3}\2\d{4}"
    r"|(?<=[2-9])\d\d [2-9]\d\d \d{4}"
    r"|(?<=0)\d{2,4}[ /-]\d{3,4}[ -]?\d{3,4}"
    r")(?![\w-])"
)
_NAMED_PHONE = re.compile(
    r"(\b(?:phone|mobile|telephone|tel|fax|whatsapp)\b[^\d\n\[]{0,20})(\d{9,15})(?!\d)", re.IGNORECASE
)
_NINE_DIGITS = re.compile(r"\d{9}")

_WORD = r"[^\x00-,./:-@\[-^`{-\x7f]"
"""A character of ``[\\w-]``, and whatever is not ASCII."""
_DIGIT = r"\p{Nd}"
_GAP = r"[\s\v\x1c-\x1f\x{85}\p{Z}\"'\\nrtbf]*"
"""What may stand between a name and its sign in a JSON text: quotes and white space, also escaped."""
_SIGNS = re2.compile(
    "|".join(
        (
            r"\\u",  # any character may hide behind such an escape
            r"-----BEGIN",
            rf"eyJ{_WORD}{{8}}",
            rf"(?:[spr]k|hs|xai|nvapi|gh[opsru]|pat|xox[abeprs]|hf|r8|key)[-_]{_WORD}{{16}}",
            r"A(?:KIA|SIA|BIA|CCA)[0-9A-Z]{16}|AIza",
            r"(?i:bearer|authorization)",
            rf"(?i:key|token|secret|passw(?:or)?d|passphrase){_GAP}[=:]",
            r":(?:\\*/){2}[^@]*@",
            rf"(?:@|%40){_WORD}+\.",
            rf"{_DIGIT}{{13}}",
            rf"{_DIGIT}{{3}}[ ./)\x{{a0}}\\-]+{_DIGIT}{{3}}",
            rf"\+[1-9](?:[ .()/\x{{a0}}\\-]*{_DIGIT}){{6}}",
            rf"(?i:phone|mob[i\x{{130}}\x{{131}}]le|tel|fax|whatsapp)[^\[{_DIGIT}]*{_DIGIT}{{9}}",
        )
    )
)


def suspicious(data: bytes) -> bool:
    """Whether a UTF-8 text may hold what a function below hides; all of them leave a text alone of which this is false.

    Where the text is JSON this holds for each string in it as well, and for JSON in such a string, however often quoted: what
    the signs are made of is never escaped but as ``\\uXXXX``, which is a sign itself. One automaton looks for all signs at
    once, seventy times faster than the patterns, which find nothing in most texts.
    """
    return _SIGNS.search(data) is not None


def hide_keys(text: str, hide: Hide) -> str:
    """API keys by their known beginnings, tokens, private keys (also cut ones), and whatever is assigned to such a name."""

    def whole(match: re.Match[str]) -> str:
        return hide("key", match[0])

    def value(match: re.Match[str]) -> str:
        return match[1] + hide("key", match[2])

    if "-----BEGIN" in text:
        text = _PRIVATE.sub(whole, text)
    text = _TOKENS.sub(whole, text)
    if "://" in text:
        text = _IN_URL.sub(value, text)
    lowered = text.lower()
    for pattern, words in _BY_NAME:
        if any(word in lowered for word in words):
            text = pattern.sub(value, text)
    return text


def names_secret(name: str, value: str) -> bool:
    """Whether a field called ``name`` holds a secret by its name; the words of a schema are none."""
    return (
        _SECRET_NAME.fullmatch(name) is not None
        and value.lower() not in _TYPE_WORDS
        and PLACEHOLDER.fullmatch(value) is None
    )


def hide_emails(text: str, hide: Hide) -> str:
    """E-mail addresses, also with the sign escaped as in a query string."""
    if "@" not in text and "%40" not in text:
        return text
    return _EMAILS.sub(lambda match: hide("email", match[0].replace("%40", "@")), text)


def hide_cards(text: str, hide: Hide) -> str:
    """Card numbers in one block or in an issuer's groups, with a right check digit; what follows them stays."""
    if not _CARD_DIGITS.search(text):
        return text
    for shape in _CARD_SHAPES:
        text = _cards_of(shape, text, hide)
    return text


def _cards_of(shape: re.Pattern[str], text: str, hide: Hide) -> str:
    """One shape. A number that is no card may overlap one that is, so the search goes on one character later."""
    parts: list[str] = []
    done = at = 0
    while (match := shape.search(text, at)) is not None:
        digits = re.sub(r"\D", "", match[0])
        at = match.start() + 1
        if _ISSUED.fullmatch(digits) and _luhn(digits):
            parts += (text[done : match.start()], hide("card", digits))
            done = at = match.end()
    return "".join((*parts, text[done:])) if parts else text


def hide_phones(text: str, hide: Hide) -> str:
    """Phone numbers: international ones, and national ones in their usual groups; ten bare digits only after a word for it."""
    for pattern in (_PLUS_PHONE, _CODE_PHONE, _PHONE):
        text = pattern.sub(lambda match: _phone(match[0], hide), text)
    if not _NINE_DIGITS.search(text):
        return text
    return _NAMED_PHONE.sub(lambda match: match[1] + hide("phone", match[2]), text)


def _phone(found: str, hide: Hide) -> str:
    digits = re.sub(r"\D", "", found)
    return hide("phone", digits) if _is_phone(found, digits) else found


def _is_phone(found: str, digits: str) -> bool:
    """Not a signed number: ``+1.23456789`` and ``+12.345.678`` are quantities, as is a short run of bare digits."""
    separators = set(re.sub(r"[\d+]", "", found))
    if found.startswith("+") and not separators:
        return 9 <= len(digits) <= 15
    first, *groups = re.split(r"\D+", found.strip("+"))
    if found.startswith("+") and separators == {"."} and (len(groups) == 1 or _thousands(first, groups)):
        return False
    pairs = all(len(group) <= 2 for group in (first, *groups))
    return len(digits) >= (9 if pairs else 8)


def _thousands(first: str, groups: list[str]) -> bool:
    return len(first) <= 3 and all(len(group) == 3 for group in groups)


def _luhn(digits: str) -> bool:
    """The check digit of card numbers (ISO/IEC 7812-1): doubled every second digit from the right, the sum ends in 0."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0
