"""From a store to what is judged: every exchange of a run compared, some thousand at a time.

Comparing a million pairs takes minutes, so what was found out is kept in the run's store, as long as the same question is asked
of it, and nothing was added to these pairs since. Of a run that goes on, what is old enough is kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from itertools import islice
from pathlib import Path

import sqlalchemy as sa

import replay
import reports
from migrate import __version__
from migrate.costing import stored_price
from migrate.embedder import Embedder
from migrate.errors import StoreError
from migrate.opinions import SecondOpinion
from migrate.store import Run, Store
from replay.decoding import parse_object
from replay.exchange import Arm, Exchange
from reports.compare import Comparison, Embed, compare
from reports.compare.judge_model import last_message
from reports.compare.model import Vectors
from reports.compare.texts import Look, decide
from reports.gathered import Gathered, gather
from reports.judgement import Pair
from reports.pairing import Prices, decided, pair_up
from reports.policy import Extractor, Policy
from reports.sheets import Sheet, packed, sheet, unpacked
from reports.shown import Item

_PAIRS = 8_192
"""Of a sheet."""
_SETTLED_S = 900.0
"""After which hardly anything is added to a pair."""

log = logging.getLogger(__name__)


def gathered(store: Store, run: Run, policy: Policy, embed: Embed | None) -> Gathered:
    """All pairs of a run in columns, in the memory of these."""
    seen = gather(_sheets(store, run, policy, embed))
    store.close()  # pages of the file, up to 64 MB, that nobody needs while all is judged
    return seen


def compared(
    store: Store,
    run: Run,
    policy: Policy,
    embed: Embed | None,
    second: SecondOpinion | None = None,
    ids: Sequence[str] | None = None,
) -> list[Item]:
    """Exchanges of a run, compared and paired, by time of admission; ``ids``: only these. ``second``: who is asked about close
    calls."""
    exchanges = store.exchanges(run.id) if ids is None else (store.exchange(run.id, one) for one in ids)
    return _compared(exchanges, _prices(run), policy, embed, second)


def in_parts(
    store: Store, run: Run, policy: Policy, embed: Embed | None, second: SecondOpinion | None = None
) -> Iterator[list[Item]]:
    """All of them, some thousand at a time; with a judge model, which is asked about all at once, in one part."""
    if second is not None:
        yield compared(store, run, policy, embed, second)
        return
    exchanges, prices = store.exchanges(run.id), _prices(run)
    while some := list(islice(exchanges, _PAIRS)):
        yield _compared(some, prices, policy, embed)


def _sheets(store: Store, run: Run, policy: Policy, embed: Embed | None) -> Iterator[Sheet]:
    """Those that are kept, then the rest, of which each is kept as soon as it is made."""
    kept, prices = _Kept(store, run, _question(run, policy, embed)), _prices(run)
    number, last = 0, None
    for page in kept.all():
        yield page
        number, last = number + 1, page.last
    rest, watched = store.exchanges(run.id, after=last), _Watched(embed) if embed else None
    while some := list(islice(rest, _PAIRS)):
        page = sheet(_compared(some, prices, policy, watched), observations=sum(map(_observations, some)))
        if watched and not watched.failed and (run.ended_at is not None or _settled(page)):
            kept.keep(number, page)
        yield page
        number += 1


def _observations(exchange: Exchange) -> int:
    return 3 - (exchange.baseline, exchange.candidate, exchange.repeat).count(None)


def _settled(page: Sheet) -> bool:
    """Whether a page of a run that goes on is whole. Whatever is added to its pairs all the same is noticed."""
    return len(page) == _PAIRS and page.last[0] < time.time() - _SETTLED_S


class _Watched:
    """An embedding, and whether it ever failed: what was found out without it is not all that there is."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self.failed = False

    def __call__(self, texts: Sequence[str]) -> Vectors:
        try:
            return self._embed(texts)
        except BaseException:
            self.failed = True
            raise


