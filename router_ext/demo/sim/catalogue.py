"""The body of GET /v1/models."""

import orjson

from router_ext.demo.sim.exchange import Json
from router_ext.demo.sim.settings import SimSettings


def models_body(settings: SimSettings, created: int) -> bytes:
    """The primary name and its aliases, then the adapters as children of the primary name."""
    base = [
        _card(name, f"models/{settings.model}", None, settings, created) for name in (settings.model, *settings.aliases)
    ]
    adapters = [_card(name, f"adapters/{name}", settings.model, settings, created) for name in settings.loras]
    return orjson.dumps({"object": "list", "data": base + adapters})


def _card(name: str, root: str, parent: str | None, settings: SimSettings, created: int) -> Json:
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": root,
        "parent": parent,
        "max_model_len": None if parent else settings.max_model_len,
        "permission": [_permission(name, created)],
    }


def _permission(name: str, created: int) -> Json:
    return {
        "id": f"modelperm-{name}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
