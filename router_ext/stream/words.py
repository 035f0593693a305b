"""The words in which the inference APIs speak of token counts and of a stream's end."""

from typing import Final

from router_ext.model.outcome import StreamEnd
from router_ext.model.request import Api

COUNTS: Final[dict[str, str]] = {
    "prompt_tokens": "prompt_tokens",
    "input_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "output_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "cache_read_input_tokens": "cached_tokens",
}
"""JSON key of an answer → field of ``Usage``: chat completions, completions and embeddings; responses; messages."""

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
