"""The model list."""

from typing import Any

import orjson
import pytest

from router_ext.stream.effects import Answer, Forward
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig

BACKENDS = (
    backend("a", model="org/m-a", aliases=("z", "fast"), adapters=("sql",)),
    backend("b", model="org/m-a", aliases=("fast", "slow")),
)


def _get(path: str) -> tuple[int, Any]:
    plan = EngineRig(router(*BACKENDS)).plan(b"", head(path, "GET"))
    assert isinstance(plan, Answer)
    return plan.status, orjson.loads(plan.body)


def test_every_name_is_listed_once() -> None:
    """Each backend's model, aliases and adapters in the configuration's order."""
    status, body = _get("/v1/models?limit=5")
    assert (status, body["object"]) == (200, "list")
    assert [card["id"] for card in body["data"]] == ["org/m-a", "fast", "z", "sql", "slow"]
    assert body["data"][0] == {"id": "org/m-a", "object": "model", "created": 1_700_000_000, "owned_by": "vllm"}


@pytest.mark.parametrize("path", ["/v1/models/org/m-a", "/v1/models/org%2Fm-a"])
def test_one_model_is_found_by_its_name(path: str) -> None:
    """Clients escape the slash in a name, or leave it."""
    status, body = _get(path)
    assert (status, body["id"]) == (200, "org/m-a")


@pytest.mark.parametrize("path", ["/v1/models/", "/v1/models/M-A", "/v1/models/org"])
def test_an_unknown_name_is_not_found(path: str) -> None:
    """404 in the shape of OpenAI's error."""
    status, body = _get(path)
    assert (status, body["error"]["code"]) == (404, "model_not_found")


def test_paths_that_only_begin_alike_pass() -> None:
    """``/v1/modelsx`` is no model list."""
    plan = EngineRig(router(*BACKENDS)).plan(b"", head("/v1/modelsx", "GET"))
    assert isinstance(plan, Forward)


def test_the_list_is_no_exchange() -> None:
    """It has no backend and no end to wait for."""
    rig = EngineRig(router(*BACKENDS))
    rig.plan(b"", head("/v1/models", "GET"))
    assert rig.in_flight() == {"a": 0, "b": 0}
    assert not rig.engine.recent
