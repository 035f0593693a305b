"""The body modes of Envoy and what the processor does in each, written out by hand."""

from typing import Final

from tests.fakes.wire_messages import Mode, ProcessingModes

NONE: Final = Mode.NONE
STREAMED: Final = Mode.STREAMED
BUFFERED: Final = Mode.BUFFERED
PARTIAL: Final = Mode.BUFFERED_PARTIAL
DUPLEX: Final = Mode.FULL_DUPLEX_STREAMED

BODY_MODES: Final = (NONE, STREAMED, BUFFERED, PARTIAL, DUPLEX)

ALL_MODES: Final = tuple(
    ProcessingModes(request, response, before_headers)
    for request in BODY_MODES
    for response in BODY_MODES
    for before_headers in (False, True)
    if not before_headers or STREAMED in (request, response)
)
"""Every pair; ``send_body_without_waiting_for_header_response`` where one half is streamed."""

PRODUCT: Final = ProcessingModes(BUFFERED, STREAMED)
"""The modes of the generated configuration."""

REQUEST_MODES: Final = (
    ProcessingModes(NONE, STREAMED),
    ProcessingModes(STREAMED, STREAMED),
    ProcessingModes(STREAMED, STREAMED, before_headers=True),
    ProcessingModes(BUFFERED, STREAMED),
    ProcessingModes(PARTIAL, STREAMED),
    ProcessingModes(DUPLEX, STREAMED),
    ProcessingModes(DUPLEX, DUPLEX),
)
"""Every way in which a request is shown, and the pair that may never be left."""


def shows_body(modes: ProcessingModes) -> bool:
    """True where the processor sees the body before it must decide."""
    return modes.request in (BUFFERED, PARTIAL, DUPLEX) or (modes.request is STREAMED and modes.before_headers)


def can_relay(modes: ProcessingModes) -> bool:
    """True where Envoy lets the processor send another response than the upstream's."""
    return modes.request is not DUPLEX and not modes.before_headers


SEEING_MODES: Final = tuple(modes for modes in REQUEST_MODES if shows_body(modes))
"""Those in which a body can be read, and refused."""
