"""What spans sections: references that must resolve, and settings that are valid but probably not meant."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from urllib.parse import urlsplit

from router_ext.config.document import Mapping, Scalar, Sequence
from router_ext.config.problem import Problem
from router_ext.config.reading import Reading
from router_ext.config.sections import RouterConfig, StoreKind
from router_ext.config.url import is_loopback
from router_ext.config.wording import quoted
from router_ext.model.backend import Backend
from router_ext.model.rule import Match

Place = Callable[[str], tuple[str, int]]
"""From the path of a setting to the path and line of where it is written."""

_NAMES_SHOWN = 10
_CHAIN = "defaults.fallback_chain"


def check_references(root: Mapping, reading: Reading) -> None:
    """Records references to backends that do not exist. A backend with other faults exists."""
    reading.check_references(reading.declared("backend") | _written_names(root))


def _written_names(root: Mapping) -> frozenset[str]:
    backends = root.entries.get("backends")
    items = backends.items if isinstance(backends, Sequence) else ()
    names = (item.entries.get("name") for item in items if isinstance(item, Mapping))
    return frozenset(name.text for name in names if isinstance(name, Scalar))


def with_fallback_chain(config: RouterConfig, root: Mapping, reading: Reading) -> RouterConfig:
    """All backends in the file's order where no chain is written. An empty chain without rules is a problem."""
    defaults = root.entries.get("defaults")
    chain = defaults.entries.get("fallback_chain") if isinstance(defaults, Mapping) else None
    if chain is None or (isinstance(chain, Scalar) and chain.is_null):
        every = tuple(backend.name for backend in config.backends)
        return replace(config, defaults=replace(config.defaults, fallback_chain=every))
    if not config.defaults.fallback_chain and not config.rules:
        reading.problem(chain, "must not be empty where there are no rules: no request could be routed")
    return config


def warnings(config: RouterConfig, reading: Reading, place: Place) -> Iterator[Problem]:
    """What is probably not meant in a valid configuration."""
    yield from reading.warnings
    yield from _exposed_admin(config, place)
    yield from _sessions(config, place)
    yield from _fail_open(config, place)
    yield from _shadowed_rules(config, place)
    yield from _unused_backends(config, reading, place)
    yield from _unpriced_backends(config, place)


def _exposed_admin(config: RouterConfig, place: Place) -> Iterator[Problem]:
    if not is_loopback(config.server.admin_host):
        path = "server.admin_host"
        message = "the admin API is reachable from other machines, in plain HTTP: ROUTER_API_TOKEN must be set"
        yield Problem(*place(path), f"{message}; /health, /ready and /metrics have no login")


def _sessions(config: RouterConfig, place: Place) -> Iterator[Problem]:
    sessions = config.server.sessions
    if not sessions.enabled:
        return
    if sessions.max_bytes < config.server.max_body_bytes:
        path = "server.sessions.max_bytes"
        yield Problem(*place(path), "below max_body_bytes: the largest conversation would not fit in the store")
    stored_by = sessions.redis_url if sessions.store is StoreKind.REDIS else None
    if stored_by and not sessions.encryption_key and _in_clear(stored_by.reveal()):
        path = "server.sessions.redis_url"
        message = "conversations go to another machine in clear text: use rediss:// or encryption_key"
        yield Problem(*place(path), message)


def _in_clear(redis_url: str) -> bool:
    parts = urlsplit(redis_url)
    return parts.scheme == "redis" and not is_loopback(parts.hostname or "")


def _fail_open(config: RouterConfig, place: Place) -> Iterator[Problem]:
    usable = config.fail_open_backends
    if not usable:
        message = (
            "no backend of the chain can be used without the router (each needs a key or a path of its own, or is "
            "drained): while the router is down Envoy answers 503"
        )
        yield Problem(*place(_CHAIN), message)
        return
    for names, what in _uncovered(config.backends, usable):
        message = (
            f"while the router is down, requests for {_listed(names)} may reach a backend that does not serve them"
        )
        yield Problem(*place(_CHAIN), f"{message}: {what}")


def _uncovered(backends: tuple[Backend, ...], usable: tuple[Backend, ...]) -> Iterator[tuple[frozenset[str], str]]:
    every = frozenset[str]().union(*(backend.served_names for backend in backends))
    some = frozenset[str]().union(*(backend.served_names for backend in usable))
    all_usable = some.intersection(*(backend.served_names for backend in usable))
    if every - some:
        yield every - some, "no backend that can be used without the router serves them"
    if some - all_usable:
        yield some - all_usable, "not every backend that can be used without the router serves them"


def _listed(names: frozenset[str]) -> str:
    shown = sorted(names)[:_NAMES_SHOWN]
    rest = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(quoted(name) for name in shown) + rest


def _shadowed_rules(config: RouterConfig, place: Place) -> Iterator[Problem]:
    order = sorted(range(len(config.rules)), key=lambda index: -config.rules[index].priority)
    first: dict[_Conditions, int] = {}
    for rank, index in enumerate(order):
        rule = config.rules[index]
        conditions = _conditions(rule.match)
        cover = min((first[wide] for wide in _covering(conditions) if wide in first), default=None)
        if cover is not None:
            path = f"rules[{index}]"
            name = quoted(config.rules[order[cover]].name)
            yield Problem(*place(path), f"never applies: rule {name} takes all its requests")
        first.setdefault(conditions, rank)


_Conditions = tuple[str | int, ...]


def _conditions(match: Match) -> _Conditions:
    """Each condition, falsy where there is none."""
    return (
        match.service,
        match.call_type,
        match.tier,
        match.model,
        match.lora,
        match.priority_level,
        match.content_type,
    )


def _covering(conditions: _Conditions) -> Iterator[_Conditions]:
    """What matches every request that these match: any of them left out. Wildcards are compared as text."""
    return product(*((given, type(given)()) if given else (given,) for given in conditions))


def _unused_backends(config: RouterConfig, reading: Reading, place: Place) -> Iterator[Problem]:
    used = reading.referenced | set(config.defaults.fallback_chain)
    for index, backend in enumerate(config.backends):
        if backend.name not in used:
            path = f"backends[{index}]"
            yield Problem(*place(path), f"backend {quoted(backend.name)} is used nowhere")


def _unpriced_backends(config: RouterConfig, place: Place) -> Iterator[Problem]:
    if not config.budgets:
        return
    for index, backend in enumerate(config.backends):
        if not backend.is_priced:
            path = f"backends[{index}]"
            message = f"backend {quoted(backend.name)} has no cost_input_1m or no cost_output_1m"
            yield Problem(*place(path), f"{message}: budgets count that as free; write 0 if it is")
