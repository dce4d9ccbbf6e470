"""Who has to be told what, and telling them: each state once, at every receiver, also across restarts.

Nothing is queued. What a receiver was last told is in the store; whatever differs from it is news, and what could not be told
stays news until the next judgement. So at most one message a subject waits for a receiver, however long that is away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from migrate.notifying.news import News, first_state, trial
from migrate.notifying.receivers import Receiver
from migrate.notifying.sending import send
from migrate.store import Store
from reports.times import iso

Told = dict[str, str | None]
"""By receiver's name, why it could not be told; ``None`` where it was, or where there was nothing to tell."""


def due(news: Sequence[News], told: Mapping[str, tuple[str, int]]) -> Iterator[News]:
    """Of these, what is news to a receiver that was last ``told`` so (see ``Store.notices``)."""
    for one in news:
        state, number = told.get(one.subject, (first_state(one.subject), 0))
        if one.state != state:
            yield replace(one, number=number + 1)


async def tell(store: Store, run: str, news: Sequence[News], receivers: Sequence[Receiver]) -> Told:
    """Tells everybody what they do not know yet, all at once. A receiver that is away holds up no other one."""
    problems = await asyncio.gather(*(_tell(store, run, news, one) for one in receivers))
    return {one.name: problem for one, problem in zip(receivers, problems, strict=True)}


async def _tell(store: Store, run: str, news: Sequence[News], receiver: Receiver) -> str | None:
    for one in due(news, store.notices(run, receiver.name)):
        if problem := await send(receiver, one):
            return problem
        store.put_notice(run, receiver.name, one.subject, one.state, number=one.number, at=time.time())
    return None


async def rehearse(receivers: Sequence[Receiver]) -> Told:
    """Sends each receiver a message that says it is a test. A pager's alert is closed again."""
    news = trial(iso(time.time()))
    problems = await asyncio.gather(*(_rehearse(one, news) for one in receivers))
    return {one.name: problem for one, problem in zip(receivers, problems, strict=True)}


async def _rehearse(receiver: Receiver, news: News) -> str | None:
    problem = await send(receiver, news)
    if problem is None and receiver.pager:
        problem = await send(receiver, replace(news, subject="verdict", state="GO"))
    return problem
