"""Short ways to make the words of the domain, with values that a test does not care about."""

from collections.abc import Mapping

from router_ext.config.sections import Defaults, RouterConfig
from router_ext.model.backend import Backend, BackendType, Endpoint
from router_ext.model.outcome import AccessRecord, Usage
from router_ext.model.request import Caller, InferenceRequest
from router_ext.model.secret import Secret
from router_ext.model.snapshot import BackendState, Health, Snapshot
from router_ext.stream.events import RequestHead

CHAT = "/v1/chat/completions"


def backend(
    name: str = "a",
    *,
    model: str = "m-a",
    engine: BackendType = BackendType.VLLM,
    endpoint: Endpoint | None = None,
    aliases: tuple[str, ...] = (),
    adapters: tuple[str, ...] = (),
    capabilities: tuple[str, ...] = (),
    room: int = 64,
    cost: float | None = None,
    key: str | None = None,
) -> Backend:
    """A backend at http://NAME:8000 unless told otherwise; ``room`` is its ``max_concurrent``, ``cost`` both prices."""
    return Backend(
        name=name,
        endpoint=endpoint or Endpoint("http", name, 8000),
        type=engine,
        model_name=model,
        aliases=frozenset(aliases),
        lora_adapters=frozenset(adapters),
        capabilities=frozenset(capabilities),
        max_concurrent=room,
        cost_input_1m=cost,
        cost_output_1m=cost,
        api_key=None if key is None else Secret(key),
    )


def snapshot(*states: Backend | BackendState) -> Snapshot:
    """The backends by name; a bare backend is healthy and idle."""
    full = (item if isinstance(item, BackendState) else BackendState(item, Health.HEALTHY) for item in states)
    return {state.backend.name: state for state in full}


def request(model: str = "m-a", caller: Caller | None = None, content_type: str = "text") -> InferenceRequest:
    """A chat request."""
    return InferenceRequest(CHAT, caller or Caller(), model, content_type=content_type)


def head(path: str = CHAT, method: str = "POST", headers: Mapping[str, str] | None = None, **named: str) -> RequestHead:
    """A request's head; underscores in the names of keyword headers stand for dashes."""
    return RequestHead(method, path, {**(headers or {}), **{key.replace("_", "-"): named[key] for key in named}})


def router(*backends: Backend, chain: tuple[str, ...] | None = None) -> RouterConfig:
    """A configuration without rules; the fallback chain holds every backend in order unless it is given."""
    names = tuple(item.name for item in backends) if chain is None else chain
    return RouterConfig(backends=backends, defaults=Defaults(names))


def record(decision_id: str, status: int = 200, **changes: object) -> AccessRecord:
    """An access log entry of an ordinary answer that took 2 s, the last byte from the backend after 1.5 s."""
    values: dict[str, object] = {
        "decision_id": decision_id,
        "route": "routed",
        "cluster": "backend-a",
        "status": status,
        "details": "via_upstream",
        "upstream_reached": True,
        "flags": (),
        "duration_s": 2.0,
        "last_upstream_byte_s": 1.5,
        "request_bytes": 100,
        "response_bytes": 200,
        "usage": Usage(9, 1),
    }
    return AccessRecord(**(values | changes))  # type: ignore[arg-type]
