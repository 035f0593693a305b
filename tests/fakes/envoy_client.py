"""A fake Envoy: plays one HTTP exchange against an external processor as the filter does, and holds it to the protocol.

Its codec is ``envoy-data-plane``, which shares nothing with the processor's own. Whatever real Envoy answers with an
error, waits for in vain, or lets through cut or doubled, raises ``ProtocolViolation``.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Final

import grpc

from tests.fakes.wire_half import NO_LIMIT, Half, Step
from tests.fakes.wire_http import Client, Outcome, Request, Response, Upstream
from tests.fakes.wire_messages import REQUEST, RESPONSE, WAIT, Mode, ProcessingModes, ProtocolViolation, Reply
from tests.fakes.wire_stream import DEADLINE_S, ClientGone, ProcessStream

IMMEDIATE: Final = "immediate_response"

Respond = Callable[[Upstream], Response]


@dataclass(frozen=True, slots=True)
class Act:
    """What happens besides. Messages and replies count from 1 over the whole exchange.

    The client leaves right after a message was sent, or right after a reply was read; Envoy closes its side after a
    message. ``repeats_last_chunk`` shows the last chunk of a request without trailers twice. ``buffer`` is the room for
    BUFFERED_PARTIAL in bytes.
    """

    gone_after_message: int | None = None
    gone_after_reply: int | None = None
    closes_after_message: int | None = None
    repeats_last_chunk: bool = False
    buffer: int = NO_LIMIT


class EnvoyClosed(Exception):  # noqa: N818 - an event, not an error
    """Envoy has closed its side of the stream."""


@dataclass(frozen=True, slots=True)
class FakeEnvoy:
    """Plays exchanges on a channel in given modes."""

    channel: grpc.aio.Channel
    modes: ProcessingModes = field(default_factory=ProcessingModes)
    deadline_s: float = DEADLINE_S

    async def exchange(
        self, request: Request, respond: Response | Respond | None = None, act: Act | None = None
    ) -> Outcome:
        """Plays one exchange to its end and returns what everyone saw."""
        stream = ProcessStream(self.channel, self.deadline_s)
        play = _Play(stream, self.modes, act or Act())
        try:
            await play.run(request, _responder(respond))
        except ClientGone:
            play.outcome.gone = True
        except EnvoyClosed:
            await stream.close()
        finally:
            stream.cancel()
        return play.outcome


def _responder(respond: Response | Respond | None) -> Respond:
    if callable(respond):
        return respond
    response = Response((b"{}",)) if respond is None else respond
    return lambda _: response


class _Play:
    """One exchange under way."""

    def __init__(self, stream: ProcessStream, modes: ProcessingModes, act: Act) -> None:
        self._stream = stream
        self._modes = modes
        self._act = act
        self._stopped = False
        self._answered: Client | None = None
        self.outcome = Outcome()

    async def run(self, request: Request, respond: Respond) -> None:
        half = self._request_half(request)
        await self._pass(half)
        if self._answered is None:
            half.check_whole()
            body = b"".join(half.body)
            self.outcome.upstream = Upstream(half.headers, body, request.trailers, half.cleared_route)
            await self._respond(respond(self.outcome.upstream))
        self.outcome.client = self._answered or self.outcome.client
        late = await self._stream.close()
        if late:
            raise ProtocolViolation(f"replies to nothing: {[reply.kind for reply in late]}")

    def _request_half(self, request: Request) -> Half:
        modes = self._modes
        return Half(
            REQUEST,
            modes.request,
            modes.before_headers,
            request.header_list(),
            request.chunks,
            request.trailers,
            repeats_last_chunk=self._act.repeats_last_chunk,
            buffer=self._act.buffer if modes.request is Mode.BUFFERED_PARTIAL else NO_LIMIT,
            announce=modes,
        )

    async def _respond(self, response: Response) -> None:
        modes = self._modes
        half = Half(
            RESPONSE,
            modes.response,
            modes.before_headers,
            response.header_list(),
            response.chunks,
            response.trailers,
            replaceable=modes.request is not Mode.FULL_DUPLEX_STREAMED and not modes.before_headers,
        )
        await self._pass(half)
        if self._answered is None:
            half.check_whole()
            status = int(half.headers.get(":status") or 0)
            self.outcome.client = Client(status, half.headers, b"".join(half.body), immediate=False)

    async def _pass(self, half: Half) -> None:
        """Shows a half and applies the replies; from where the processor has left, Envoy goes on alone."""
        steps = list(half.steps())
        if half.duplex:
            await self._pass_duplex(half, steps)
        elif half.pipelined:
            await self._beside(steps, self._pass_in_order(half, steps, sends=False))
        else:
            await self._pass_in_order(half, steps, sends=True)
        if not half.duplex:
            half.body.append(half.unseen)

    async def _pass_in_order(self, half: Half, steps: list[Step], *, sends: bool) -> None:
        for i, step in enumerate(steps):
            reply = await self._reply_to(step, sends=sends)
            if self._answered is not None:
                return
            if reply is None:
                half.pass_on(steps[i:])
                return
            half.apply(step, reply)
            if half.taken_over:
                rest = list(half.steps_after_headers())
                await self._beside(rest, self._collect_rest(half, rest[-1]))
                return
            if half.held and step.kind.endswith("headers"):
                await self._pass_in_order(half, list(half.steps_after_headers()), sends=sends)
                return

    async def _reply_to(self, step: Step, *, sends: bool) -> Reply | None:
        if sends and not await self._send(step):
            return None
        return await self._receive(step.kind)

    async def _pass_duplex(self, half: Half, steps: list[Step]) -> None:
        if self.outcome.left:
            raise ProtocolViolation(f"the processor has left before the {half.side}, which goes on through it only")
        await self._beside(steps, self._collect(half, steps))

    async def _collect(self, half: Half, steps: list[Step]) -> None:
        """First the headers, then pieces of the body until its end, then the trailers."""
        if not await self._collect_one(half, steps[0]):
            return
        if len(steps) > 1:
            await self._collect_rest(half, steps[-1])

    async def _collect_rest(self, half: Half, last: Step) -> None:
        """Pieces of the body, then the trailers, if those come last. A body that was taken over ends without them."""
        trailers = last if last.kind.endswith("trailers") and not half.taken_over else None
        while trailers is not None or not half.ended:
            reply = await self._receive(f"{half.side}_body", trailers.kind if trailers else "", timed=False)
            if self._answered is not None:
                return
            if reply is None:
                raise ProtocolViolation(f"the processor left in the middle of the {half.side}")
            if trailers is not None and reply.kind == trailers.kind:
                half.apply(trailers, reply)
                return
            half.take_streamed(reply)

    async def _collect_one(self, half: Half, step: Step) -> bool:
        reply = await self._receive(step.kind)
        if self._answered is not None:
            return False
        if reply is None:
            raise ProtocolViolation(f"the processor left in the middle of the {half.side}")
        half.apply(step, reply)
        return True

    async def _beside(self, steps: list[Step], receiving: Coroutine[None, None, None]) -> None:
        """Sends and receives at once, since either may have to wait for the other."""
        pump = asyncio.create_task(self._pump(steps))
        try:
            await receiving
        except BaseException:
            self._stream.cancel()
            raise
        finally:
            self._stopped = self._answered is not None
            await asyncio.wait((pump,))
            failure = None if pump.cancelled() else pump.exception()
        if failure is not None:
            raise failure

    async def _pump(self, steps: list[Step]) -> None:
        for step in steps:
            if self._stopped or not await self._send(step):
                return

    async def _send(self, step: Step) -> bool:
        """False when the processor has left."""
        if self.outcome.left or not await self._stream.send(step.message):
            self.outcome.left = True
            return False
        self.outcome.sent.append(step.kind)
        number = len(self.outcome.sent)
        if number == self._act.gone_after_message:
            self._stream.leave()
            raise ClientGone
        if number == self._act.closes_after_message:
            await self._stream.half_close()
            raise EnvoyClosed
        return True

    async def _receive(self, *kinds: str, timed: bool = True) -> Reply | None:
        """The next reply, which must be of one of these kinds; None when the processor has left, or has answered.

        ``timed``: Envoy waits for it with a clock, whose time the processor may change once.
        """
        reply = await self._stream.receive()
        if timed and reply is not None and reply.kind == WAIT:
            self.outcome.waits.append(reply.wait_s)
            reply = await self._stream.receive()
        if reply is None:
            if self._stream.closed:
                raise EnvoyClosed
            self.outcome.left = True
            return None
        if reply.kind == IMMEDIATE:
            self._answer(reply, kinds[0])
            return None
        if reply.kind not in kinds:
            raise ProtocolViolation(f"{reply.kind} in reply to {kinds[0]}")
        self._note(reply)
        return reply

    def _note(self, reply: Reply) -> None:
        for namespace, values in reply.metadata().items():
            self.outcome.metadata.setdefault(namespace, {}).update(values)
        self.outcome.answered.append(reply.kind)
        if len(self.outcome.answered) == self._act.gone_after_reply:
            self._stream.leave()
            raise ClientGone

    def _answer(self, reply: Reply, kind: str) -> None:
        if kind.startswith(RESPONSE) and not kind.endswith("headers"):
            raise ProtocolViolation("an immediate response after the response headers have gone on")
        self._answered = reply.client()
        self._note(reply)
