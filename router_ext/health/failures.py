"""Why an exchange failed, as a label."""

from router_ext.model.outcome import AccessRecord

CLIENT_LEFT = "client_left"
_CLIENT_FLAGS = frozenset({"DC", "DR", "DPE"})
_UNREACHABLE_FLAGS = frozenset({"UF", "UH", "NC", "DF", "UO", "URX"})
_CUT_FLAGS = frozenset({"UC", "UR", "LR", "UPE"})
_TIMEOUT_FLAGS = frozenset({"UT", "SI", "DT", "UMSDR"})


def failure_of(record: AccessRecord) -> str | None:
    """The reason why an exchange failed, None when it did not.

    A client that left is a reason of its own: it says nothing about the backend. 4xx answers are no failures.
    """
    flags = frozenset(record.flags)
    for reason, signs in (
        (CLIENT_LEFT, _CLIENT_FLAGS),
        ("upstream_unreachable", _UNREACHABLE_FLAGS),
        ("timeout", _TIMEOUT_FLAGS),
        ("upstream_cut", _CUT_FLAGS),
    ):
        if flags & signs:
            return reason
    return "upstream_5xx" if record.status >= 500 else None


def succeeded(record: AccessRecord) -> bool:
    """True for a whole 2xx answer."""
    return 200 <= record.status < 300 and failure_of(record) is None
