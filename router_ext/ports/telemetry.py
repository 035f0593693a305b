"""What the engine tells of, as a Protocol."""

from typing import Protocol

from router_ext.model.decision import Decision
from router_ext.model.gate import Quality, SchemaVerdict
from router_ext.model.outcome import AccessRecord, Outcome, Usage
from router_ext.model.rejection import Rejection
from router_ext.model.request import Caller
from router_ext.model.shadow import ShadowResult
from router_ext.model.snapshot import Health


class Telemetry(Protocol):
    """What happened, for metrics and logs. Every call is cheap and never raises."""

    def routed(self, decision: Decision) -> None:
        """A request was given to a backend."""
        ...

    def settled(self, decision: Decision, outcome: Outcome) -> None:
        """A request ended; called once for each that was routed, with the decision of its last attempt."""
        ...

    def charged(self, caller: Caller, backend: str, kind: str, usage: Usage, micro_usd: int) -> None:
        """A call for ``caller`` cost ``micro_usd`` (≥ 0). ``kind`` says what it was made for (``model.money``)."""
        ...

    def usage_estimated(self, backend: str) -> None:
        """The tokens of a call that was charged were estimated: the backend reported none."""
        ...

    def budget_action(self, caller: Caller, action: str) -> None:
        """A request of a service whose budget is spent: ``downgrade`` or ``reject``."""
        ...

    def unpriced_call(self, backend: str) -> None:
        """A call that a budget holds for went to a backend without prices."""
        ...

    def rate_limited(self, caller: Caller) -> None:
        """A request was refused, as its service sends too many."""
        ...

    def gate_judged(self, seconds: float) -> None:
        """The quality gate looked at an answer for so long."""
        ...

    def schema_validated(self, verdict: SchemaVerdict) -> None:
        """A text of an answer was judged by the schema of its request."""
        ...

    def gate_concluded(self, quality: Quality, reason: str) -> None:
        """What became of a request that the gate looked at; ``reason`` is one of ``model.gate.Fault``, ``bad_schema``
        or "".
        """
        ...

    def ab_request(self, test: str, variant: str, *, fell_back: bool) -> None:
        """A request of an A/B test ended. ``fell_back``: the caller's variant could not take it."""
        ...

    def shadow_ended(self, test: str, result: ShadowResult) -> None:
        """What became of a request of an A/B test that was drawn for a shadow."""
        ...

    def shadow_similarity(self, test: str, similarity: float) -> None:
        """How alike (0..1) the answers of both variants were."""
        ...

    def failed_over(self, decision: Decision, to: str, reason: str) -> None:
        """The attempt of ``decision`` failed, and the request goes to the backend ``to`` instead."""
        ...

    def retry_budget_exhausted(self, decision: Decision) -> None:
        """A failed attempt was not followed by another, since too many requests are being retried."""
        ...

    def circuit_changed(self, backend: str, *, is_open: bool) -> None:
        """A circuit breaker opened or closed."""
        ...

    def paused(self, backend: str, seconds: float) -> None:
        """A backend asked to be left alone for so long."""
        ...

    def sla_filtered(self, rule: str, backends: tuple[str, ...], *, missed: bool) -> None:
        """Backends were left out as too slow for a rule; ``missed``: all of them were, and the limit was given up."""
        ...

    def pinned(self, backend: str, *, hit: bool) -> None:
        """A request was sent to a backend that is (``hit``) or is not expected to hold a prefix of its prompt."""
        ...

    def cache_reported(self, backend: str, predicted_tokens: int, cached_tokens: int) -> None:
        """An engine said how many prompt tokens its cache held; ``predicted_tokens`` were expected."""
        ...

    def scrape_errors(self, backend: str, count: int) -> None:
        """A metrics page had ``count`` (≥ 1) values that could not be used."""
        ...

    def lost(self, decision: Decision) -> None:
        """An exchange is gone from Envoy but its access log entry never came."""
        ...

    def refused(self, caller: Caller, rejection: Rejection) -> None:
        """router_ext answered a request with an error."""
        ...

    def bypassed(self, record: AccessRecord) -> None:
        """Envoy served a request that no decision belongs to."""
        ...

    def processed(self, seconds: float) -> None:
        """How long Envoy waited for router_ext in one exchange: the sum over its messages."""
        ...

    def fault(self, place: str, error: BaseException) -> None:
        """A bug surfaced at ``place``; Envoy was let go on without the router."""
        ...

    def headers_only(self) -> None:
        """Envoy did not show a body that routing needs: its body mode is one that cannot work."""
        ...

    def watchers(self, count: int) -> None:
        """So many watch live requests now."""
        ...

    def watch_event_dropped(self) -> None:
        """A watcher is too slow: it does not hear of a request."""
        ...

    def health_changed(self, backend: str, health: Health, cause: str) -> None:
        """A backend's health is another than before, or known for the first time."""
        ...

    def session_created(self) -> None:
        """A new session is in the store."""
        ...

    def session_hydrated(self, tokens_saved: int) -> None:
        """A request was continued from a session; the client did not send ``tokens_saved`` (≥ 0) tokens again."""
        ...

    def session_evicted(self, reason: str) -> None:
        """A session is gone: by ``ttl``, ``max_sessions`` or ``max_bytes``, ``lost`` by the store, ``ended`` by its
        client or ``deleted`` by an operator.
        """
        ...

    def session_store_call(self, operation: str, seconds: float, *, ok: bool) -> None:
        """The session store was called; not ``ok``: it brought no answer."""
        ...

    def turn_not_saved(self, reason: str) -> None:
        """A request of a session ended without being kept: the answer ``failed``, ``client_left``, the ``store`` is
        away, or the session is ``gone``.
        """
        ...

    def sessions_active(self, count: int) -> None:
        """So many sessions are in the store."""
        ...

    def shared_published(self, event: str) -> None:
        """An event of this kind was sent to other routers."""
        ...

    def shared_received(self, event: str) -> None:
        """An event of this kind came from another router; ``unreadable`` for what is none."""
        ...

    def shared_dropped(self, count: int) -> None:
        """So many events (≥ 1) were given up before they were sent."""
        ...

    def shared_connected(self, connected: bool, cause: str) -> None:
        """Other routers can be reached, or no longer, and why not."""
        ...

    def reloaded(self, digest: str) -> None:
        """A new configuration is in force."""
        ...

    def reload_refused(self, problem: str) -> None:
        """A changed configuration file was not taken over."""
        ...

    def changes_taken_over(self) -> None:
        """Other changes of the admin API are in force."""
        ...

    def changes_refused(self, problem: str) -> None:
        """Changes of the admin API that another process wrote were not taken over."""
        ...
