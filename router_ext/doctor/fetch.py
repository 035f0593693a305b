"""GET of one admin page, bounded in time and size. Redirects are not followed: a token goes where it was meant to."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp

from router_ext.doctor.node import printable
from router_ext.doctor.pages import NonsenseError
from router_ext.model.secret import Secret

DEADLINE_S: Final = 5.0
MAX_PAGE_BYTES: Final = 64 << 20


class AwayError(OSError):
    """Nobody answered, or not in time. The message says why, fit to be shown."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer. ``ahead_s`` is the clock of its sender against ours, to about a second, None without a Date header."""

    status: int
    body: bytes
    ahead_s: float | None


def admin_session() -> aiohttp.ClientSession:
    """A client for ``Pages``: it asks for no compression and undoes none, so a small answer stays small."""
    return aiohttp.ClientSession(auto_decompress=False, headers={"accept-encoding": "identity"})


class Pages:
    """The pages below one base URL. ``now`` is our wall clock in seconds since 1970; ``deadline_s`` bounds one page."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base: str,
        token: Secret | None = None,
        now: Callable[[], float] = time.time,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._session = session
        self.base = base.rstrip("/")
        self._headers = {"authorization": f"Bearer {token.reveal()}"} if token else {}
        self._now = now
        self._deadline_s = deadline_s

    async def get(self, path: str, accept: frozenset[int] = frozenset({200})) -> Page:
        """The page. Raises AwayError, and NonsenseError for a status that is not among ``accept``."""
        page = await self._get(path)
        if page.status not in accept:
            raise NonsenseError(f"{path.partition('?')[0]} answers with status {page.status}")
        return page

    async def _get(self, path: str) -> Page:
        timeout = aiohttp.ClientTimeout(total=self._deadline_s)
        try:
            async with self._session.get(
                self.base + path, headers=self._headers, allow_redirects=False, timeout=timeout
            ) as answer:
                ahead_s = _ahead(answer.headers, self._now())
                return Page(answer.status, await _bounded(answer.content), ahead_s)
        except TimeoutError:
            raise AwayError(f"no answer within {self._deadline_s:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise AwayError(printable(error.os_error.strerror or str(error.os_error))) from None
        except (aiohttp.ClientConnectionError, aiohttp.InvalidURL) as error:
            raise AwayError(printable(str(error)) or type(error).__name__) from None
        except aiohttp.ClientError:
            raise NonsenseError("the answer is not HTTP") from None


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    body = bytearray()
    async for piece in content.iter_any():
        body += piece
        if len(body) > MAX_PAGE_BYTES:
            raise NonsenseError("the answer is larger than 64 MiB")
    return bytes(body)


def _ahead(headers: Mapping[str, str], now_s: float) -> float | None:
    """A Date header is cut to the second: half a second more is its best guess."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp() + 0.5 - now_s
    except (KeyError, ValueError, OverflowError):
        return None
