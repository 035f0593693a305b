"""How the quality gate looks at the answer of one request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgspec import Struct

from router_ext.model.gate import Checks, SchemaText


@dataclass(frozen=True, slots=True)
class GateAsk:
    """How the answer of one request is checked. ``tools`` gives the parameters of the request's tools by name.

    ``observes``: the answer goes on at once and is only counted. ``parallel``: the fallback is asked at the same time.
    ``returns_bad``: where nothing better is to be had, the client gets the last answer, else an error.
    """

    fallback: str
    checks: Checks
    schema: SchemaText | None
    tools: Callable[[], Mapping[str, object]]
    observes: bool = False
    parallel: bool = False
    returns_bad: bool = True

    @property
    def json_expected(self) -> bool:
        """True when the texts of the answer have to be JSON."""
        return self.checks.valid_json or self.schema is not None


class NotGated(Struct, frozen=True):
    """An answer that nobody looks at although its request brought a schema; ``bad_schema``: one that cannot be used."""

    bad_schema: bool = False
