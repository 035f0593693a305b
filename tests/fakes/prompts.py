"""Short ways from a request to its prompt chain, and to what two of them share."""

import orjson

from router_ext.model.prefix import Prompt
from router_ext.model.request import Api
from router_ext.payload.envelope import Envelope, read_envelope
from router_ext.payload.prompt import PromptChain, read_prompt

LONG = "All work and no play. " * 200
"""4,400 bytes: two whole blocks and a rest."""


def read(api: Api, raw: bytes, model: str = "m") -> PromptChain:
    """The chain of a body."""
    envelope = read_envelope(raw)
    assert isinstance(envelope, Envelope), envelope
    return read_prompt(api, model, envelope)


def chat(*messages: object, model: str = "m", **fields: object) -> PromptChain:
    """The chain of a chat request with these messages."""
    return read(Api.CHAT, orjson.dumps({"model": "m", "messages": messages, **fields}), model)


def message(content: object, role: str = "user", **fields: object) -> dict[str, object]:
    """One message."""
    return {"role": role, "content": content, **fields}


def sizes(prompt: Prompt) -> list[int]:
    """Where its boundaries are."""
    return [boundary.size for boundary in prompt.boundaries]


def shared(left: Prompt, right: Prompt) -> int:
    """The size of the longest prefix that both have a boundary after, 0 when there is none."""
    keys = {boundary.key for boundary in left.boundaries}
    return max((boundary.size for boundary in right.boundaries if boundary.key in keys), default=0)
