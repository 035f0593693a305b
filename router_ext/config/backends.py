"""Fields of one entry of ``backends``."""

import re
from typing import Final

from router_ext.config import names, url
from router_ext.config.document import Mapping, Scalar
from router_ext.config.reading import Reading
from router_ext.config.scalars import ScalarReader, UnfitError, duration, integer, member, number, text, text_of
from router_ext.config.section import Field, Items, Section, Values
from router_ext.model.backend import TRAITS, Backend, BackendType, CircuitBreaker
from router_ext.model.secret import Secret

MAX_PRICE_1M: Final = 1e6
_DAY_S: Final = 86_400.0
_KEY: Final = re.compile(r"[\x21-\x7e]{1,8192}")
_PROBE_PATH: Final = re.compile(r"/[\x21-\x22\x24-\x7e]*")


def _parse_key(scalar: Scalar) -> Secret:
    value = text_of(scalar)
    if not value:
        raise UnfitError(f"environment variable {scalar.env} is empty" if scalar.env else "the key is empty")
    url.refuse_braces(value, "the key")
    if not _KEY.fullmatch(value):
        raise UnfitError("the key holds a space, a line end or another character that no header may carry")
    return Secret(value, f"env:{scalar.env}" if scalar.env else "inline")


def _warn_inline(secret: Secret, scalar: Scalar, reading: Reading) -> Secret:
    if not scalar.env:
        reading.warn(scalar, "the key stands in the file: move it to the environment and write env:NAME")
    return secret


def _default_probe(values: Values, mapping: Mapping, _reading: Reading) -> None:
    kind = values.get("type")
    if "health_endpoint" not in mapping.entries and isinstance(kind, BackendType):
        values["health_endpoint"] = TRAITS[kind].health_path


API_KEY: Final = ScalarReader("a key, best as env:NAME", _parse_key, finish=_warn_inline, private=True)

CIRCUIT_BREAKER: Final = Section(
    CircuitBreaker,
    (
        Field("error_threshold", integer(1), "Errors that open the breaker."),
        Field("window_seconds", duration(_DAY_S), "Time in which they are counted.", "window_s"),
    ),
)

BACKEND: Final = Section(
    Backend,
    (
        Field("name", names.BACKEND, "Name in rules, headers and metrics."),
        Field("url", url.url(), "Where it listens.", "endpoint"),
        Field("type", member(BackendType), "Engine or provider."),
        Field("model_name", names.MODEL, "What it calls its model."),
        Field("aliases", Items(names.MODEL, frozenset), "Other names that clients may use for the model."),
        Field("lora_adapters", Items(names.MODEL, frozenset), "Adapters that it serves."),
        Field("capabilities", Items(names.CAPABILITY, frozenset), "What rules may require of it."),
        Field("max_concurrent", integer(1), "Most requests in flight from this router."),
        Field("cost_input_1m", number(0, MAX_PRICE_1M), "US dollars per 1,000,000 prompt tokens."),
        Field(
            "cost_cached_input_1m",
            number(0, MAX_PRICE_1M),
            "US dollars per 1,000,000 prompt tokens that were in the engine's cache.",
        ),
        Field("cost_output_1m", number(0, MAX_PRICE_1M), "US dollars per 1,000,000 completion tokens."),
        Field("api_key", API_KEY, "Key that the router adds: env:NAME."),
        Field("health_endpoint", text("a path that starts with /", _PROBE_PATH, 1024), "Path of the health probe."),
        Field("circuit_breaker", CIRCUIT_BREAKER, "When to stop using it for a while."),
    ),
    relate=_default_probe,
)
