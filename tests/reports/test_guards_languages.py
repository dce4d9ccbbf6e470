"""The language and the script of an answer."""

# ruff: noqa: RUF001 - letters of other scripts are what these tests are made of

from __future__ import annotations

import itertools

import pytest

from reports.compare.guards.languages import guard_languages
from reports.compare.normal import normalise
from reports.judgement import Severity
from reports.language import language

SAID = {
    "English": "The refund was approved and you will have it in your account in five days. "
    "If it is not there, write to us.",
    "German": "Die Rückerstattung wurde genehmigt und ist in fünf Tagen auf Ihrem Konto. "
    "Wenn sie nicht kommt, schreiben Sie uns.",
    "French": "Le remboursement a été approuvé et sera sur votre compte dans cinq jours. "
    "Si ce n'est pas le cas, écrivez-nous.",
    "Spanish": "El reembolso fue aprobado y estará en su cuenta en cinco días. "
    "Si no es así, puede escribir a nuestro equipo.",
    "Portuguese": "O reembolso foi aprovado e estará na sua conta em cinco dias. "
    "Se não for assim, você pode escrever para nós.",
    "Italian": "Il rimborso è stato approvato e sarà sul suo conto in cinque giorni. "
    "Se non è così, può scrivere alla nostra squadra.",
    "Dutch": "De terugbetaling is goedgekeurd en staat binnen vijf dagen op je rekening. "
    "Als het er niet is, schrijf dan naar ons.",
    "Polish": "Zwrot został zatwierdzony i będzie na koncie w ciągu pięciu dni. "
    "Jeśli go nie ma, to proszę do nas napisać, jak tylko to możliwe.",
    "Russian": "Возврат одобрен и поступит на ваш счёт в течение пяти дней. "
    "Если его нет, то напишите нам, как только это будет возможно.",
    "Japanese": "返金は承認され、五日以内に口座に届きます。届かない場合はご連絡ください。",
    "Chinese": "退款已批准，将在五天内到账。如果没有收到，请联系我们的客服。",
}


def found(old: str, new: str) -> tuple[str, Severity] | None:
    finding, back = (
        guard_languages(normalise(old), normalise(new)),
        guard_languages(normalise(new), normalise(old)),
    )
    assert (finding and finding.category) == (back and back.category)
    return None if finding is None else (finding.category, finding.severity)


@pytest.mark.parametrize(("one", "two"), list(itertools.combinations(SAID, 2)))
def test_another_language_is_blocked(one: str, two: str) -> None:
    finding = found(SAID[one], SAID[two])
    assert finding is not None and finding[1] is Severity.BLOCK
    assert finding[0] in ("text.language", "text.script")


@pytest.mark.parametrize("name", SAID)
def test_a_language_is_itself(name: str) -> None:
    half = SAID[name][: len(SAID[name]) // 2]
    assert found(SAID[name], half) is None


def test_a_few_words_are_in_no_language() -> None:
    assert language(normalise("42 km").words) is None
    assert language(normalise("Paris").words) is None
    assert found("Berlin is large", "Berlin ist groß") is None


def test_letters_of_another_script_on_one_side_are_a_warning() -> None:
    assert found("The tide turns at four", "The tide 潮水 turns at four") == (
        "text.mixed_script",
        Severity.WARN,
    )
    assert found("The angle is α + β here", "The angle is a + b here") is None
    assert found("The café is open", "The cafe is open") is None
