"""A request as routing sees it: facts only, no prompt and no credential."""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class Api(StrEnum):
    """The inference APIs that are routed; the value is the client's path."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    EMBEDDINGS = "/v1/embeddings"
    RESPONSES = "/v1/responses"
    MESSAGES = "/v1/messages"


API_BY_PATH: Final[dict[str, Api]] = {api.value: api for api in Api}

TEXT_PATHS: Final = frozenset({Api.CHAT.value, Api.COMPLETIONS.value})
"""Those whose answers are choices of text."""

TEXT: Final = "text"
VISION: Final = "vision"


class Caller(Struct, frozen=True):
    """What the request headers say about the caller. Empty strings and tier 0 mean that the header was not sent."""

    service: str = ""
    call_type: str = ""
    priority_level: str = ""
    tier: int = 0
    persona_id: str = ""


class InferenceRequest(Struct, frozen=True):
    """One inference request.

    ``model`` is the name that the client sent ("" when it sent none), ``body_bytes`` the size on the wire.
    ``prompt_bytes`` is the size of the body that a backend reads, ``max_output_tokens`` how many it may write at most:
    both are 0 where nothing is to be paid.
    """

    path: str
    caller: Caller
    model: str = ""
    stream: bool = False
    content_type: str = TEXT
    body_bytes: int = 0
    prompt_bytes: int = 0
    max_output_tokens: int = 0
