"""One half of an exchange on its way through the processor: what is shown of it, and what the replies do to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from envoy_data_plane.envoy.service.ext_proc.v3 import (
    BodyMutation,
    CommonResponse,
    CommonResponseResponseStatus,
    ProcessingRequest,
)

from tests.fakes.wire_http import HeaderList, Pairs
from tests.fakes.wire_messages import (
    REQUEST,
    Mode,
    ProcessingModes,
    ProtocolViolation,
    Reply,
    apply_edits,
    body_message,
    headers_message,
    trailers_message,
)

NO_LIMIT: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Step:
    """One message to show. ``data`` is the piece of the body in it; a ``repeat`` shows a piece once more."""

    kind: str
    message: ProcessingRequest
    data: bytes = b""
    repeat: bool = False


@dataclass(slots=True)
class Half:
    """A request or a response. ``body`` collects what goes on; ``buffer`` is Envoy's room in BUFFERED_PARTIAL.

    ``replaceable``: the mode may change with the reply to the headers. ``taken_over``: it did, and nothing goes on but
    what the processor sends. ``held``: it did, and nothing goes on before the whole body is answered.
    """

    side: str
    mode: Mode
    before_headers: bool
    headers: HeaderList
    chunks: tuple[bytes, ...]
    trailers: Pairs | None
    repeats_last_chunk: bool = False
    buffer: int = NO_LIMIT
    announce: ProcessingModes | None = None
    replaceable: bool = False
    taken_over: bool = False
    held: bool = False
    body: list[bytes] = field(default_factory=list)
    cleared_route: bool = False
    ended: bool = False
    _sized: bool = False

    @property
    def duplex(self) -> bool:
        """True where nothing goes on but what the processor sends."""
        return self.mode is Mode.FULL_DUPLEX_STREAMED

    @property
    def pipelined(self) -> bool:
        """True where Envoy shows the next message without waiting for a reply."""
        return self.duplex or (self.mode is Mode.STREAMED and self.before_headers)

    def steps(self) -> Iterator[Step]:
        """Every message of this half, in order."""
        end = not self.chunks and self.trailers is None
        message = headers_message(self.side, self.headers, end, self.announce)
        yield Step(f"{self.side}_headers", message)
        self._sized = "content-length" in self.headers
        if self.mode in (Mode.STREAMED, Mode.FULL_DUPLEX_STREAMED):
            # Envoy takes it away after it has shown it, since the length may change.
            self.headers.remove("content-length")
        yield from self.steps_after_headers()

    def steps_after_headers(self) -> Iterator[Step]:
        """The body's messages in the present mode, and the trailers."""
        yield from self._body_steps()
        if self.trailers is not None:
            yield Step(f"{self.side}_trailers", trailers_message(self.side, self.trailers))

    def _body_steps(self) -> Iterator[Step]:
        shown = self.shown()
        for i, data in enumerate(shown):
            end = i == len(shown) - 1 and self.trailers is None and not self.unseen
            step = Step(f"{self.side}_body", body_message(self.side, data, end), data)
            yield step
            if end and self.repeats_last_chunk:
                yield Step(step.kind, step.message, repeat=True)

    def shown(self) -> tuple[bytes, ...]:
        """The pieces of the body as body messages."""
        whole = b"".join(self.chunks)
        match self.mode:
            case Mode.STREAMED | Mode.FULL_DUPLEX_STREAMED:
                return self.chunks
            case Mode.BUFFERED | Mode.BUFFERED_PARTIAL if self.chunks:
                return (whole[: self.buffer],)
            case _:
                return ()

    @property
    def unseen(self) -> bytes:
        """The part of the body that no message shows."""
        return b"".join(self.chunks)[sum(map(len, self.shown())) :]

    def apply(self, step: Step, reply: Reply) -> None:
        """What the reply to a step does. Raises ProtocolViolation where Envoy would not take it."""
        common = reply.common
        self._check(common, step)
        if step.kind.endswith("headers") or step.kind.endswith("body"):
            self.cleared_route = self.cleared_route or common.clear_route_cache
        if common.header_mutation is not None:
            self._edit(step, common)
        if reply.takes_over or reply.holds:
            self._check_override(step)
        if reply.takes_over:
            self._take_over(common)
        if reply.holds:
            self._hold()
        if step.kind.endswith("body"):
            self._take_body(step, common.body_mutation)

    def _check(self, common: CommonResponse, step: Step) -> None:
        if common.status is not CommonResponseResponseStatus.CONTINUE:
            raise ProtocolViolation(f"{step.kind}: status {common.status}")
        if common.clear_route_cache and self.side != REQUEST:
            raise ProtocolViolation("a new route is asked for on the response side")
        if common.body_mutation is not None and not step.kind.endswith("body"):
            raise ProtocolViolation(f"{step.kind}: a body that Envoy ignores")

    def _edit(self, step: Step, common: CommonResponse) -> None:
        early = step.kind.endswith("headers")
        if not early and self.mode not in (Mode.BUFFERED, Mode.BUFFERED_PARTIAL):
            raise ProtocolViolation(f"{step.kind}: header edits after the headers have gone on")
        apply_edits(self.headers, common.header_mutation)

    def _check_override(self, step: Step) -> None:
        if not step.kind.endswith("headers") or not self.replaceable:
            raise ProtocolViolation(f"{step.kind}: a mode override that Envoy ignores")

    def _hold(self) -> None:
        if not self.chunks:
            raise ProtocolViolation("a response is held whose body never comes")
        if self.duplex:
            raise ProtocolViolation("a response is held whose body is being shown already")
        self.mode, self.held = Mode.BUFFERED, True

    def _take_over(self, common: CommonResponse) -> None:
        if not self.chunks and self.trailers is None:
            raise ProtocolViolation("a body is taken over that never comes")
        edits = common.header_mutation
        # Envoy itself removes it in some modes only, and with it cuts the new body.
        kept = self._sized and (edits is None or "content-length" not in edits.remove_headers)
        if kept or "content-length" in self.headers:
            raise ProtocolViolation("a content-length is left over from the body that is replaced")
        self.mode, self.taken_over = Mode.FULL_DUPLEX_STREAMED, True

    def _take_body(self, step: Step, mutation: BodyMutation | None) -> None:
        if mutation is not None and mutation.streamed_response is not None:
            raise ProtocolViolation(f"{step.kind}: a streamed response outside full duplex")
        replaced = None if mutation is None else b"" if mutation.clear_body else mutation.body
        if replaced is not None and step.repeat:
            raise ProtocolViolation("a repeated chunk is replaced by a body of its own")
        if replaced is not None and self.mode is Mode.BUFFERED:
            self._check_length(replaced)
        if not step.repeat:
            self.body.append(step.data if replaced is None else replaced)

    def _check_length(self, body: bytes) -> None:
        if self.headers.get("content-length") != str(len(body)):
            raise ProtocolViolation(f"a new body of {len(body)} bytes, {self.headers.get('content-length')} announced")

    def take_streamed(self, reply: Reply) -> None:
        """A piece of the body in full duplex."""
        common = reply.common
        part = None if common.body_mutation is None else common.body_mutation.streamed_response
        if part is None or common.header_mutation is not None or common.clear_route_cache:
            raise ProtocolViolation(f"{reply.kind}: not a plain streamed response")
        if self.ended:
            raise ProtocolViolation("a piece of the body after its end")
        self.body.append(part.body)
        self.ended = part.end_of_stream

    def pass_on(self, steps: list[Step]) -> None:
        """Envoy alone: pieces that the processor did not answer go on as they came."""
        self.body.extend(step.data for step in steps)

    def check_whole(self) -> None:
        """The body that goes on must be as long as the headers say."""
        announced, size = self.headers.get("content-length"), sum(map(len, self.body))
        if announced is not None and int(announced) != size:
            raise ProtocolViolation(f"{self.side}: {announced} bytes announced, {size} sent on")
