"""The admin API keeps to its own OpenAPI document, whatever is sent to it."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from router_ext.admin.described import document
from tests.contract.admin_process import TOKEN, AdminProcess, admin_process

CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]
EXAMPLES: Final = 30
DOCUMENT: Final = document()
OPERATIONS: Final = sorted((method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item)


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token that may have backends anywhere, as a name that is generated leads nowhere."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN, "ROUTER_ALLOW_PRIVATE_BACKENDS": "true"}) as started:
        yield started


@pytest.fixture(scope="module")
def served(running: AdminProcess) -> Any:
    """The document that the router serves."""
    status, found = running.ask("/openapi.json")
    assert status == 200
    return found


def test_the_router_serves_the_document_that_is_written_down(served: Any) -> None:
    """So what the tests below find out holds for the reference too."""
    assert served == DOCUMENT


def takes_values(method: str, path: str) -> bool:
    """Whether there is anything to do wrong."""
    operation = DOCUMENT["paths"][path][method.lower()]
    return bool(operation.get("parameters") or operation.get("requestBody"))


MODES: Final = [
    *((method, path, GenerationMode.POSITIVE) for method, path in OPERATIONS),
    *((method, path, GenerationMode.NEGATIVE) for method, path in OPERATIONS if takes_values(method, path)),
]


@pytest.mark.parametrize(
    ("method", "path", "mode"), MODES, ids=[f"{method} {path} {mode.value}" for method, path, mode in MODES]
)
def test_no_request_is_answered_otherwise_than_the_document_says(
    running: AdminProcess, served: Any, method: str, path: str, mode: GenerationMode
) -> None:
    """No 5xx, no status, type or body that it does not know: for requests that fit, and for others."""
    schema = schemathesis.openapi.from_dict(served)
    schema.config.update(base_url=running.url)
    operation = schema[path][method]
    # Without an Envoy the router is not ready, and 503 is how it says so.
    checks = [check for check in CHECKS if path != "/ready" or check is not not_a_server_error]

    @seed(8)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case: Any) -> None:
        case.call_and_validate(checks=checks, headers={"authorization": f"Bearer {TOKEN}"})

    holds()


def test_every_path_but_the_open_ones_asks_for_the_token(running: AdminProcess) -> None:
    """As the document says of each."""
    for method, path in OPERATIONS:
        is_open = "security" not in DOCUMENT["paths"][path][method.lower()]
        status, _ = (
            running.ask(path.format(name="a", service="s"), method, token="wrong") if not is_open else (200, None)
        )
        assert is_open == (path in ("/health", "/ready", "/metrics"))
        assert status == (200 if is_open else 401), (method, path)


def test_the_application_has_no_route_without_a_docstring_a_tag_and_a_model() -> None:
    """Whoever adds one must say what it does and what it answers."""
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            assert operation.get("description", "").strip().endswith("."), (method, path)
            assert operation.get("tags"), (method, path)
            good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            assert good, (method, path)
            assert all("$ref" in _schema(answer) or path in LOOSE for answer in good), (method, path)


LOOSE: Final = frozenset({"/metrics", "/api/decisions"})
"""Text, and what is a protobuf message in JSON."""


def _schema(answer: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = answer["content"][
        "application/json" if "application/json" in answer["content"] else "text/plain"
    ]
    return dict(content["schema"])
