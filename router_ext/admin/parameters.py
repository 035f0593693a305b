"""Query parameters of changes: one that is mistyped must not be a change without it."""

from typing import Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

_ASKS_ONLY: Final = frozenset({"GET", "HEAD"})


def refuse_unknown(request: Request) -> None:
    """Raises RequestValidationError for a parameter that the route does not know, or that is given twice; requests that
    only ask may have any.
    """
    route = request.scope.get("route")
    if request.method in _ASKS_ONLY or not isinstance(route, APIRoute):
        return
    known = {field.alias for field in route.dependant.query_params}
    given = [name for name, _ in request.query_params.multi_items()]
    faults = {name: "Unknown parameter" for name in given if name not in known}
    faults |= {name: "Given more than once" for name in known if given.count(name) > 1}
    if faults:
        raise RequestValidationError([{"loc": ("query", name), "msg": text} for name, text in faults.items()])