class _Kept:
    """The sheets of one run that answer one question. They save time and nothing else: what cannot be read is made again."""

    def __init__(self, store: Store, run: Run, question: str | None) -> None:
        self._store, self._run, self._question = store, run.id, question

    def all(self) -> Iterator[Sheet]:
        """The first ones, as far as they are there, whole, and of all that is recorded of these pairs."""
        if self._question is None:
            return
        before: tuple[float, str] | None = None
        try:
            for data in self._store.sheets(self._run, self._question):
                page = unpacked(_whole(data))
                if before is not None and page.first <= before:
                    return  # two reports kept theirs at once
                if self._store.held(self._run, before, page.last) != (len(page), page.observations):
                    log.info(
                        "something was added to pairs that were looked at before; they are looked at again"
                    )
                    return
                yield page
                before = page.last
        except (ValueError, TypeError, KeyError, StoreError, sa.exc.SQLAlchemyError) as error:
            log.info("what was found out before is damaged (%s) and found out again", error)

    def keep(self, number: int, page: Sheet) -> None:
        if self._question is None:
            return
        try:
            self._store.put_sheet(self._run, self._question, number, _signed(packed(page)))
        except StoreError as error:
            log.info("what was found out is not kept (%s); a next report finds it out again", error)
            self._question = None


def _signed(data: bytes) -> bytes:
    """With its digest before it."""
    return hashlib.sha256(data).digest() + data


def _whole(signed: bytes) -> bytes:
    """The data behind its digest. Raises ValueError when it is damaged."""
    digest, data = signed[:32], signed[32:]
    if hashlib.sha256(data).digest() != digest:
        raise ValueError("its digest is another one")
    return data


def _question(run: Run, policy: Policy, embed: Embed | None) -> str | None:
    """What a sheet depends on besides the recorded pairs; ``None`` without a model whose name is known."""
    if not isinstance(embed, Embedder):
        return None
    asked = {
        "rules": _rules(),
        "prices": sorted((arm.value, asdict(price)) for arm, price in _prices(run).items()),
        "compare": [one.model_dump(mode="json", by_alias=True) for one in policy.compare],
        "similarity": policy.disagreement.similarity,
        "model": embed.key,
    }
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


@cache
def _rules() -> str:
    """A digest of the code that reads and compares: with another one, other things are found out."""
    digest = hashlib.sha256(__version__.encode())
    for package in (replay, reports):
        home = Path(str(package.__file__)).parent
        for file in sorted(home.rglob("*.py")):
            digest.update(str(file.relative_to(home)).encode() + b"\0" + file.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()


def _compared(
    exchanges: Iterable[Exchange],
    prices: Prices,
    policy: Policy,
    embed: Embed | None,
    second: SecondOpinion | None = None,
) -> list[Item]:
    pairs: list[Pair] = []
    before: list[Look] = []
    prompts: list[str] = []
    for exchange in exchanges:
        pairs.append(pair_up(exchange, prices=prices))
        before.append(_look(exchange, policy.compare))
        prompts.append(_prompt(exchange, before[-1]) if second else "")
    after = decide(before, embed, policy.disagreement.similarity)
    if second is not None:
        after = second(before, after, prompts)
    return [_item(pair, *look) for pair, look in zip(pairs, after, strict=True)]


def _prices(run: Run) -> Prices:
    """What the run's backends take for tokens, where its configuration says so."""
    arms = ((arm, stored_price(run, arm)) for arm in (Arm.BASELINE, Arm.CANDIDATE))
    return {arm: price.tokens for arm, price in arms if price and price.tokens}


def _look(exchange: Exchange, extractors: Sequence[Extractor]) -> Look:
    """What rules say of the candidate's answer, and of the baseline's second one where there is one."""
    request, baseline, repeat = exchange.request, exchange.baseline, exchange.repeat
    first = compare(request, baseline, exchange.candidate, extractors=extractors)
    if repeat is None:
        return first, None
    return first, compare(request, baseline, repeat, extractors=extractors)


def _prompt(exchange: Exchange, look: Look) -> str:
    """What the user said last, where similarity has to decide."""
    if not any(one.undecided for one in look if one):
        return ""
    return last_message(parse_object(exchange.request.body) or {})


def _item(pair: Pair, comparison: Comparison, repeat: Comparison | None) -> Item:
    return Item(pair=decided(pair, comparison, repeat), comparison=comparison, repeat=repeat)
