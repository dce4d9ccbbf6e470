"""docs/verdicts.md has every check's code, in the order of the checks, and no other; its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")


def documented() -> list[str]:
    """The codes of the table, in order."""
    return re.findall(r"^\| `([a-z_]+)` \|", PAGE, flags=re.MULTILINE)


def in_the_code() -> set[str]:
    files = ("validity", "fitness", "mirroring", "steadiness", "covered")
    sources = [ROOT / "reports" / f"{name}.py" for name in files]
    return set(re.findall(r'code="([a-z_]+)"', "\n".join(one.read_text(encoding="utf-8") for one in sources)))


def test_every_check_is_on_the_page_and_no_other() -> None:
    assert set(documented()) == in_the_code()


def test_every_check_has_a_meaning_and_a_next_step() -> None:
    rows = re.findall(r"^\| `[a-z_]+` \| (.+) \| (.+) \|$", PAGE, flags=re.MULTILINE)
    assert len(rows) == len(documented()) and all(meaning and step for meaning, step in rows)


def test_every_link_to_a_file_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
