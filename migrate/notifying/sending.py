"""Sending one message: within a bound, again where that helps, and never somewhere else than said."""

from __future__ import annotations

import asyncio
import contextlib
import smtplib
import ssl
import threading
import time
from collections.abc import Callable

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from migrate.notifying.news import News
from migrate.notifying.receivers import Letter, Post, Receiver
from reports.render.text import plain

_ONE_S = 10.0
"""For one attempt."""
_ATTEMPTS = 4
_LONGEST_S = 20.0
"""Between two attempts, also where a receiver asks for more."""
_jitter = wait_random_exponential(multiplier=0.5, max=10)


class Refused(Exception):
    """A message was not taken: one line without a secret. ``again``: another try may help; ``after``: in how many seconds."""

    def __init__(self, why: str, *, again: bool, after: float | None = None) -> None:
        super().__init__(why)
        self.again, self.after = again, after


async def send(receiver: Receiver, news: News) -> str | None:
    """Tells a receiver. Returns why it could not be told, or ``None``. Takes minutes at most."""
    retrying = AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, Refused) and error.again),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=_pause,
        reraise=True,
    )
    try:
        await retrying(_attempt, receiver, news)
    except Refused as refused:
        return str(refused)
    return None


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.after if isinstance(error, Refused) else None
    return min(_jitter(state) if asked is None else asked, _LONGEST_S)


async def _attempt(receiver: Receiver, news: News) -> None:
    message = receiver.message(news, time.time())
    if message is None:
        return
    try:
        if isinstance(message, Post):
            await asyncio.wait_for(_post(message), _ONE_S)
        else:
            await asyncio.wait_for(_beside(_mail, message), 3 * _ONE_S)
    except TimeoutError:
        raise Refused("did not answer in time", again=True) from None


async def _post(post: Post) -> None:
    """Reads no more of an answer than its head. A redirect is not followed: the message is for one address. A proxy of the
    environment gets what is encrypted alone."""
    encrypted = post.url.startswith("https://")
    try:
        async with (
            httpx.AsyncClient(timeout=_ONE_S, follow_redirects=False, trust_env=encrypted) as client,
            client.stream("POST", post.url, content=post.body, headers=post.headers) as answer,
        ):
            status, after = answer.status_code, answer.headers.get("Retry-After", "")
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
        raise _away(error) from None
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise Refused(f"answered {status}; a redirect is not followed, name its target instead", again=False)
    wait = float(after) if after.isdecimal() and len(after) < 6 else None
    raise Refused(
        f"answered {status}{_MEANS.get(status, '')}", again=status in _AGAIN or status >= 500, after=wait
    )


def _away(error: Exception) -> Refused:
    """In the words of the system, where they are of a connection; other words may hold what was sent."""
    known = isinstance(error, httpx.ConnectError | OSError) and str(error)
    return Refused(
        f"could not be reached ({plain(str(error), 200) if known else type(error).__name__})", again=True
    )


_AGAIN = (408, 425, 429)
_MEANS = {
    401: ": it does not know the key",
    403: ": the key may not do this, or the address is no longer in use",
    404: ": there is nothing at this address, or no longer",
}


async def _beside(work: Callable[[Letter], None], letter: Letter) -> None:
    """In a thread that dies with the process: a mail server may talk without end, and nobody has to wait for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        try:
            work(letter)
            found = None
        except Exception as error:  # noqa: BLE001 - handed over to who waits
            found = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=run, daemon=True).start()
    await done


def _mail(letter: Letter) -> None:
    via = letter.via
    try:
        with _connected(letter) as server:
            if via.user is not None and letter.password is not None:
                server.login(via.user, letter.password)
            server.send_message(letter.message)
    except smtplib.SMTPResponseException as error:
        code = int(error.smtp_code)
        raise Refused(f"answered {code}{_SAYS.get(code, '')}", again=400 <= code < 500) from None
    except smtplib.SMTPRecipientsRefused:
        raise Refused("takes mail for none of email.to", again=False) from None
    except smtplib.SMTPNotSupportedError:
        raise Refused("offers no STARTTLS or no login; see email.tls", again=False) from None
    except (smtplib.SMTPException, OSError) as error:
        raise _away(error) from None


_SAYS = {
    535: ": it does not know the user or the password",
    530: ": it wants a login",
    550: ": it does not take this mail",
}


def _connected(letter: Letter) -> smtplib.SMTP:
    via, context = letter.via, ssl.create_default_context()
    if via.tls == "tls":
        return smtplib.SMTP_SSL(via.host, via.port, timeout=_ONE_S, context=context)
    server = smtplib.SMTP(via.host, via.port, timeout=_ONE_S)
    if via.tls == "starttls":
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server
