"""docs/ is true: its links lead somewhere, what is made from the code is current, its commands end as they say."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click import Context, Group

from migrate.cli import COMMANDS, cli
from replay.simulator.server import serving
from replay.simulator.settings import Settings
from tests.shell import free_port, run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The ids of a page's headings, as the site and the forges make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists() and there.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(there), target


def test_what_is_made_from_the_code_is_current(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "scripts/reference"), str(tmp_path)], check=True, cwd=ROOT)
    for made in tmp_path.iterdir():
        assert made.read_text() == (DOCS / made.name).read_text(), f"{made.name}: run make docs"


def test_every_key_of_a_configuration_has_its_meaning() -> None:
    empty = re.findall(
        r"^\| `(?!required)(\w+)` \| .* \|  \|$", (DOCS / "configuration.md").read_text(), re.MULTILINE
    )
    assert not empty


def test_every_page_is_in_the_navigation() -> None:
    told = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert not [page.name for page in PAGES if str(page.relative_to(DOCS)) not in told]


def test_every_command_named_exists() -> None:
    for page in PAGES:
        named = re.findall(r"`migrate ([a-z]+)", page.read_text(encoding="utf-8"))
        assert set(named) <= set(COMMANDS), page.name


def test_every_option_named_with_a_command_exists() -> None:
    for page in PAGES:
        for name, rest in re.findall(r"`migrate ([a-z]+)([^`]*)`", page.read_text(encoding="utf-8")):
            command = cli.get_command(Context(cli), name)
            assert command is not None
            options = {option for param in command.params for option in param.opts}
            assert isinstance(command, Group) or set(re.findall(r"--[a-z][a-z-]+", rest)) <= options, (
                page.name,
                name,
                rest,
            )


def test_the_runbook_knows_every_code() -> None:
    runbook = (DOCS / "runbook.md").read_text(encoding="utf-8")
    checks = set(
        re.findall(r"^\| `(\w+)` \|", (DOCS / "verdicts.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    told = set(re.findall(r"`(\w+)`", runbook))
    caveats = {"resumed", "paused", "silence", "load", "retried", "rehearsal"}
    assert not checks - caveats - told


def commands(page: str) -> str:
    """All commands of a page, for a shell, ``migrate`` being ours."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return "".join(blocks)


def moved(script: str) -> str:
    """The script on ports that are free here; the written configuration has the usual ones."""
    ports = {port: free_port() for port in ("8000", "9000", "8080", "8081")}
    for written, free in ports.items():
        script = script.replace(f":{written}", f":{free}").replace(f"--port {written}", f"--port {free}")
    change = f"sed -i 's/:8080/:{ports['8080']}/; s/:8081/:{ports['8081']}/' migrate.yaml"
    return script.replace("migrate check", f"{change}\nmigrate check")


@pytest.mark.timeout(120)
def test_the_first_run_by_hand_ends_in_hold(tmp_path: Path) -> None:
    done = run("set -e\n" + moved(commands("first-run.md")), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count('"choices"') == 3 and "HOLD" in done.stdout
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.timeout(120)
async def test_the_logs_of_somebody_come_to_a_report(tmp_path: Path) -> None:
    lines = [{"model": "m", "messages": [{"role": "user", "content": f"Ship {n}?"}]} for n in range(60)]
    (tmp_path / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with serving(Settings()) as one, serving(Settings(dialect="tensorrt-llm")) as other:
        (tmp_path / "migrate.yaml").write_text(
            f"baseline: {{kind: vllm, url: '{one}'}}\ncandidate: {{kind: tensorrt-llm, url: '{other}'}}\n"
        )
        done = await asyncio.to_thread(run, "set -e\n" + commands("logs.md"), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "HOLD" in done.stdout and "60 sent, 60 ok" in done.stderr
