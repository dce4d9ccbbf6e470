"""The JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from reports.render.json import render_json
from tests.reports.builders import COUNTERS, document, wrong


def test_is_the_document_with_schema_and_verdict_first() -> None:
    made = document(wrong(60), counters=COUNTERS)
    data = json.loads(render_json(made))
    assert list(data)[:2] == ["schema", "verdict"]
    assert data == json.loads(json.dumps(asdict(made)))


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        render_json(replace(document(), span_s=float("nan")))


@pytest.mark.parametrize("text", ["\x1b[0m\x9b\u202e\u2028", "\U000e0041", "naïve 漢字 👩‍🚀", 'quo"te\\'])
def test_texts_come_back_as_they_were_with_nothing_raw_that_acts(text: str) -> None:
    rendered = render_json(replace(document(), reason=text))
    assert json.loads(rendered)["reason"] == text
    assert all(char.isprintable() or char in "\n\u200d" for char in rendered)


def test_a_lone_surrogate_does_not_make_it_unreadable() -> None:
    rendered = render_json(replace(document(), reason="a\ud800b"))
    assert json.loads(rendered.encode())["reason"] == "a\ufffdb"
