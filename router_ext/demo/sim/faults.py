"""Faults of a simulated engine, set by a test or by ``POST /sim/faults``, and the board that hands them out."""

import msgspec

NOT_JSON = '{"answer": "cut off in the'


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What goes wrong. All of them apply to inference requests, except the two of the health check.

    ``status``: answer with this HTTP status, and ``Retry-After: retry_after_s`` when that is set. ``delay_s``: before
    the headers. ``first_token_delay_s``: after the prefill, and after the headers of a stream. ``hang``: never answer.
    ``cut_after_events``: close the connection after so many events of a stream, without a last chunk. ``cut_body``:
    close it in the middle of a plain body. ``content``: what all answers say. ``bad_json``: that it is no JSON.
    ``bad_body``: the body (or the first event) is no JSON. ``error_event``: a stream ends with an error event after
    ``error_after_events`` events, a plain answer is a 500. ``refuse``: every connection is closed without a byte,
    health checks included. ``count``: only the next so many matching requests. ``paths``: only paths that begin with
    one of these; empty: all.
    """

    status: int | None = None
    retry_after_s: int | None = None
    delay_s: float = 0.0
    first_token_delay_s: float = 0.0
    cut_after_events: int | None = None
    cut_body: bool = False
    content: str | None = None
    bad_json: bool = False
    bad_body: bool = False
    error_event: bool = False
    error_after_events: int = 0
    hang: bool = False
    refuse: bool = False
    health_status: int | None = None
    health_delay_s: float = 0.0
    count: int | None = None
    paths: tuple[str, ...] = ()

    @property
    def said(self) -> str | None:
        """The content of every answer, None where it is generated."""
        return NOT_JSON if self.bad_json else self.content

    @property
    def event_limit(self) -> int | None:
        """After how many events a stream breaks, None when it does not."""
        return self.error_after_events if self.error_event else self.cut_after_events


NO_FAULTS = Faults()


class FaultBoard:
    """The faults in force, and how many requests they hit."""

    def __init__(self) -> None:
        self.current = NO_FAULTS
        self.applied = 0
        self._left: int | None = None

    def set(self, faults: Faults) -> None:
        """Replace what is in force."""
        self.current = faults
        self._left = faults.count

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self.set(NO_FAULTS)

    def take(self, path: str) -> Faults:
        """The faults of one inference request to ``path``; each call uses up one of ``count``."""
        faults = self.current
        if faults is NO_FAULTS or self._left == 0 or not (faults.paths == () or path.startswith(faults.paths)):
            return NO_FAULTS
        if self._left is not None:
            self._left -= 1
        self.applied += 1
        return faults


def read_faults(body: bytes) -> Faults:
    """Faults from a JSON object; an empty body means none. Raises msgspec.DecodeError for what cannot be understood."""
    return msgspec.json.decode(body, type=Faults) if body else NO_FAULTS
