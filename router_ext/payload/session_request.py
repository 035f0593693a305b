"""What a request's headers ask of a session, and whose sessions they may speak of."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from msgspec import Struct

from router_ext.model.backend import CREDENTIAL_HEADERS
from router_ext.model.headers import SESSION_CREATE, SESSION_END, SESSION_ID
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import Api
from router_ext.model.session import SESSION_ID as ID_FORM

OWNER_DIGITS: Final = 32
"""Length of an owner's digest in hexadecimal digits: 128 bits."""


class CreateSession(Struct, frozen=True):
    """Keep this conversation as a new session."""


class ContinueSession(Struct, frozen=True):
    """Continue the session, and destroy it after this request when it ``ends``."""

    session_id: str
    ends: bool = False


SessionWish = CreateSession | ContinueSession

_YES: Final = "true"
_NO: Final = "false"


def read_session(headers: Mapping[str, str], path: str) -> SessionWish | Rejection | None:
    """The wish of a request, None when it has none: no session header, or ``false`` in all of them.

    ``headers`` have names in lower case, ``path`` is the client's without a query. Refuses flags other than ``true``
    and ``false``, ids of another form than the router makes, wishes that contradict each other, and any wish for
    another API than chat completions.
    """
    wish = _wish(headers)
    if wish is None or isinstance(wish, Rejection) or path == Api.CHAT:
        return wish
    return Rejection(Reason.SESSIONS_UNSUPPORTED, f"Sessions are for {Api.CHAT} only.")


def _wish(headers: Mapping[str, str]) -> SessionWish | Rejection | None:
    for name in (SESSION_CREATE, SESSION_END):
        if headers.get(name, _NO) not in (_YES, _NO):
            return _bad(name, f"must be {_YES} or {_NO}.")
    creates, ends = headers.get(SESSION_CREATE) == _YES, headers.get(SESSION_END) == _YES
    session_id = headers.get(SESSION_ID)
    if session_id is not None:
        return _continued(session_id, creates=creates, ends=ends)
    if ends:
        return _bad(SESSION_END, f"needs {SESSION_ID}.")
    return CreateSession() if creates else None


def _continued(session_id: str, *, creates: bool, ends: bool) -> ContinueSession | Rejection:
    if not ID_FORM.fullmatch(session_id):
        return _bad(SESSION_ID, "is malformed: it must be an id that this router gave.")
    if creates:
        return _bad(SESSION_CREATE, f"cannot be true together with {SESSION_ID}.")
    return ContinueSession(session_id, ends)


def _bad(header: str, what: str) -> Rejection:
    return Rejection(Reason.BAD_HEADER, f"The header {header} {what}", header)


def owner_of(headers: Mapping[str, str], service: str) -> str:
    """A digest of the caller's credentials and service, ``OWNER_DIGITS`` hexadecimal digits; it differs when any of
    them does.

    The same in every process, so that replicas agree. Callers without a credential are one owner for each service.
    Names in ``headers`` are in lower case.
    """
    digest = sha256()
    for value in (*(headers.get(name, "") for name in CREDENTIAL_HEADERS), service):
        text = value.encode("utf-8", "surrogatepass")
        # The length in front frames a value: no two sets of values give the same bytes.
        digest.update(len(text).to_bytes(8, "big") + text)
    return digest.hexdigest()[:OWNER_DIGITS]
