"""The generated reference says what the code does, and the files in ``docs/reference`` say the same."""

from pathlib import Path

import pytest

from router_ext import reference
from router_ext.health import failures
from router_ext.model.rejection import Reason

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["admin-api.md", "configuration.md", "headers.md", "metrics.md"])
def test_the_file_in_the_repository_is_the_generated_one(name: str) -> None:
    """A changed table needs its page: run ``python -m router_ext.reference docs/``."""
    written = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert written == reference.pages()[name]


def test_the_command_writes_every_page_below_the_folder(tmp_path: Path) -> None:
    """The argument is the documentation folder; ``reference`` is made in it."""
    assert reference.main([str(tmp_path)]) == 0
    assert {path.name for path in (tmp_path / "reference").iterdir()} == {
        "admin-api.md",
        "configuration.md",
        "headers.md",
        "metrics.md",
    }


@pytest.mark.parametrize("argv", [[], ["docs", "more"]])
def test_the_command_needs_exactly_one_folder(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is a wrong call: usage and exit code 2."""
    assert reference.main(argv) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "| `port` | a whole number from 1 to 65535 | `8050` | Port that clients use. |",
        "| `name` | 1 to 63 letters, digits, '.', '_' or '-', the first a letter or digit | required"
        " | Name in rules, headers and metrics. |",
        "| `processor_address` | unix:PATH or HOST:PORT with a port from 1 to 65535 | `unix:run/processor.sock`"
        " | Where Envoy finds the router. |",
        "| `valid_json` | true or false | `false` | The answer must be JSON. |",
        "| `gemini` | `/v1beta/openai` | `authorization: Bearer KEY` | `/v1beta/openai/models` |",
        "| `first_token_timeout` | a duration like 30s, 5m, 1h30m or 250ms, from 1ms to 3600s | no limit"
        " | Longest silence of a stream before its first token; then another backend is asked. |",
        "| `ROUTER_PORT` | `server.port` |",
        "## `server.kv_pinning`",
        "## `backends[].circuit_breaker`",
        "## `budgets.<service>`",
    ],
)
def test_the_configuration_page_shows_keys_values_and_defaults(line: str) -> None:
    """One line a key, whatever kind of default it has; sections below others have a heading with their path."""
    assert line in reference.configuration_page().splitlines()


def test_a_duration_default_is_written_as_in_the_file() -> None:
    """Seconds carry their unit."""
    rows = [row for row in reference.configuration_page().splitlines() if row.startswith("| `default_timeout` ")]
    assert [row.split(" | ")[2] for row in rows] == ["`120s`"]


@pytest.mark.parametrize(
    "line",
    [
        "| `x-kronaxis-backend` | response | Name of the backend that answered. |",
        "| `no_backend` | 503 | `service_unavailable` | Every backend that may serve the request is down or full."
        " Carries `Retry-After`. |",
    ],
)
def test_the_headers_page_lists_headers_and_refusals(line: str) -> None:
    """Both come from the tables that requests are handled by."""
    assert line in reference.headers_page().splitlines()


@pytest.mark.parametrize(
    "start",
    [
        "| `kronaxis_router_requests_total` | counter | `service`, `backend`, `rule` |",
        "| `kronaxis_router_processing_seconds` | histogram | none |",
        "| `kronaxis_router_config_last_reload_success` | gauge | none |",
        "| `kronaxis_router_backend_healthy` | gauge | `backend` |",
    ],
)
def test_the_metrics_page_names_each_series_with_its_labels(start: str) -> None:
    """Names are those of the scrape, with the suffix of counters."""
    assert any(line.startswith(start) for line in reference.metrics_page().splitlines())


def test_every_refusal_is_explained() -> None:
    """A new reason needs a sentence."""
    assert set(reference.REFUSALS) == set(Reason)


def test_every_failure_reason_is_explained() -> None:
    """The page knows the label values that exchanges are counted under, and no others."""
    labels = {value for name, value in vars(failures).items() if name.isupper() and isinstance(value, str)}
    assert set(reference.FAILURES) == labels


@pytest.mark.parametrize(
    "line",
    [
        "| `POST /api/backends` | Adds a backend. |",
        "### `PUT /api/rules/{name}`",
        "| `dry_run` (query) | boolean | Validate the change as a whole, and change nothing. |",
        "### BackendSpec",
        "| `max_concurrent` | integer or null | none | Most requests in flight from this router. |",
        "| 201 | [ChangeAnswer_BackendConfig_](#changeanswer_backendconfig_) | Successful Response |",
    ],
)
def test_the_admin_page_has_routes_and_bodies(line: str) -> None:
    """As the OpenAPI document has them."""
    assert line in reference.admin_page().splitlines()
