"""Worked solutions of word problems by four systems and by a person: right ones end in the same number, wrong ones do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path

SYSTEMS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


def solutions(path: Path, *, right: bool) -> Iterator[tuple[str, str, str]]:
    """(question, one solution, another): both right, or a right one and a wrong one. Identical texts make no pair."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        answers = [
            (row[system]["solution"], row[system]["is_correct"]) for system in SYSTEMS if system in row
        ]
        good = dict.fromkeys([row["ground_truth"], *(text for text, correct in answers if correct)])
        bad = dict.fromkeys(text for text, correct in answers if not correct)
        for one, two in combinations(good, 2) if right else product(good, bad):
            yield row["question"], one, two
