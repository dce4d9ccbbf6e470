"""Work spread over processes: batches in, results out in the order of the batches, in constant memory."""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from migrate.errors import MigrateError

Plan = TypeVar("Plan")
Batch = TypeVar("Batch")
Result = TypeVar("Result")
Make = Callable[[Plan], Callable[[Batch], Result]]
"""A function of a module, or a class: from a plan to what is done with each batch."""

_ALONE = 8
"""Batches that this process works on itself, so that what is small needs no other."""


def spread(
    make: Make[Plan, Batch, Result], plan: Plan, batches: Iterator[Batch], *, processes: int
) -> Generator[Result, None, None]:
    """What ``make(plan)`` makes of each batch. Each process has one batch in hand; plan, batches and results are pickled.

    Raises MigrateError when a process dies. Closing the iterator ends the processes.
    """
    yield from map(make(plan), itertools.islice(batches, _ALONE if processes > 1 else None))
    first = next(batches, None)
    if first is None:
        return
    with contextlib.ExitStack() as stack:
        hands: list[_Hand[Batch, Result]] = [stack.enter_context(_Hand(make, plan)) for _ in range(processes)]
        busy: deque[_Hand[Batch, Result]] = deque()
        for batch, hand in zip(itertools.chain([first], batches), itertools.cycle(hands), strict=False):
            done = [busy.popleft().result()] if len(busy) == processes else []
            hand.give(batch)
            busy.append(hand)
            yield from done
        for hand in busy:
            yield hand.result()


class _Hand(Generic[Batch, Result]):
    """One process. It ends when this one does, however that ends: its pipe closes."""

    def __init__(self, make: Make[Plan, Batch, Result], plan: Plan) -> None:
        context = multiprocessing.get_context("spawn")  # safe whatever threads run here
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, plan), daemon=True)
        with uninterrupted():
            self._process.start()
        theirs.close()

    def give(self, batch: Batch) -> None:
        """Hands over a batch; the one before has been answered."""
        with self._alive():
            self._pipe.send(batch)

    def result(self) -> Result:
        """Waits for what became of the batch."""
        with self._alive():
            result: Result = self._pipe.recv()
        return result

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError):
            self._process.join()
            raise MigrateError(
                f"a worker process ended with exit code {self._process.exitcode}; start again, and what is missing is done"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.join()
        self._pipe.close()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A process that is started meanwhile never sees an interrupt, which is for the one who asked for its work, and who gets it
    when the start is over: a process that is half started would say so with a traceback."""
    resource_tracker.ensure_running()  # it lets interrupts through once it has started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _put_off():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _put_off() -> Iterator[None]:
    """An interrupt that another thread takes, which blocks none, raises KeyboardInterrupt in the main thread all the same."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not raises or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if came:
            raise KeyboardInterrupt


def _serve(pipe: Connection, make: Make[Plan, Batch, Result], plan: Plan) -> None:
    gc.freeze()
    gc.set_threshold(100_000)  # records hold no cycles, and looking for some takes a tenth of the time
    work: Any = make(plan)
    with contextlib.suppress(EOFError, ConnectionError):  # nobody is there any more
        while True:
            pipe.send(work(pipe.recv()))
