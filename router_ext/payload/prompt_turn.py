"""One turn of a conversation as links of the chain: what an engine's template would render of it.

Counted as equal, because engines render them alike: null, empty and missing fields; a text and a single text part that
holds it; fields that templates do not read. Everything else makes another key.
"""

from typing import Final

import orjson

from router_ext.payload.prompt_chain import Chain

MEDIA_SIZE: Final = 4096
"""What an image, sound, video or file counts in a prompt's size, whatever its data: about 1,000 tokens."""

_SYSTEM_ROLES: Final = frozenset({"system", "developer"})
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
_IMAGE_PARTS: Final = frozenset({"image_url", "input_image", "image"})
_MEDIA_PARTS: Final = frozenset({"input_audio", "audio_url", "video_url", "file", "input_file", "document"})

_PASSING: Final = frozenset({"cache_control", "index", "status"})
"""Fields that clients drop, add or move from turn to turn without a change of the prompt."""


class NotSerialisableError(ValueError):
    """A value nests too deeply, or is no JSON: no key can stand for it."""


def canonical(value: object, *, in_order: bool = False) -> bytes:
    """JSON without white space; keys are sorted unless ``in_order``.

    Raises NotSerialisableError for what nests deeper than 254 levels, which is orjson's limit, or is no JSON.
    """
    try:
        return orjson.dumps(value, option=0 if in_order else orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise NotSerialisableError from error


def as_utf8(text: str) -> bytes:
    """UTF-8 of any Python text, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def add_turn(chain: Chain, turn: object) -> None:
    """Adds a message, or any other item of a conversation, and the boundary after it. Raises NotSerialisableError."""
    if isinstance(turn, dict) and isinstance(role := turn.get("role"), str):
        _add_message(chain, role, turn)
        chain.begun = chain.begun or role not in _SYSTEM_ROLES
    else:
        _add_json(chain, b"i:", _lasting(turn))
        chain.begun = True
    chain.mark()


def _add_message(chain: Chain, role: str, message: dict[str, object]) -> None:
    get = message.get
    thought = get("reasoning_content") or get("reasoning") or get("thinking") or None
    head = canonical((role, get("name") or None, get("tool_call_id") or None, thought))
    _add_content(chain, head, get("content"))
    chain.size += len(as_utf8(thought)) if isinstance(thought, str) else 0
    tail = (get("tool_calls") or None, get("function_call") or None, get("refusal") or None)
    if tail != (None, None, None):
        _add_json(chain, b"t:", (_calls(tail[0]), *tail[1:]))


def _add_content(chain: Chain, head: bytes, content: object) -> None:
    """The first text goes with the head, so that a text alone and a part with that text are one link."""
    parts = content if isinstance(content, list) else [content] if content else []
    first = _text(parts[0]) if parts else None
    chain.text(b"m", head, b"" if first is None else first)
    for part in parts if first is None else parts[1:]:
        chain.mark()
        _add_part(chain, part)


def _add_part(chain: Chain, part: object) -> None:
    text, image = _text(part), _image(part)
    if text is not None:
        chain.text(b"p", b"", text)
    elif image is not None:
        chain.link(b"v:", image, MEDIA_SIZE)
    elif _kind(part) in _MEDIA_PARTS:
        chain.link(b"j:", canonical(_lasting(part)), MEDIA_SIZE)
    else:
        _add_json(chain, b"j:", _lasting(part))


def _add_json(chain: Chain, tag: bytes, value: object) -> None:
    piece = canonical(value)
    chain.link(tag, piece, len(piece))


def _kind(part: object) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else ""


def _text(part: object) -> bytes | None:
    if isinstance(part, dict) and _kind(part) in _TEXT_PARTS:
        part = part.get("text")
    return as_utf8(part) if isinstance(part, str) else None


def _image(part: object) -> bytes | None:
    """An image's URL or data, whatever the detail asked for; None when the part is no image or has neither."""
    if not isinstance(part, dict) or _kind(part) not in _IMAGE_PARTS:
        return None
    image = part.get("image_url") or part.get("source") or part.get("file_id")
    if isinstance(image, dict):
        image = image.get("url") or image.get("data") or image.get("file_id")
    return as_utf8(image) if isinstance(image, str) else None


def _calls(calls: object) -> object:
    return [_lasting(call) for call in calls] if isinstance(calls, list) else calls


def _lasting(value: object) -> object:
    """An object without its empty and passing fields; anything else as it is."""
    if not isinstance(value, dict):
        return value
    return {key: field for key, field in value.items() if field is not None and key not in _PASSING}
