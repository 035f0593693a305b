"""The JSON Schema that a request gives for its answer, and the tools whose calls may fit it.

Whether it is a schema at all is not decided here: it is JSON, of a bounded size, and text of the client.
"""

import binascii
from collections.abc import Mapping
from typing import Final

import msgspec
import orjson
from msgspec import Struct

from router_ext.model.gate import BadSchema, SchemaText
from router_ext.model.headers import RESPONSE_SCHEMA
from router_ext.payload.envelope import Envelope

MAX_SCHEMA_BYTES: Final = 64 << 10
"""Longest schema, as JSON text. Envoy takes 60 KiB of headers unless it is told otherwise: longer schemas come in
bodies.
"""

_MAX_BASE64: Final = 4 * -(-MAX_SCHEMA_BYTES // 3)
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


class _JsonSchema(Struct):
    schema: msgspec.Raw = msgspec.Raw(b"null")


class _ResponseFormat(Struct):
    type: object = None
    json_schema: _JsonSchema | None = None


_RESPONSE_FORMAT: Final = msgspec.json.Decoder(_ResponseFormat)


def requested_schema(headers: Mapping[str, str], envelope: Envelope) -> SchemaText | BadSchema | None:
    """The schema of a request, None when it has none. The header wins over the body, also when it is bad.

    ``headers`` have names in lower case and values of one character a byte. The header holds JSON or the base64 of it,
    standard or URL-safe, padded or not. In the body it is the ``schema`` of a ``response_format`` of the type
    ``json_schema``, exactly as it was written.
    """
    value = headers.get(RESPONSE_SCHEMA)
    return _of_body(envelope) if value is None else _of_header(value.strip())


def requested_tools(envelope: Envelope) -> Mapping[str, object]:
    """The ``parameters`` of each function that the request offers, as JSON values by its name, of ``tools`` and of
    the old ``functions``. Functions without parameters are left out; of a repeated name the last one counts.
    """
    offered = [tool.get("function") for tool in _objects(envelope.fields.get("tools"))]
    functions = _objects([*offered, *_objects(envelope.fields.get("functions"))])
    named = ((function.get("name"), function.get("parameters")) for function in functions)
    return {name: parameters for name, parameters in named if isinstance(name, str) and parameters is not None}


def _of_header(value: str) -> SchemaText | BadSchema:
    if len(value) > _MAX_BASE64:
        return _TOO_LARGE
    try:
        raw = value.encode("latin-1")
    except UnicodeEncodeError:
        return _NO_JSON
    text = raw if _is_json(raw) else _from_base64(raw)
    return _NO_JSON if text is None else _bounded(text)


def _from_base64(text: bytes) -> bytes | None:
    """The JSON that ``text`` is the base64 of, None when it is not."""
    digits = text.rstrip(b"=").translate(_STANDARD)
    try:
        decoded = binascii.a2b_base64(digits + b"=" * (-len(digits) % 4), strict_mode=True)
    except binascii.Error:
        return None
    return decoded if _is_json(decoded) else None


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _of_body(envelope: Envelope) -> SchemaText | BadSchema | None:
    span = envelope.spans.get("response_format")
    if span is None:
        return None
    try:
        wanted = _RESPONSE_FORMAT.decode(envelope.raw[span.start : span.end])
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError):
        return _UNREADABLE
    if wanted.type != "json_schema" or wanted.json_schema is None:
        return None
    text = bytes(wanted.json_schema.schema)
    return None if text == b"null" else _bounded(text)


def _bounded(text: bytes) -> SchemaText | BadSchema:
    return SchemaText(text) if len(text) <= MAX_SCHEMA_BYTES else _TOO_LARGE


def _objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_TOO_LARGE: Final = BadSchema(f"larger than {MAX_SCHEMA_BYTES} bytes")
_NO_JSON: Final = BadSchema("neither JSON nor base64 of JSON")
_UNREADABLE: Final = BadSchema("nested too deeply, or not Unicode")
