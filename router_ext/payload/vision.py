"""Does a request hold an image?"""

from typing import Final

from router_ext.payload.envelope import Envelope

_IMAGE_PARTS: Final = frozenset({"image", "image_url", "input_image"})
"""Part types of the chat (``image_url``), responses (``input_image``) and messages (``image``) APIs."""


def holds_image(envelope: Envelope) -> bool:
    """True when a message, or the input of the responses API, has an image part."""
    if b"image" not in envelope.raw:
        return False
    turns = envelope.fields.get("messages") or envelope.fields.get("input")
    return isinstance(turns, list) and any(_is_image(part) for turn in turns for part in _parts(turn))


def _parts(turn: object) -> list[object]:
    content = turn.get("content") if isinstance(turn, dict) else None
    return content if isinstance(content, list) else [turn]


def _is_image(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and kind in _IMAGE_PARTS
