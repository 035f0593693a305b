"""Refusals with the bodies that vLLM sends."""

import json
from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True)
class ApiError:
    """One refusal. ``kind`` and ``param`` are the ``type`` and ``param`` of the error object."""

    status: int
    message: str
    kind: str = "BadRequestError"
    param: str | None = None

    def _object(self) -> dict[str, object]:
        return {
            "error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.status},
        }

    def body(self) -> bytes:
        """The compact body of a plain answer."""
        return orjson.dumps(self._object())

    def event(self) -> bytes:
        """The event inside a stream; vLLM writes this one with spaces after separators."""
        return b"data: " + json.dumps(self._object()).encode() + b"\n\n"

    def anthropic_body(self) -> bytes:
        """The same refusal in the shape of the messages API."""
        return orjson.dumps({"type": "error", "error": {"type": self.kind, "message": self.message}})


UNAUTHORIZED_BODY = b'{"error":"Unauthorized"}'

QUEUE_FULL = ApiError(
    503,
    "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.",
    "Service Unavailable",
)
ENGINE_DEAD = ApiError(
    500,
    "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "InternalServerError",
)
NO_MESSAGES = ApiError(400, "Cannot apply chat template to an empty conversation. Provide at least one message.")


def _invalid(detail: str, param: str | None) -> ApiError:
    return ApiError(400, f"1 validation error:\n  {detail}", "Bad Request", param)


def invalid_json(length: int) -> ApiError:
    """The body is no JSON; ``length`` is its size in bytes."""
    detail = {
        "type": "json_invalid",
        "loc": f"body.{length}",
        "msg": "JSON decode error",
        "input": "<dict of 0 items>",
        "ctx": {"error": "Expecting value"},
    }
    return _invalid(str(detail), f"body.{length}")


def missing_field(name: str, fields: int) -> ApiError:
    """A required field is absent from an object of ``fields`` members."""
    detail = {"type": "missing", "loc": f"body.{name}", "msg": "Field required", "input": f"<dict of {fields} items>"}
    return _invalid(str(detail), f"body.{name}")


def wrong_type(name: str, expected: str) -> ApiError:
    """A field is not of the ``expected`` type."""
    detail = {"type": f"{expected}_type", "loc": f"body.{name}", "msg": f"Input should be a valid {expected}"}
    return _invalid(str(detail), f"body.{name}")


def unsupported_media_type() -> ApiError:
    """The content type is not JSON."""
    return _invalid("Unsupported Media Type: Only 'application/json' is allowed", None)


def unknown_model(name: str, served: tuple[str, ...]) -> ApiError:
    """No such model or adapter."""
    message = f"The model `{name}` does not exist. Valid aliases: {', '.join(served)}."
    return ApiError(404, message, "NotFoundError", "model")


def prompt_too_long(limit: int) -> ApiError:
    """The prompt has more than ``limit`` tokens."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your prompt contains at least {limit + 1} "
        "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
        f"prompt. (parameter=input_tokens, value={limit + 1})"
    )
    return ApiError(400, message, param="input_tokens")


def not_multimodal(model: str) -> ApiError:
    """An image came to a text model."""
    return ApiError(400, f"{model} is not a multimodal model")


def bad_grammar(detail: str) -> ApiError:
    """The schema of a structured answer cannot be used."""
    return ApiError(400, f"Grammar error: {detail}")


def bad_max_tokens(value: int) -> ApiError:
    """Fewer than one token asked for."""
    return ApiError(400, f"max_tokens must be at least 1, got {value}.", param="max_tokens")


def no_such_path(status: int, phrase: str) -> ApiError:
    """404 for an unknown path, 405 for a known one with another method."""
    return ApiError(status, phrase, phrase)
