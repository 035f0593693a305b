"""The OpenAPI document: what the framework does not know of the application."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from router_ext.admin.access import OPEN_PATHS
from router_ext.admin.shapes.errors import ErrorAnswer

DESCRIPTION: Final = (
    "State, decisions, spending and changes of one router. Every change takes `dry_run=true`: it is then validated as "
    "a whole, and nothing changes. With `ROUTER_API_TOKEN` every path but `/health`, `/ready` and `/metrics` needs it "
    "as a bearer token. Every error has the form of `ErrorAnswer`; 422 is for what does not fit, in a request or in "
    "the resulting configuration."
)

_REFUSALS: Final = {
    "400": "The Host header names another machine, or the body cannot be read.",
    "401": "The bearer token is missing or wrong.",
    "403": "The request comes from a web page of another site.",
    "413": "The body is too large.",
    "422": "The request, or the resulting configuration, is not valid: `problems` says where.",
}
"""What every path but the open ones may answer, whatever it does."""

_SCHEME: Final = "token"
_ERROR: Final = "#/components/schemas/ErrorAnswer"


def describe(app: FastAPI) -> None:
    """Lets ``app`` serve its whole document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes)
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    if "ErrorAnswer" not in schemas:
        schema = ErrorAnswer.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs"))
        schemas["ErrorAnswer"] = schema
    components["securitySchemes"] = {_SCHEME: {"type": "http", "scheme": "bearer"}}
    for path, item in document["paths"].items():
        for operation in item.values():
            _complete(path, operation)
    return document


def _complete(path: str, operation: dict[str, Any]) -> None:
    """Adds the refusals that the application gives in front of any route."""
    refusals = {"400": _REFUSALS["400"]} if path in OPEN_PATHS else _REFUSALS
    takes_values = "requestBody" in operation or "parameters" in operation
    for status, text in refusals.items():
        if status == "422" and not takes_values:
            continue
        known = operation["responses"].setdefault(status, {"description": text})
        known["description"] = text if status == "422" else known["description"]
        known["content"] = {"application/json": {"schema": {"$ref": _ERROR}}}
    if path in OPEN_PATHS:
        operation["responses"].pop("422", None)
    else:
        operation["security"] = [{_SCHEME: []}]
