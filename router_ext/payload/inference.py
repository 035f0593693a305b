"""From a request's body to what routing and forwarding need of it."""

from typing import Final

from msgspec import Struct

from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import TEXT, VISION, Caller, InferenceRequest
from router_ext.payload.encoding import decoded
from router_ext.payload.envelope import Envelope, read_envelope
from router_ext.payload.output_limit import max_output_tokens
from router_ext.payload.splice import set_field, spliced
from router_ext.payload.stream_options import ask_for_usage
from router_ext.payload.vision import holds_image

MAX_MODEL_NAME: Final = 256
"""Longest model name, in characters."""


class InferenceBody(Struct, frozen=True):
    """A body that was read. ``compressed`` says that it came in a content coding over the wire, ``hydrated`` that
    messages of a session were put into it.
    """

    request: InferenceRequest
    envelope: Envelope
    compressed: bool
    hydrated: bool = False

    def for_model(self, model: str, *, asks_usage: bool = False) -> bytes | None:
        """The body to send so that the model field says ``model``, and with ``asks_usage`` the stream that the body
        asks for reports its token counts; None when the body can go as it came.
        """
        edits = [] if self.request.model == model else [set_field(self.envelope, "model", model)]
        asked = ask_for_usage(self.envelope) if asks_usage else None
        if asked is not None:
            edits.append(asked)
        if not edits:
            return self.envelope.raw if self.hydrated else None
        return spliced(self.envelope.raw, edits)


class BodyLimits(Struct, frozen=True):
    """``max_bytes`` bounds a body, on the wire and inflated. ``content_type`` asks for the look at the messages."""

    max_bytes: int
    content_type: bool = False


def read_inference(
    path: str, caller: Caller, raw: bytes, content_encoding: str, limits: BodyLimits
) -> InferenceBody | Rejection:
    """Reads a request body, or refuses it with the field that is wrong."""
    if len(raw) > limits.max_bytes:
        return Rejection(Reason.BODY_TOO_LARGE, f"The body is larger than {limits.max_bytes} bytes.")
    text = decoded(raw, content_encoding, limits.max_bytes)
    envelope = text if isinstance(text, Rejection) else read_envelope(text)
    if isinstance(envelope, Rejection):
        return envelope
    model = _model(envelope)
    if isinstance(model, Rejection):
        return model
    content_type = VISION if limits.content_type and holds_image(envelope) else TEXT
    # Engines read 1 and "true" as true as well.
    stream = bool(envelope.fields.get("stream"))
    most = max_output_tokens(path, envelope.fields)
    request = InferenceRequest(path, caller, model, stream, content_type, len(raw), len(envelope.raw), most)
    return InferenceBody(request, envelope, compressed=text is not raw)


def _model(envelope: Envelope) -> str | Rejection:
    """The model name, "" when it is missing or null. Printable ASCII only, as it may travel in a header."""
    model = envelope.fields.get("model")
    if model is None:
        return ""
    if not isinstance(model, str):
        return Rejection(Reason.INVALID_MODEL, "The field 'model' must be a string.", "model")
    if len(model) > MAX_MODEL_NAME or not (model.isascii() and model.isprintable()):
        message = f"The field 'model' must be at most {MAX_MODEL_NAME} printable ASCII characters."
        return Rejection(Reason.INVALID_MODEL, message, "model")
    return model
