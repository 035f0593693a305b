"""Whether a stream will report its token counts, and how it is asked to."""

from typing import Final

from router_ext.model.rejection import Rejection
from router_ext.payload.envelope import Envelope, read_envelope
from router_ext.payload.splice import Edit, set_field

_OPTIONS: Final = "stream_options"
_USAGE: Final = "include_usage"


def ask_for_usage(envelope: Envelope) -> Edit | None:
    """The edit by which the stream that a chat or completions body asks for reports its usage: one member of
    ``stream_options``, which is made where it is missing or null. None for a body that asks already, and for one whose
    ``stream_options`` is no object: what that means is the backend's to say.
    """
    options = envelope.fields.get(_OPTIONS)
    if options is None:
        return set_field(envelope, _OPTIONS, {_USAGE: True})
    if not isinstance(options, dict) or options.get(_USAGE):
        return None
    span = envelope.spans[_OPTIONS]
    inner = read_envelope(envelope.raw[span.start : span.end])
    if isinstance(inner, Rejection):
        return None
    edit = set_field(inner, _USAGE, True)
    return Edit(span.start + edit.start, span.start + edit.end, edit.text)
