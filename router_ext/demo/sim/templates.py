"""How a conversation becomes one text, as a chat template does it: tools first, then the turns with their roles."""

from collections.abc import Iterable
from typing import Any

import orjson

_IMAGE_PARTS = ("image_url", "input_image", "image", "input_audio", "video_url")


class ImagePartError(ValueError):
    """A message holds an image, sound or video and the model reads text only."""


class MessageError(ValueError):
    """A message is not an object with a role, or its content has no known shape."""


def render_chat(messages: Iterable[Any], tools: Any = None, *, multimodal: bool = False) -> bytes:
    """The prompt of a conversation. Equal beginnings of two conversations give equal beginnings of the two prompts.

    Raises MessageError, and ImagePartError unless ``multimodal``.
    """
    head = [f"<|tools|>{orjson.dumps(tools).decode()}\n"] if tools else []
    turns = [_turn(message, multimodal) for message in messages]
    return "".join((*head, *turns, "<|assistant|>\n")).encode()


def last_user_text(messages: Iterable[Any]) -> str:
    """The text of the last user message, empty when there is none."""
    texts = [_content(m.get("content"), True) for m in messages if isinstance(m, dict) and m.get("role") == "user"]
    return texts[-1] if texts else ""


def _turn(message: Any, multimodal: bool) -> str:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise MessageError("a message needs a role")
    calls = message.get("tool_calls")
    called = orjson.dumps(calls).decode() if calls else ""
    return f"<|{message['role']}|>\n{_content(message.get('content'), multimodal)}{called}\n"


def _content(content: Any, multimodal: bool) -> str:
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "".join(_part(part, multimodal) for part in content)
        case _:
            raise MessageError("content must be a string or a list of parts")


def _part(part: Any, multimodal: bool) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise MessageError("a content part must be an object")
    if part.get("type") in _IMAGE_PARTS:
        if not multimodal:
            raise ImagePartError
        return f"<|image|>{orjson.dumps(part).decode()}"
    text = part.get("text", part.get("content", ""))
    return text if isinstance(text, str) else orjson.dumps(text).decode()
