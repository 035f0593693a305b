"""A client that sends a turn again until it is answered as a whole."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from benchmarks.chaos.traffic import TOKENS
from benchmarks.chaos.verdict import fault_of_plain, fault_of_stream
from benchmarks.sessions.texts import chat_body, message
from benchmarks.sessions.turns import content_of
from router_ext.model.headers import SESSION_ID

RETRY_S: Final = 0.25
"""Rest before the next try, where the answer names none."""

PATIENCE_S: Final = 30.0
"""For one turn with all of its tries."""


_EXPECTED: Final = ("status 503 ", "Client", "Server")
"""A refusal that tells when to come again; aiohttp's names for a connection or an answer that broke off."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A good answer: the session that it belongs to, and its text."""

    session_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A try without a good answer, in a few words, and how long to wait before the next one, in seconds."""

    why: str
    wait_s: float = RETRY_S


@dataclass(slots=True)
class Progress:
    """What all clients have seen so far. ``open_requests`` have no answer yet; ``seconds`` holds, for each acknowledged
    turn, its time with all tries, and ``tries`` counts those that failed by their reason.
    """

    acknowledged: int = 0
    open_requests: int = 0
    tries: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    _marks: dict[int, asyncio.Event] = field(default_factory=dict)

    async def reached(self, count: int) -> None:
        """Returns when that many turns, more than now, are acknowledged."""
        await self._marks.setdefault(count, asyncio.Event()).wait()

    def acknowledge(self, seconds: float) -> None:
        """One more."""
        self.acknowledged += 1
        self.seconds.append(seconds)
        if self.acknowledged in self._marks:
            self._marks[self.acknowledged].set()


@dataclass(frozen=True, slots=True)
class Client:
    """Sends turns to ``url``."""

    url: str
    http: aiohttp.ClientSession
    progress: Progress

    async def turn(self, text: str, headers: Mapping[str, str], *, stream: bool) -> Kept | None:
        """Sends a user's message until it is answered; None when patience ends."""
        started = time.monotonic()
        body = chat_body([message("user", text)], TOKENS, stream=stream)
        while time.monotonic() - started < PATIENCE_S:
            result = await self._try(body, headers, stream=stream)
            if isinstance(result, Kept):
                self.progress.acknowledge(time.monotonic() - started)
                return result
            self.progress.tries[result.why] += 1
            await asyncio.sleep(result.wait_s)
        return None

    async def _try(self, body: bytes, headers: Mapping[str, str], *, stream: bool) -> Kept | Failed:
        self.progress.open_requests += 1
        try:
            async with self.http.post(self.url, data=body, headers=headers) as answer:
                return read_try(answer.status, answer.headers, await answer.read(), stream=stream)
        except TimeoutError:
            return Failed("client timeout")
        except aiohttp.ClientError as error:
            return Failed(type(error).__name__)
        finally:
            self.progress.open_requests -= 1


def read_try(status: int, headers: Mapping[str, str], body: bytes, *, stream: bool) -> Kept | Failed:
    """What an answer means to the client. Only status 200, a session id and all words are good; a stream also needs its
    ``[DONE]`` and no error event.
    """
    if status != 200:
        return Failed(f"status {status} {_code(body)}", float(headers.get("retry-after", RETRY_S)))
    fault = fault_of_stream(body) if stream else fault_of_plain(body)
    if fault is not None:
        return Failed(fault)
    if SESSION_ID not in headers:
        return Failed("no session id")
    return Kept(headers[SESSION_ID], streamed_text(body) if stream else content_of(body))


def streamed_text(body: bytes) -> str:
    """The text of the chunks of a good event stream."""
    data = (line.removeprefix("data:").strip() for line in body.decode().splitlines() if line.startswith("data:"))
    chunks = (json.loads(text) for text in data if text != "[DONE]")
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def unexpected(tries: Mapping[str, int]) -> int:
    """How many of the failed tries, by their reason, were neither refused with 503 nor cut off."""
    return sum(count for why, count in tries.items() if not why.startswith(_EXPECTED))


def _code(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, LookupError, TypeError):
        return body[:60].decode(errors="replace")
