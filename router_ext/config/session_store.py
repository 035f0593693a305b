"""Fields of ``server.sessions``, and what its store needs."""

import base64
import re
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from router_ext.config import url
from router_ext.config.document import Mapping, Scalar
from router_ext.config.reading import Reading
from router_ext.config.scalars import ScalarReader, UnfitError, boolean, duration, integer, member, size, text_of
from router_ext.config.section import Field, Section, Values, below
from router_ext.config.sections import Sessions, SharedStateKind, StoreKind
from router_ext.model.secret import Secret

_MAX_BYTES: Final = 2**40
_REDIS_URL: Final = re.compile(r"(?:rediss?|unix)://[\x21-\x5b\x5d-\x7e]{1,2048}")
_MALFORMED: Final = (
    "the URL must start with redis://, rediss:// or unix:// and hold printable ASCII without a space or a backslash"
)
_MALFORMED_HOST: Final = (
    "the host or port of the URL is malformed: in a password write '/', '?', '#', '@', '[' and ']' percent-encoded"
)
_DATABASE: Final = re.compile(r"[0-9]{1,5}")
_TLS_FILES: Final = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
_HEX_KEY: Final = re.compile(r"[0-9A-Fa-f]{64}")
_BASE64_KEY: Final = re.compile(r"[A-Za-z0-9+/_-]{43}=?")
_FOR_URLS: Final = str.maketrans("+/", "-_")


def _parse_redis_url(scalar: Scalar) -> Secret:
    value = text_of(scalar)
    if not value:
        raise UnfitError(f"environment variable {scalar.env} is empty" if scalar.env else "the URL is empty")
    url.refuse_braces(value, "the URL")
    if not _REDIS_URL.fullmatch(value):
        raise UnfitError(_MALFORMED)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise UnfitError(_MALFORMED_HOST) from None
    _refuse_place(parts, port)
    _refuse_options(parts)
    return Secret(value, f"env:{scalar.env}" if scalar.env else "inline")


def _refuse_place(parts: SplitResult, port: int | None) -> None:
    if parts.scheme == "unix":
        if parts.hostname or port is not None or not parts.path.strip("/"):
            raise UnfitError("a unix:// URL must name a socket by its absolute path, like unix:///run/redis.sock")
        return
    if not url.is_host(parts.hostname or "") or port == 0 or parts.netloc.endswith(":"):
        raise UnfitError(_MALFORMED_HOST)
    if parts.path.strip("/") and not _DATABASE.fullmatch(parts.path[1:]):
        raise UnfitError("the path of the URL must be the number of a database or nothing")


def _refuse_options(parts: SplitResult) -> None:
    """The client library would take any other option for one of its own, also time limits and unverified TLS."""
    allowed = {"db"} | (_TLS_FILES if parts.scheme == "rediss" else frozenset())
    options = parse_qsl(parts.query, keep_blank_values=True)
    if parts.fragment or not allowed.issuperset(name for name, _ in options):
        raise UnfitError(f"the URL may have no fragment and no options but {', '.join(sorted(allowed))}")
    if not all(_DATABASE.fullmatch(value) for name, value in options if name == "db"):
        raise UnfitError("the option db of the URL must be the number of a database")


def _warn_inline(secret: Secret, scalar: Scalar, reading: Reading) -> Secret:
    if not scalar.env and urlsplit(secret.reveal()).password:
        reading.warn(scalar, "the password stands in the file: move the URL to the environment and write env:NAME")
    return secret


def _parse_encryption_key(scalar: Scalar) -> Secret:
    if not scalar.env:
        raise UnfitError("" if scalar.is_null else "the key must not stand in the file: write env:NAME")
    key = _key_bytes(scalar.text)
    if len(key) != 32:
        raise UnfitError(f"environment variable {scalar.env} must hold 32 bytes as base64 or as 64 hexadecimal digits")
    return Secret(key.hex(), f"env:{scalar.env}")


