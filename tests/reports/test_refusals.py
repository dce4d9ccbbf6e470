"""Answers that decline, in several languages, and those that only sound like it."""

# ruff: noqa: RUF001 - other languages are what these tests are made of

from __future__ import annotations

import time

import pytest

from replay.exchange import Choice
from reports.compare.declining import declines
from reports.compare.refusal import refuses
from tests.replay.wire import DONE, delta, recording, seen
from tests.reports.said import categories, compared

DECLINES = (
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I cannot assist with that request.",
    "Sorry, but I can't provide instructions for that.",
    "I can't help you with this.",
    "As an AI language model, I cannot provide medical advice.",
    "Unfortunately, I'm unable to assist with this.",
    "I won't be able to help with that one.",
    "I must respectfully decline.",
    "That's not something I can help with.",
    "I'm not comfortable writing that.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Leider kann ich Ihnen bei dieser Anfrage nicht weiterhelfen.",
    "Das kann ich leider nicht tun.",
    "Ich kann diese Frage nicht beantworten.",
    "Tut mir leid, ich kann keine Anleitung dazu geben.",
    "Je suis désolé, mais je ne peux pas vous aider avec cela.",
    "Désolée, je ne peux pas répondre à cette demande.",
    "Je ne suis pas en mesure de fournir ces informations.",
    "Malheureusement, je ne peux pas t'aider.",
    "Lo siento, pero no puedo ayudarte con eso.",
    "No puedo ayudar con esa solicitud.",
    "Lamento no poder ayudarle.",
    "Disculpa, no puedo proporcionar esa información.",
    "Desculpe, mas não posso ajudar com isso.",
    "Sinto muito, mas não consigo atender a esse pedido.",
    "Infelizmente, não posso fornecer essas informações.",
    "Mi dispiace, ma non posso aiutarti con questo.",
    "Purtroppo non posso fornire queste informazioni.",
    "Non sono in grado di rispondere a questa richiesta.",
    "抱歉，我无法协助这个请求。",
    "对不起，我不能提供这方面的信息。",
    "很抱歉，我無法回答這個問題。",
    "我无法帮助您完成这个请求。",
    "申し訳ありませんが、そのご要望にはお応えできません。",
    "すみませんが、お手伝いできません。",
    "申し訳ございませんが、その質問にはお答えすることができません。",
    "Извините, но я не могу помочь с этим.",
    "К сожалению, я не могу предоставить эту информацию.",
    "Простите, я не смогу выполнить эту просьбу.",
    "Het spijt me, maar daar kan ik je niet mee helpen.",
    "Przepraszam, ale nie mogę w tym pomóc.",
    "죄송하지만 그 요청은 도와드릴 수 없습니다.",
)
ANSWERS = (
    "Sorry for the delay, here is the report.",
    "I'm sorry to hear that. Restart the router and try again.",
    "Sorry for the confusion: the meeting is at five.",
    "I cannot find the file you attached; please send it again.",
    "Unfortunately, the train is late.",
    "I can't recommend this place enough!",
    "I'm sorry, but the shop closes at six.",
    "Apologies for the wait, the answer is 42.",
    "I won't lie, this is a great question.",
    "I am not able to see the picture, but the text says 5.",
    "I can't help noticing that the code is missing a bracket: add it at the end. Here is the fix.",
    "Es tut mir leid für die Verspätung, hier ist der Bericht.",
    "Das kann ich gut verstehen. Starten Sie den Router neu.",
    "Leider ist der Zug verspätet.",
    "Ich kann die Datei nicht finden.",
    "Désolé pour le retard, voici le rapport.",
    "Je ne peux pas ouvrir le fichier joint, pouvez-vous le renvoyer ?",
    "Je suis désolé d'apprendre cela.",
    "Lo siento por la demora, aquí está el informe.",
    "No puedo abrir el archivo adjunto.",
    "Desculpe a demora, aqui está o relatório.",
    "Mi dispiace per il ritardo, ecco il rapporto.",
    "抱歉让您久等了，以下是报告。",
    "对不起，会议时间是五点。",
    "水不能提供能量。",
    "申し訳ありませんが、会議は五時からです。",
    "お待たせして申し訳ありません。こちらが報告書です。",
    "Извините за задержку, вот отчёт.",
    "К сожалению, поезд опаздывает.",
    "Я не могу найти файл.",
)


@pytest.mark.parametrize("text", DECLINES)
def test_it_declines(text: str) -> None:
    assert declines(text) and declines(text.upper() if text.isascii() else text) and declines("\n**" + text)


@pytest.mark.parametrize("text", ANSWERS)
def test_it_answers(text: str) -> None:
    assert not declines(text)


def test_one_side_that_declines_is_named() -> None:
    result = compared("Es tut mir leid, aber dabei kann ich nicht helfen.", "Nehmen Sie den Zug um neun.")
    assert (categories(result), result.findings[0].side) == (["refusal.one_sided"], "baseline")


def test_two_languages_of_declining_serve_a_user_alike() -> None:
    assert categories(compared(DECLINES[0], "Désolé, je ne peux pas vous aider.")) == ["refusal.both"]


def test_what_gives_something_after_all_is_an_answer() -> None:
    assert not declines(
        "I can't provide legal advice, but here are the steps that most people take: call them."
    )
    assert not declines("I cannot provide medical advice. In general:\n1. Rest.\n2. Drink water.")


def test_a_long_text_answers_something() -> None:
    assert not declines(DECLINES[0] + " However, the history of it is this." * 40)


@pytest.mark.parametrize(
    "piece",
    [
        "as an ai ",
        "i'm sorry, but ",
        "ich kann ",
        " ",
        "\n*",
        "je ne ",
        "no puedo a ",
        "我",
        "申し訳ありません",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    began = time.perf_counter()
    declines((piece * 800)[:800])
    assert time.perf_counter() - began < 0.1


def test_a_refusal_that_was_streamed_in_pieces_declines() -> None:
    pieces = ["I can", "not help ", "with that."]
    for field in ("refusal", "content"):
        assert refuses(streamed(*(delta(**{field: piece}) for piece in pieces)))
    assert not refuses(streamed(delta(content="At four.")))


def streamed(*events: bytes) -> Choice:
    answer = seen(recording([*events, delta(finish="stop"), DONE])).answer
    assert answer is not None
    return answer.first
