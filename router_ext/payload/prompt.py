"""From a request's body to the chain of prefixes that an engine's cache may hold.

Keys agree where engines would render the same prompt, see ``prompt_turn``. Tools count in the order that the client
sent, and so do the keys inside their schemas: engines put both into the prompt as they come.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from router_ext.model.prefix import Boundary, Prompt
from router_ext.model.request import Api
from router_ext.payload.envelope import Envelope
from router_ext.payload.prompt_chain import BLOCK, START, Chain
from router_ext.payload.prompt_completion import add_completion
from router_ext.payload.prompt_turn import NotSerialisableError, add_turn, canonical

MAX_TURNS: Final = 10_000
"""Turns that are read of one request; they take about 20 ms, during which nothing else is served."""

_COMMON: Final = ("cache_salt", "chat_template", "chat_template_kwargs", "mm_processor_kwargs")
_SETTINGS: Final[dict[Api, tuple[str, ...]]] = {
    Api.CHAT: (*_COMMON, "reasoning_effort"),
    Api.COMPLETIONS: ("cache_salt",),
    Api.RESPONSES: (*_COMMON, "reasoning", "previous_response_id", "conversation", "prompt"),
    Api.MESSAGES: (*_COMMON, "thinking"),
}
"""Fields that change the beginning of the prompt, or keep caches apart, without a text of their own."""

_OPENING: Final = ("tools", "functions", "documents")
"""Fields that templates render before the turns."""


class PromptStart(Struct, frozen=True):
    """The chain over the first ``turns`` turns of a prompt, to go on from when they come again.

    ``opened`` is the key behind what templates render before the turns: with another model, other tools or settings the
    start is of no use. The rest is the state of the ``Chain``.
    """

    opened: bytes
    turns: int
    key: bytes
    size: int
    boundaries: tuple[Boundary, ...]
    begun: bool


class PromptChain(Struct, frozen=True):
    """A prompt as it was read. ``prompt`` is for looking up what a cache may hold.

    ``written``, ``key`` and ``size`` are what an engine holds once it has served the prompt. ``open`` says that an
    answer may follow as the next turn. ``start`` is where a longer prompt can go on, None where it cannot.
    """

    prompt: Prompt = Prompt()
    written: tuple[Boundary, ...] = ()
    key: bytes = START
    size: int = 0
    open: bool = False
    start: PromptStart | None = None

    def extended(self, answer: Sequence[object] = ()) -> Prompt:
        """What the engine that served the prompt holds afterwards, to be inserted into a pin table.

        ``answer`` has the turns that the client will send back as part of its next request: one assistant message
        (``role``, ``content``, ``tool_calls``) of the chat and messages APIs, the output items of the responses API,
        nothing when the answer is unknown or the API is completions. Never raises.
        """
        if not (self.open and answer):
            return Prompt(self.written, self.size)
        chain = Chain(self.key, self.size, self.written, begun=True)
        try:
            for turn in answer:
                add_turn(chain, turn)
        except NotSerialisableError:
            pass
        return Prompt(chain.kept(), chain.size)


def read_prompt(api: Api, model: str, envelope: Envelope, start: PromptStart | None = None) -> PromptChain:
    """Reads the prompt of a request body. ``model`` identifies the model or adapter that serves it. ``start`` is that
    of a prompt whose turns are known to be the first of this one; the result is the same as without it.

    Never raises: what has no known shape counts as its JSON, and a part that no key can stand for ends the chain, with
    the body's length as the prompt's size. Embeddings, and bodies without a prompt, give the empty chain.

    A request of a single turn shorter than one block has no boundary to look up, but leaves one for the next turn.
    """
    if api is Api.EMBEDDINGS:
        return PromptChain()
    chain = Chain()
    try:
        _open(chain, api, model, envelope.fields)
        opened = chain.key
        known = 0
        if start is not None and start.opened == opened:
            chain, known = Chain(start.key, start.size, start.boundaries, begun=start.begun), start.turns
        completion = api is Api.COMPLETIONS
        count = add_completion(chain, envelope.fields) if completion else _add_turns(chain, api, envelope, known)
    except NotSerialisableError:
        return _cut(chain, envelope)
    if count > MAX_TURNS:
        return _cut(chain, envelope)
    if count == 0:
        return PromptChain()
    written = chain.kept()
    shared = () if count == 1 and chain.size < BLOCK else written
    end = PromptStart(opened, count, chain.key, chain.size, tuple(chain.boundaries), chain.begun)
    return PromptChain(Prompt(shared, chain.size), written, chain.key, chain.size, not completion, end)


def _cut(chain: Chain, envelope: Envelope) -> PromptChain:
    written, size = chain.kept(), max(chain.size, len(envelope.raw))
    return PromptChain(Prompt(written, size), written, chain.key, size)


def _open(chain: Chain, api: Api, model: str, fields: dict[str, object]) -> None:
    settings = {name: fields[name] for name in _SETTINGS[api] if fields.get(name)}
    chain.link(b"s:", canonical((model, settings)), 0)
    opening = {name: fields[name] for name in _OPENING if fields.get(name)} if api is not Api.COMPLETIONS else {}
    if opening:
        piece = canonical(opening, in_order=True)
        chain.link(b"o:", piece, len(piece))
        chain.mark()


def _add_turns(chain: Chain, api: Api, envelope: Envelope, known: int) -> int:
    """Adds the turns behind the ``known`` ones, up to ``MAX_TURNS``, and returns how many there are in all."""
    turns = _turns(api, envelope.fields)
    for turn in turns[known:MAX_TURNS]:
        add_turn(chain, turn)
    return len(turns)


def _turns(api: Api, fields: dict[str, object]) -> list[object]:
    """The system prompt that stands in a field of its own, as a first turn, and the turns."""
    turns = fields.get("input" if api is Api.RESPONSES else "messages")
    if api is Api.RESPONSES and isinstance(turns, str):
        turns = [{"role": "user", "content": turns}]
    if not (isinstance(turns, list) and turns):
        return []
    system = fields.get({Api.RESPONSES: "instructions", Api.MESSAGES: "system"}.get(api, ""))
    return [{"role": "system", "content": system}, *turns] if system else turns
