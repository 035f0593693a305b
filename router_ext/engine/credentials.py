"""Which credentials travel to a backend."""

from router_ext.model.backend import CREDENTIAL_HEADERS, Backend


def credential_edits(backend: Backend) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Headers to set and to remove so that the backend sees its own key.

    A backend with a key gets that key and none of the caller's credentials. A backend without one gets the caller's
    headers as they came.
    """
    if backend.api_key is None:
        return (), ()
    name = backend.traits.auth_header
    value = backend.traits.auth_scheme + backend.api_key.reveal()
    return ((name, value),), tuple(header for header in CREDENTIAL_HEADERS if header != name)
