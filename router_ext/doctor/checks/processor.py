"""The settings of the ext_proc filter, held against those that would be rendered."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from router_ext.doctor.finding import Finding
from router_ext.doctor.node import Node
from router_ext.doctor.state import State

_MODES: Final = (
    ("request_header_mode", "SEND"),
    ("response_header_mode", "SEND"),
    ("request_body_mode", "NONE"),
    ("response_body_mode", "NONE"),
    ("request_trailer_mode", "SKIP"),
    ("response_trailer_mode", "SKIP"),
)
"""The keys of ``processing_mode``, and what each is when it is not written."""

_ELSEWHERE: Final = frozenset(
    {
        *("grpc_service", "processing_mode", "allow_mode_override", "failure_mode_allow"),
        *("message_timeout", "max_message_timeout", "stat_prefix", "@type"),
    }
)
"""Keys that other checks look at, or that nothing depends on."""

Look = Callable[[Node, Node], Iterable[Finding]]
"""Compares the running settings with the wanted ones."""


def body_modes(state: State) -> Sequence[Finding] | None:
    """What is sent to the router, and how."""
    return _each(state, _modes)


def _modes(running: Node, wanted: Node) -> Iterator[Finding]:
    for key, default in _MODES:
        is_mode, needed = (_mode(node, key, default) for node in (running, wanted))
        if is_mode != needed:
            yield Finding(f"{key} is {is_mode}", f"ext_proc, processing_mode: `{key}: {needed}`")
    if not running.at("allow_mode_override").flag:
        wrong = "the router may not change the modes of one exchange, as the gate and failover do"
        yield Finding(wrong, "ext_proc: `allow_mode_override: true`")


def _mode(config: Node, key: str, default: str) -> str:
    """An absent key and DEFAULT say the same."""
    written = config.at("processing_mode", key).text
    return default if written in ("", "DEFAULT") else written


def failure_mode(state: State) -> Sequence[Finding] | None:
    """A router that is away costs no request."""
    return _each(state, _failing_open)


def _failing_open(running: Node, _wanted: Node) -> Iterator[Finding]:
    if not running.at("failure_mode_allow").flag:
        yield Finding("requests fail while the router is away", "ext_proc: `failure_mode_allow: true`")


def timeouts(state: State) -> Sequence[Finding] | None:
    """The times that Envoy waits for the router."""
    return _each(state, _timeouts)


def _timeouts(running: Node, wanted: Node) -> Iterator[Finding]:
    for key, default_s in (("message_timeout", 0.2), ("max_message_timeout", 0.0)):
        is_s, needed_s = (node.at(key).seconds(default_s) for node in (running, wanted))
        if is_s != needed_s:
            yield Finding(
                f"{key} is {is_s:g} s, the configuration says {needed_s:g} s", f"ext_proc: `{key}: {needed_s:g}s`"
            )
    limit_s = running.at("grpc_service", "timeout").seconds()
    if limit_s:
        wrong = f"a stream to the router may last {limit_s:g} s, shorter than many answers"
        yield Finding(wrong, "ext_proc, grpc_service: `timeout: 0s`")


def rights(state: State) -> Sequence[Finding] | None:
    """Everything else: what the router sees and what it may change."""
    return _each(state, _others)


def _others(running: Node, wanted: Node) -> Iterator[Finding]:
    keys = {key for node in (running, wanted) for key, _ in node.entries()}
    for key in sorted(keys - _ELSEWHERE):
        if running.at(key).same_as(wanted.at(key)):
            continue
        if wanted.at(key).exists:
            mend = f"ext_proc: copy `{key}` from the rendered bootstrap"
            yield Finding(f"{key} is {'another' if running.at(key).exists else 'missing'}", mend)
        else:
            yield Finding(f"{key} is set, which the router does not expect", f"ext_proc: remove `{key}`")


def _each(state: State, look: Look) -> Sequence[Finding] | None:
    if not state.processors:
        return None
    wanted = state.expected_processor.config
    return [finding for one in state.processors for finding in look(one.config, wanted)]
