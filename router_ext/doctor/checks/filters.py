"""The HTTP filters of the ingress listener: which are there, and in which order."""

from collections.abc import Iterator, Sequence
from typing import Final

from router_ext.doctor.finding import Finding
from router_ext.doctor.state import State
from router_ext.doctor.wiring import HttpFilter, HttpListener
from router_ext.envoygen.names import PROCESSOR_CLUSTER

BREAKS_BEFORE: Final = {
    "buffer": "it refuses bodies by a limit of its own",
    "cache": "it answers from its store, unseen by the router",
    "cache_v2": "it answers from its store, unseen by the router",
    "file_system_buffer": "it holds streamed answers back",
    "grpc_json_transcoder": "it changes paths and bodies before the router reads them",
}
"""Kinds of filters that must not stand before ext_proc, and why."""

BREAKS_BEHIND: Final = {
    "buffer": "it refuses bodies by a limit of its own",
    "cache": "it answers from its store, whatever backend the router chose",
    "cache_v2": "it answers from its store, whatever backend the router chose",
    "compressor": "the router and the usage reader would see compressed answers; put it before ext_proc",
    "file_system_buffer": "it holds streamed answers back",
    "grpc_json_transcoder": "it changes the answers that the router reads",
}
"""Kinds of filters that must not stand behind ext_proc, and why."""


def processor(state: State) -> Sequence[Finding] | None:
    """One ext_proc filter, switched on, that asks the router."""
    if not state.ingress:
        return None
    return [finding for listener in state.ingress for finding in _processor(listener)]


def _processor(listener: HttpListener) -> Iterator[Finding]:
    if len(listener.processors) > 1:
        yield Finding(f"listener {listener.name} asks the router twice or more", "keep one ext_proc filter")
    if listener.processors:
        return
    asking = [one for one in listener.filters if one.asks_processor]
    if any(one.processor == PROCESSOR_CLUSTER for one in asking):
        yield Finding(f"the ext_proc filter of listener {listener.name} is switched off", "remove its `disabled: true`")
    elif asking:
        wrong = f"the ext_proc filter of listener {listener.name} asks cluster {asking[0].processor or '(none)'}"
        yield Finding(wrong, f"ext_proc: `grpc_service: {{envoy_grpc: {{cluster_name: {PROCESSOR_CLUSTER}}}}}`")
    else:
        wrong = f"listener {listener.name} has no ext_proc filter: nothing is routed"
        mend = "copy filter `envoy.filters.http.ext_proc` of the rendered bootstrap, before the usage reader"
        yield Finding(wrong, mend)


def order(state: State) -> Sequence[Finding] | None:
    """The framer, the processor and the reader in this order, and nothing among them that breaks them."""
    if not state.processors:
        return None
    wanted = state.expected_ingress.filters
    return [
        finding
        for listener in state.ingress
        if listener.processors
        for finding in (*_lua(listener, wanted), *_strangers(listener))
    ]


def _lua(listener: HttpListener, wanted: Sequence[HttpFilter]) -> Iterator[Finding]:
    centre = _index(wanted)
    for place, one in enumerate(wanted):
        if one.kind != "lua":
            continue
        side = "before" if place < centre else "behind"
        at = next((number for number, other in enumerate(listener.filters) if other.name == one.name), None)
        where = f"in http_filters of listener {listener.name}, directly {side} ext_proc"
        if at is None or listener.filters[at].disabled:
            yield Finding(f"filter {one.name} is missing", f"copy it from the rendered bootstrap {where}")
        elif (at < _index(listener.filters)) != (place < centre):
            yield Finding(f"filter {one.name} stands on the wrong side of ext_proc", f"move it {where}")
        elif not listener.filters[at].config.same_as(one.config):
            wrong = f"filter {one.name} is not the script of this version"
            yield Finding(wrong, "copy its typed_config from the rendered bootstrap")


def _strangers(listener: HttpListener) -> Iterator[Finding]:
    centre = _index(listener.filters)
    for place, one in enumerate(listener.filters):
        reason = (BREAKS_BEFORE if place < centre else BREAKS_BEHIND).get(one.kind)
        if reason and not one.disabled:
            side = "before" if place < centre else "behind"
            yield Finding(f"filter {one.name} stands {side} ext_proc: {reason}", f"remove or move filter {one.name}")


def _index(filters: Sequence[HttpFilter]) -> int:
    """The place of the filter that asks the router."""
    asking = (place for place, one in enumerate(filters) if one.processor == PROCESSOR_CLUSTER and not one.disabled)
    return next(asking, len(filters))
