"""An explanation as text."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from router_ext.cli.output import Output
from router_ext.v1 import decision_pb2, decisions_pb2


def print_explanation(explained: decisions_pb2.ExplainResponse) -> None:
    """Where the request would go, why, and what else would happen; then every candidate. In colour on a terminal."""
    console = Output()
    console.print(_verdict(explained), soft_wrap=True)
    for name, value in _facts(explained):
        console.print(Text(f"  {name:<12}{value}"), soft_wrap=True)
    if explained.decision.candidates:
        console.print(_candidates(explained.decision))


def _verdict(explained: decisions_pb2.ExplainResponse) -> Text:
    if explained.HasField("refusal"):
        refusal = explained.refusal
        return Text(f"refused: {refusal.status} {refusal.code}: {refusal.message}", "bold red")
    return Text(f"goes to {explained.decision.backend}", "bold green")


def _facts(explained: decisions_pb2.ExplainResponse) -> Iterator[tuple[str, str]]:
    decision, refusal = explained.decision, explained.refusal
    if decision.rule:
        yield "rule", decision.rule
    if explained.cluster:
        yield "cluster", explained.cluster
    if decision.upstream_model:
        yield "model", f"{decision.upstream_model} (asked for: {decision.request.model or 'none'})"
    if refusal.retry_after_s:
        yield "retry after", f"{refusal.retry_after_s} s"
    if decision.HasField("pin"):
        yield "pin", f"{decision.pin.expected_bytes:,} of {decision.pin.prompt_bytes:,} bytes of the prompt are cached"
    for held in decision.seen.caches.held:
        yield "", f"{held.backend} holds {held.bytes:,}"
    if explained.budget:
        yield "budget", explained.budget
    yield from _side_effects(explained)


def _side_effects(explained: decisions_pb2.ExplainResponse) -> Iterator[tuple[str, str]]:
    if explained.HasField("session"):
        yield "session", f"{explained.session.action}, {explained.session.tokens:,} tokens"
    if explained.HasField("ab_test"):
        test = explained.ab_test
        chance = ", by chance" if test.by_chance else ""
        fell_back = ", which cannot take the request" if test.fell_back else ""
        yield "A/B test", f"{test.test}, variant {test.variant}{chance}{fell_back}"
    if explained.HasField("gate"):
        gate = explained.gate
        does = "observed" if gate.observes else f"checked, with {gate.fallback} behind it"
        yield "gate", f"{gate.probability:.0%} of such answers are {does}{' (schema)' if gate.schema else ''}"
    if explained.HasField("shadow"):
        shadow = explained.shadow
        yield "shadow", f"{shadow.probability:.0%} of such requests are copied to {shadow.backend} ({shadow.test})"


def _candidates(decision: decision_pb2.Decision) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("candidate", "state"):
        table.add_column(title, no_wrap=True)
    table.add_column("why", overflow="fold")
    states = {state.backend: state for state in decision.seen.backends}
    for candidate in decision.candidates:
        style = "green" if candidate.backend == decision.backend else "dim" if candidate.filtered_by else ""
        state = states.get(candidate.backend)
        table.add_row(Text(candidate.backend), Text(_state(state) if state else ""), Text(_why(candidate)), style=style)
    return table


def _state(state: decision_pb2.BackendState) -> str:
    waiting = f" + {state.elsewhere:g}" if state.elsewhere else ""
    return f"{state.health}, {state.in_flight}{waiting} in flight"


def _why(candidate: decision_pb2.Candidate) -> str:
    if candidate.filtered_by:
        return f"left out by {candidate.filtered_by}: {candidate.reason}"
    scores = " ".join(f"{score.scorer}={score.value:g}" for score in candidate.scores)
    return f"{scores} ({candidate.reason})" if candidate.reason else scores
