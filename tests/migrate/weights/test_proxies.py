"""The written share is the share that real proxies move; what the printed setup promises to keep together stays together."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from scipy.stats import binom

from migrate.commands.weights import _TARGETS
from migrate.store import Store, shifts
from tests.migrate.weights.proxies import Proxy, running
from tests.migrate.weights.states import begun, rolled

pytestmark = pytest.mark.timeout(150)
REQUESTS = 2_000


@pytest.fixture(params=["nginx", "haproxy", "envoy"])
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    with running(request.param, tmp_path, _TARGETS[request.param].text(0.0, "")) as found:
        yield found


def migrate(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "migrate", *words], capture_output=True, text=True, check=False
    )


def moved(proxy: Proxy, percent: str) -> None:
    """Writes a share as a user does, and waits until the proxy has read it."""
    then = ["--then", proxy.then] if proxy.then else []
    done = migrate("weights", "--to", proxy.name, "--share", percent, *then, str(proxy.file))
    assert done.returncode == 0, done.stderr
    time.sleep(1.0)


def likely(share: float, seen: float) -> bool:
    """Whether so many of ``REQUESTS`` are within what chance does, once in a million."""
    low, high = binom.interval(1 - 1e-6, REQUESTS, share)
    return bool(low <= seen * REQUESTS <= high)


def test_the_share_is_what_was_written_and_nothing_at_zero(proxy: Proxy) -> None:
    assert proxy.share(200) == 0
    moved(proxy, "25")
    assert likely(0.25, proxy.share(REQUESTS))
    assert likely(0.25, proxy.share(REQUESTS, sessions=False))
    moved(proxy, "0")
    assert proxy.share(REQUESTS) == 0 and proxy.share(REQUESTS, sessions=False) == 0
    moved(proxy, "100")
    assert proxy.share(200) == 1


def test_a_session_stays_together_and_a_larger_share_moves_nobody_back(proxy: Proxy) -> None:
    sessions: list[str | None] = [f"user-{n}" for n in range(400)]
    moved(proxy, "10")
    small = proxy.asked(sessions)
    assert proxy.asked(sessions) == small
    moved(proxy, "40")
    large = proxy.asked(sessions)
    assert all(later == "candidate" for was, later in zip(small, large, strict=True) if was == "candidate")
    assert large.count("candidate") > small.count("candidate") > 0


def test_a_rollback_reaches_a_proxy_that_follows(proxy: Proxy, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/canary.db"
    with Store.open(url, create=True) as store:
        canary = begun(store, 0.5)
        words = [
            "weights",
            "--to",
            proxy.name,
            "--follow",
            "--store",
            url,
            "--then",
            proxy.then,
            str(proxy.file),
        ]
        follower = subprocess.Popen([sys.executable, "-m", "migrate", *words])
        try:
            until(lambda: proxy.share(50) > 0, 15)
            shifts.append(store, canary, rolled)
            start = time.monotonic()
            until(lambda: proxy.share(50) == 0, 10)
            assert time.monotonic() - start < 5  # about one second where nothing else runs
        finally:
            follower.terminate()
            follower.wait(10)


def until(true: object, seconds: float) -> None:
    assert callable(true)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError):
            if true():
                return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")