def _key_bytes(text: str) -> bytes:
    """The bytes of base64, also its form for URLs and without padding, or of hexadecimal digits; none for the rest."""
    if _HEX_KEY.fullmatch(text):
        return bytes.fromhex(text)
    if _BASE64_KEY.fullmatch(text):
        return base64.urlsafe_b64decode(text.rstrip("=").translate(_FOR_URLS) + "=")
    return b""


def _fits_store(values: Values, mapping: Mapping, reading: Reading) -> None:
    match values.get("store"):
        case StoreKind.REDIS if "redis_url" not in mapping.entries:
            node = Scalar(below(mapping, "redis_url"), mapping.line, "")
            reading.problem(node, "is required where store is redis")
        case StoreKind.MEMORY if "encryption_key" in mapping.entries:
            reading.problem(mapping.entries["encryption_key"], "is for store: redis only; the store is memory")


def check_redis_url(values: Values, mapping: Mapping, reading: Reading) -> None:
    """Records a problem where ``sessions.redis_url`` is written for nothing, or is missing for ``shared_state``.
    ``values`` and ``mapping`` are those of ``server``. What the store of sessions needs is not looked at.
    """
    sessions, shared = values.get("sessions"), values.get("shared_state")
    if not isinstance(sessions, Sessions) or sessions.store is StoreKind.REDIS:
        return
    section = mapping.entries.get("sessions")
    if not isinstance(section, Mapping):
        section = Mapping(below(mapping, "sessions"), mapping.line)
    written = section.entries.get("redis_url")
    if written and shared is SharedStateKind.NONE:
        reading.problem(written, "is for store: redis or server.shared_state: redis only; neither is set")
    elif not written and shared is SharedStateKind.REDIS:
        node = Scalar(below(section, "redis_url"), section.line, "")
        reading.problem(node, "is required where server.shared_state is redis")


def check_store_timeout(values: Values, mapping: Mapping, reading: Reading) -> None:
    """Records a problem where the store may take as long as Envoy waits. ``values`` and ``mapping`` are those of
    ``server``. The default time limit matters for Redis only.
    """
    sessions, limit_s = values.get("sessions"), values.get("message_timeout_s")
    section = mapping.entries.get("sessions")
    if not isinstance(section, Mapping) or not isinstance(sessions, Sessions) or not isinstance(limit_s, float):
        return
    written, timeout_s = section.entries.get("store_timeout"), sessions.store_timeout_s
    if timeout_s < limit_s or not (written or sessions.store is StoreKind.REDIS):
        return
    node = written or Scalar(below(section, "store_timeout"), section.line, "")
    limit = f"{timeout_s:g}s is not below server.message_timeout, {limit_s:g}s"
    reading.problem(node, f"{limit}: Envoy would go on without the router first")


REDIS_URL: Final = ScalarReader(
    "a redis://, rediss:// or unix:// URL, best as env:NAME", _parse_redis_url, finish=_warn_inline, private=True
)
ENCRYPTION_KEY: Final = ScalarReader(
    "env:NAME of 32 bytes as base64 or 64 hexadecimal digits", _parse_encryption_key, private=True
)

SESSIONS: Final = Section(
    Sessions,
    (
        Field("enabled", boolean(), "Keep conversations in the router."),
        Field("store", member(StoreKind), "Where: in this process, or in a Redis that replicas share."),
        Field(
            "redis_url",
            REDIS_URL,
            "Where that Redis is; required with it or with `shared_state: redis`, else refused. May hold a password.",
        ),
        Field("encryption_key", ENCRYPTION_KEY, "Key that conversations are encrypted with in Redis."),
        Field("ttl", duration(), "How long an unused session lives.", "ttl_s"),
        Field("max_sessions", integer(1), "Most sessions kept."),
        Field("max_bytes", size(_MAX_BYTES), "Most bytes of all sessions' messages together."),
        Field("max_context_tokens", integer(1), "Most tokens of one session."),
        Field(
            "store_timeout",
            duration(),
            "How long Redis may take to answer; below `server.message_timeout`.",
            "store_timeout_s",
        ),
    ),
    relate=_fits_store,
)
