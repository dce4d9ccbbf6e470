"""``migrate export``: captured requests, out again."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from migrate.commands.output import opened
from migrate.config import load
from migrate.errors import ConfigError, StoreError
from migrate.store import Store
from replay.exchange import Exchange

_EPILOG = """\b
Examples:
  migrate export > requests.jsonl
  migrate export --format openai-batch --output batch.jsonl"""


@click.command(epilog=_EPILOG)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    envvar="MIGRATE_CONFIG",
    help="Names the store. [default: migrate.yaml, when there is one]",
)
@click.option("--store", "url", metavar="URL", help="Database URL; default: store.url of the configuration.")
@click.option("--run", "run_id", metavar="ID", help="A run; default: the latest.")
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "openai-batch"]), default="jsonl", show_default=True
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="File; default: standard output."
)
def export(path: Path | None, url: str | None, run_id: str | None, form: str, output: Path | None) -> None:
    """Write a run's captured requests: one JSON line each, with the baseline's answer where it is known, or an OpenAI Batch.

    Both can be imported again. What was redacted stays so.
    """
    if url is None and (path is not None or Path("migrate.yaml").exists()):
        url = load(path or "migrate.yaml").store.url
    with Store.open(url or "sqlite:///migrate.db") as store:
        try:
            run = store.run(run_id)
        except StoreError as error:
            raise ConfigError(str(error)) from None
        count = left = 0
        with opened(output) as out:
            for exchange in store.exchanges(run.id):
                line = _line(exchange, form)
                if line is None:
                    left += 1
                    continue
                out.write(line + b"\n")
                count += 1
    rest = f"; {left:,} without a JSON object as body are left out" if left else ""
    click.echo(f"{count:,} requests of run {run.id}{rest}", err=True)


def _line(exchange: Exchange, form: str) -> bytes | None:
    request = exchange.request
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(body, dict):
        return None
    if form == "openai-batch":
        return orjson.dumps(
            {"custom_id": request.id, "method": request.method, "url": request.path, "body": body}
        )
    return orjson.dumps({"request": body, "response": _response(exchange), "status": _status(exchange)})


def _status(exchange: Exchange) -> int | None:
    return exchange.baseline.status if exchange.baseline else None


def _response(exchange: Exchange) -> dict[str, object] | None:
    """The baseline's answer in the shape of a chat completion."""
    seen = exchange.baseline
    if seen is None or seen.answer is None or not seen.answer.choices:
        return None
    choices = [
        {
            "index": choice.index,
            "message": {
                "role": choice.role or "assistant",
                "content": choice.text or None,
                **({"reasoning": choice.reasoning} if choice.reasoning else {}),
                **(
                    {
                        "tool_calls": [
                            {
                                "id": c.id,
                                "type": "function",
                                "function": {"name": c.name, "arguments": c.arguments},
                            }
                            for c in choice.tool_calls
                        ]
                    }
                    if choice.tool_calls
                    else {}
                ),
            },
            "finish_reason": choice.finish_reason,
        }
        for choice in seen.answer.choices
    ]
    answer: dict[str, object] = {"choices": choices, "model": seen.answer.model}
    usage = seen.answer.usage
    if usage is not None:
        answer["usage"] = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    return answer
