"""One turn of a session: from the request that continues it to the answer that is kept."""

from dataclasses import dataclass, field
from typing import Final

from router_ext.model.outcome import StreamEnd, Usage
from router_ext.model.session import Turn
from router_ext.payload.answer_message import StreamedMessage, plain_message
from router_ext.payload.inference import InferenceBody
from router_ext.payload.prompt import PromptStart
from router_ext.stream.answer import StreamReader, UsageReader
from router_ext.stream.sse import WholeEvents

DONE: Final = b"[DONE]"
"""The data of a stream's last event."""


class PlainAnswer:
    """An answer that is not streamed. It is ``complete`` at its end only, and has no first token."""

    complete: Final = False
    has_token: Final = False

    def __init__(self) -> None:
        self._usage = UsageReader()
        self._body: list[bytes] = []

    def feed(self, piece: bytes, *, end: bool) -> bytes:
        """Takes the next bytes, the last ones with ``end``; returns those that may go on."""
        self._usage.feed(piece)
        self._body.append(piece)
        return piece

    @property
    def usage(self) -> Usage | None:
        """The engine's token counts."""
        return self._usage.usage

    def message(self) -> bytes | None:
        """The message to keep, None when the answer is no whole one."""
        return plain_message(b"".join(self._body))


class StreamedAnswer:
    """An event stream in pieces. ``complete`` once its last event has come.

    What goes on ends with an event until then: a client may act on the last event before the blank line behind it, and
    an error event can follow only there.
    """

    def __init__(self) -> None:
        self._reader = StreamReader()
        self._message = StreamedMessage()
        self._events = WholeEvents()
        self.complete = False

    def feed(self, piece: bytes, *, end: bool) -> bytes:
        """Takes the next bytes, the last ones with ``end``; returns those that may go on."""
        for data in self._reader.feed(piece):
            if data == DONE:
                self.complete = True
            else:
                self._message.feed(data)
        ready = self._events.feed(piece)
        if end or self.complete:
            ready, self._events = ready + self._events.rest, WholeEvents()
        return ready

    @property
    def has_token(self) -> bool:
        """True once the first token has come."""
        return self._reader.has_token

    @property
    def usage(self) -> Usage | None:
        """The engine's token counts."""
        return self._reader.usage

    def message(self) -> bytes | None:
        """The message to keep, None when the stream did not finish or failed."""
        return self._message.message() if self._reader.end is StreamEnd.WHOLE else None


@dataclass(slots=True)
class OpenTurn:
    """A turn whose answer has not ended.

    ``new`` are the messages that it adds beside the answer; ``known_tokens`` is the stored context, 0 for a new
    session, and ``new_tokens`` what the new messages are estimated at. ``creates`` and ``ends`` the session. ``sent``
    are all messages that the backend gets; ``start`` is what is known of their prefix chain beforehand, ``chain_end``
    what is known of it once it was read. ``settled``: it was kept, or will never be. ``kept`` is the answer's message
    once it was kept.
    """

    session_id: str
    owner: str
    body: InferenceBody = field(repr=False)
    new: tuple[bytes, ...] = field(repr=False)
    known_tokens: int
    new_tokens: int
    creates: bool = False
    ends: bool = False
    sent: tuple[bytes, ...] = field(default=(), repr=False)
    start: PromptStart | None = field(default=None, repr=False)
    chain_end: PromptStart | None = field(default=None, repr=False)
    settled: bool = False
    kept: bytes | None = field(default=None, repr=False)
    answer: PlainAnswer | StreamedAnswer | None = field(default=None, repr=False)

    @property
    def tokens(self) -> int:
        """The context that the backend is sent, as far as it is known."""
        return self.known_tokens + self.new_tokens

    @property
    def has_token(self) -> bool:
        """True once a streamed answer has brought its first token."""
        return self.answer is not None and self.answer.has_token

    def answered(self, *, events: bool) -> PlainAnswer | StreamedAnswer:
        """The answer, which begins with the first call."""
        if self.answer is None:
            self.answer = StreamedAnswer() if events else PlainAnswer()
        return self.answer

    def turn(self, message: bytes, usage: Usage | None) -> Turn:
        """What is kept when ``message`` answers it."""
        tokens = usage.prompt_tokens + usage.completion_tokens if usage and usage.prompt_tokens else None
        return Turn((*self.new, message), tokens, self.new_tokens)
