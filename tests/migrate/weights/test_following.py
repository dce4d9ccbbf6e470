"""What a follower writes while its store is away."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from migrate.store import Store
from tests.migrate.weights.states import begun

_FOLLOWER = """
import sys
from migrate.store import Store
from migrate.weights.following import follow
with Store.open(sys.argv[1]) as store:
    follow(store, lambda share: print(share, flush=True), lambda text: None, lost=1.5)
"""


def test_a_store_that_is_lost_is_a_share_of_zero_after_a_while(tmp_path: Path) -> None:
    file = tmp_path / "canary.db"
    with Store.open(f"sqlite:///{file}", create=True) as store:
        begun(store, 0.5)
    command = [sys.executable, "-c", _FOLLOWER, f"sqlite:///{file}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None and follower.stdout.readline() == "0.5\n"
        start = time.monotonic()
        for one in tmp_path.glob("canary.db*"):
            one.write_bytes(b"no database" * 1_000)
        assert follower.stdout.readline() == "0.0\n"
        assert time.monotonic() - start >= 1.0
        follower.kill()
