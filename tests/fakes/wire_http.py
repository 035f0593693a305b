"""The HTTP side of a fake Envoy: what a client sends, what an upstream sees and answers, what the client gets."""

from dataclasses import dataclass, field
from typing import Final

CHAT: Final = "/v1/chat/completions"

Pairs = tuple[tuple[str, str], ...]


class HeaderList:
    """Header lines in order. Names are lower case; one name may stand several times."""

    def __init__(self, pairs: Pairs = ()) -> None:
        self.pairs = list(pairs)

    def get(self, name: str) -> str | None:
        """The first value of a name."""
        return next((value for key, value in self.pairs if key == name), None)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def add(self, name: str, value: str) -> None:
        """One line more."""
        self.pairs.append((name, value))

    def overwrite(self, name: str, value: str) -> None:
        """One line in the place of all of that name."""
        self.remove(name)
        self.add(name, value)

    def remove(self, name: str) -> None:
        """No line of that name."""
        self.pairs = [(key, value) for key, value in self.pairs if key != name]


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sends. ``chunks`` are the pieces in which its body reaches Envoy; no chunk means no body.

    ``content-length`` is added unless there are trailers. ``trailers`` None means that the body ends the request.
    """

    chunks: tuple[bytes, ...] = ()
    method: str = "POST"
    target: str = CHAT
    headers: Pairs = (("content-type", "application/json"),)
    trailers: Pairs | None = None

    @property
    def body(self) -> bytes:
        """All chunks."""
        return b"".join(self.chunks)

    def header_list(self) -> HeaderList:
        """Pseudo headers first, as Envoy shows them."""
        pseudo = ((":method", self.method), (":path", self.target), (":authority", "router.test"), (":scheme", "http"))
        return _sized(HeaderList((*pseudo, *self.headers)), self.chunks, self.trailers)


@dataclass(frozen=True, slots=True)
class Response:
    """What an upstream answers. No chunk means that the headers end it."""

    chunks: tuple[bytes, ...] = ()
    status: int = 200
    headers: Pairs = (("content-type", "application/json"),)
    trailers: Pairs | None = None
    sized: bool = False

    @property
    def body(self) -> bytes:
        """All chunks."""
        return b"".join(self.chunks)

    def header_list(self) -> HeaderList:
        """``:status`` first; ``content-length`` only for a sized answer."""
        headers = HeaderList(((":status", str(self.status)), *self.headers))
        return _sized(headers, self.chunks, self.trailers) if self.sized else headers


def _sized(headers: HeaderList, chunks: tuple[bytes, ...], trailers: Pairs | None) -> HeaderList:
    if chunks and trailers is None:
        headers.add("content-length", str(sum(map(len, chunks))))
    return headers


@dataclass(frozen=True, slots=True)
class Upstream:
    """A request as the upstream gets it. ``rerouted`` says that the route was chosen after the processor's edits."""

    headers: HeaderList
    body: bytes
    trailers: Pairs | None
    rerouted: bool

    @property
    def method(self) -> str:
        """The request's method."""
        return self.headers.get(":method") or ""

    @property
    def target(self) -> str:
        """Path and query."""
        return self.headers.get(":path") or ""

    @property
    def cluster(self) -> str | None:
        """The cluster that Envoy routes to by header; None where the default route is taken."""
        return self.headers.get("x-kronaxis-cluster") if self.rerouted else None


@dataclass(frozen=True, slots=True)
class Client:
    """An answer as the client gets it. ``immediate`` says that the processor gave it."""

    status: int
    headers: HeaderList
    body: bytes
    immediate: bool


@dataclass(slots=True)
class Outcome:
    """One exchange as it went.

    ``sent`` and ``answered`` are the kinds of the messages that the processor was shown and those that it replied to,
    in order; ``waits`` are the seconds for which it asked Envoy to wait for a reply. ``left`` says that the processor
    ended the stream before Envoy had shown it everything. ``upstream`` stays None when the request never got there,
    ``client`` when nobody waited for the answer.
    """

    upstream: Upstream | None = None
    client: Client | None = None
    metadata: dict[str, dict[str, object]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    left: bool = False
    gone: bool = False

    @property
    def decision_id(self) -> str:
        """The id in the dynamic metadata, "" when there is none."""
        return str(self.metadata.get("router_ext", {}).get("id", ""))
