"""The words in which the inference APIs speak of token counts and of a stream's end."""

from collections.abc import Mapping
from typing import Final

from router_ext.model.outcome import StreamEnd, Usage
from router_ext.model.request import Api

CACHE_READ: Final = "cache_read_tokens"
CACHE_WRITTEN: Final = "cache_written_tokens"

COUNTS: Final[dict[str, str]] = {
    "prompt_tokens": "prompt_tokens",
    "input_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "output_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "cache_read_input_tokens": CACHE_READ,
    "cache_creation_input_tokens": CACHE_WRITTEN,
}
"""JSON key of an answer → what it counts: a field of ``Usage``, or one that ``usage_of`` knows."""


def usage_of(counts: Mapping[str, int]) -> Usage | None:
    """The usage that an answer's ``counts`` make; None where there are none.

    In chat completions, completions, embeddings and responses the prompt's count holds the cached tokens. In messages
    it does not: what was read from the cache, and what was written to it, comes on top.
    """
    if not counts:
        return None
    prompt, completion = counts.get("prompt_tokens", 0), counts.get("completion_tokens", 0)
    if CACHE_READ in counts or CACHE_WRITTEN in counts:
        read = counts.get(CACHE_READ, 0)
        return Usage(prompt + read + counts.get(CACHE_WRITTEN, 0), completion, read)
    return Usage(prompt, completion, counts.get("cached_tokens"))


CHOICES: Final = "choices"
TYPED: Final = "typed"

STREAMS: Final[dict[str, str]] = {
    Api.CHAT: CHOICES,
    Api.COMPLETIONS: CHOICES,
    Api.RESPONSES: TYPED,
    Api.MESSAGES: TYPED,
}
"""Path of a client → the kind of events that the API streams: nameless ones with choices, or named ones with a type."""

LAST_WORDS: Final[dict[str, str]] = {
    "error": StreamEnd.ERROR,
    "response.failed": StreamEnd.ERROR,
    "response.completed": StreamEnd.WHOLE,
    "response.incomplete": StreamEnd.WHOLE,
    "message_stop": StreamEnd.WHOLE,
}
"""Names and types of the events of the responses and messages APIs that say how the stream ends."""

_ERROR: Final = (
    '{"message":"The backend ended the stream early.","type":"api_error","param":null,"code":"stream_truncated"}'
)

ENDINGS: Final[dict[str, str]] = {
    CHOICES: f'data: {{"error":{_ERROR}}}\n\ndata: [DONE]\n\n',
    TYPED: f'event: error\ndata: {{"type":"error","error":{_ERROR}}}\n\n',
}
"""What a client is sent at the end of a stream that broke, by kind."""


def broken_stream(path: str) -> bytes:
    """The last events of a stream that broke, as clients of the API at ``path`` understand them."""
    return ENDINGS[STREAMS.get(path, CHOICES)].encode()
