"""Who visits the running demo: a client of both ports, the steps that it takes, and what it may expect."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from router_ext.demo.stack import DemoError, Stack

CHAT: Final = "/v1/chat/completions"


class WrongAnswerError(Exception):
    """A step saw something else than it should."""


class Answer:
    """One HTTP answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        """The body as JSON. Raises WrongAnswerError."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise WrongAnswerError(f"status {self.status}, not JSON: {self.body[:200]!r}") from None


class Visitor:
    """A client of the demo."""

    def __init__(self, stack: Stack, session: aiohttp.ClientSession) -> None:
        self.stack = stack
        self._session = session

    async def ask(self, path: str, body: Any = None, **headers: str) -> Answer:
        """Asks Envoy: GET without a body, POST with one; ``bytes`` go as they are."""
        return await self._request("GET" if body is None else "POST", self.stack.ingress + path, body, headers)

    async def operate(self, method: str, path: str, body: Any = None) -> Answer:
        """Asks the admin API."""
        return await self._request(method, self.stack.admin + path, body, {})

    async def _request(self, method: str, url: str, body: Any, headers: Mapping[str, str]) -> Answer:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = names | {"content-type": "application/json"}
        async with self._session.request(method, url, data=data, headers=sent) as answer:
            found = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status, found, await answer.read())

    async def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        async with self._session.get(self.stack.admin + "/metrics") as answer:
            page = await answer.text()
        lines = (line for line in page.splitlines() if line.startswith((name + "{", name + " ")))
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def chat(model: str = "small", max_tokens: int = 8, **more: Any) -> dict[str, Any]:
    """A short chat request."""
    return {"model": model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": max_tokens, **more}


def expect(condition: bool, seen: object) -> None:
    """Raises WrongAnswerError with what was seen."""
    if not condition:
        raise WrongAnswerError(str(seen))


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a step: ``seen`` is what it saw, or what was wrong."""

    title: str
    right: bool
    seen: str

    def __str__(self) -> str:
        return f"{'ok   ' if self.right else 'WRONG'} {self.title}: {self.seen}"


Step = Callable[[Visitor], Awaitable[str]]
"""Returns what it saw. Raises WrongAnswerError when that is not what was promised."""


async def walk(stack: Stack, steps: Sequence[Step], tell: Callable[[Seen], None]) -> bool:
    """Takes every step and tells of each. False after the first wrong answer."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        visitor = Visitor(stack, session)
        for step in steps:
            title = step.__name__.replace("_", " ")
            try:
                seen = await step(visitor)
            except (WrongAnswerError, DemoError, KeyError, aiohttp.ClientError, TimeoutError) as error:
                tell(Seen(title, False, repr(error)))
                return False
            tell(Seen(title, True, seen))
    return True
