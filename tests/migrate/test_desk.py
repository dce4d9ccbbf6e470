from __future__ import annotations

import asyncio
import json
from time import monotonic

from migrate.channel import Admitted, Answered, Message
from migrate.config import Shadow
from migrate.desk import Desk
from migrate.tap import Tap, Ticket
from replay.exchange import Ending

BODY = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()


def sent(tap: Tap) -> Ticket:
    """A request that has just gone to the baseline."""
    ticket = tap.admit("POST", "/v1/chat/completions", ())
    assert ticket is not None
    ticket.body, ticket.sent_at = BODY, monotonic()
    return ticket


def tap(messages: list[Message]) -> Tap:
    return Tap(Shadow.model_validate({"percent": 100}), messages.append)


async def test_a_request_is_handed_over_while_its_answer_is_awaited() -> None:
    messages: list[Message] = []
    one, desk = tap(messages), Desk(asyncio.get_running_loop())
    ticket = sent(one)
    desk.put(ticket)
    assert messages == []
    await asyncio.sleep(0.01)
    assert [type(message) for message in messages] == [Admitted]
    desk.close(ticket, monotonic(), Ending.COMPLETE, "")
    await asyncio.sleep(0.01)
    assert [type(message) for message in messages] == [Admitted, Answered]


async def test_an_answer_that_is_quicker_than_the_desk_follows_its_request() -> None:
    messages: list[Message] = []
    one, desk = tap(messages), Desk(asyncio.get_running_loop())
    ticket = sent(one)
    desk.put(ticket)
    desk.close(ticket, monotonic(), Ending.COMPLETE, "")
    await asyncio.sleep(0.01)
    assert [type(message) for message in messages] == [Admitted, Answered]


async def test_a_crowd_is_served_in_order_and_once_each() -> None:
    messages: list[Message] = []
    one, desk = tap(messages), Desk(asyncio.get_running_loop())
    tickets = [sent(one) for _ in range(50)]
    for ticket in tickets:
        desk.put(ticket)
        desk.put(ticket)
    await asyncio.sleep(0.05)
    assert [m.request.id for m in messages if isinstance(m, Admitted)] == [t.request_id for t in tickets]
    assert one.counters["mirrored"] == 50


async def test_closing_time_leaves_nothing_behind() -> None:
    messages: list[Message] = []
    one, desk = tap(messages), Desk(asyncio.get_running_loop())
    for _ in range(9):
        ticket = sent(one)
        desk.put(ticket)
        desk.close(ticket, monotonic(), Ending.COMPLETE, "")
    desk.clear()
    assert len(messages) == 18
    await asyncio.sleep(0.01)
    assert len(messages) == 18


async def test_a_request_that_never_left_is_counted_as_incomplete() -> None:
    one, desk = tap([]), Desk(asyncio.get_running_loop())
    ticket = one.admit("POST", "/v1/chat/completions", ())
    assert ticket is not None
    desk.close(ticket, monotonic(), Ending.CLIENT_LEFT, "")
    desk.clear()
    assert one.counters["incomplete"] == one.counters["passed"] == 1


async def test_what_comes_faster_than_it_is_done_does_not_pile_up() -> None:
    """A gateway at its limit meets more in each turn of its loop than the desk would take."""
    one, desk = tap([]), Desk(asyncio.get_running_loop())
    waiting = []
    for _ in range(600):
        for _ in range(20):
            desk.put(sent(one))
        await asyncio.sleep(0)
        waiting.append(one.counters["passed"] - one.counters["mirrored"])
    # How many come in the first millisecond, before the desk begins, is the machine's affair; then it settles.
    assert max(waiting[-100:]) <= 600
