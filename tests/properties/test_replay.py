"""A recorded decision holds what it was made from: the same configuration makes it again."""

import json
from dataclasses import replace

from google.protobuf.json_format import ParseDict
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from router_ext.cli.replayed import replay
from router_ext.config.sections import Defaults, KvPinning, RouterConfig, Server
from router_ext.decisions.record import json_of_message, message_of_decision
from router_ext.decisions.state import asked_of_message
from router_ext.engine.configured import Configured
from router_ext.model.affinity import NO_AFFINITY, Affinity, Balancing
from router_ext.model.decision import Choice, Decision, Seen
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health, Prefill
from router_ext.routing.asked import Asked
from router_ext.v1 import decision_pb2 as pb
from tests.fakes.domain import backend
from tests.properties.test_routing import NAMES, NOW, ORDERS, REQUESTS, RULES, STATS, WORDS

PREFILLS = st.builds(
    Prefill,
    rate=st.sampled_from([0.0, 3000.0, 80_000.5]),
    queued=st.sampled_from([0.0, 20_000.0, 41_234.5]),
    behind=st.sampled_from([0.0, 10_000.0]),
    free_at=st.sampled_from([NOW - 1, NOW + 0.1, NOW + 7.7]),
)


@st.composite
def states(draw: st.DrawFn) -> dict[str, BackendState]:
    """Every backend, in any state."""
    return {
        name: BackendState(
            backend(
                name,
                capabilities=draw(WORDS),
                adapters=draw(st.sampled_from([(), ("sql",)])),
                cost=draw(st.sampled_from([None, 1.0, 5.0])),
                room=3,
            ),
            draw(st.sampled_from(Health)),
            draw(st.integers(0, 4)),
            draw(st.sampled_from([0.0, 0.5, 9.0])),
            draw(PREFILLS),
            paused_until=draw(st.sampled_from([0.0, NOW, NOW + 1.25])),
            ttft=draw(STATS),
        )
        for name in NAMES
    }


@st.composite
def affinities(draw: st.DrawFn) -> Affinity:
    """What the caches hold, or nothing known of them."""
    if draw(st.booleans()):
        return NO_AFFINITY
    matched = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 9000)))
    return Affinity(9000, matched, draw(st.integers(0, 2**40)), NOW)


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    """Any first attempt at any moment."""
    return Asked(draw(REQUESTS), draw(states()), draw(affinities()), NOW, draw(st.sampled_from([0.0, 0.5])))


CONFIGS = st.builds(
    lambda rules, chain, balancing, aware: RouterConfig(
        server=Server(balancing=balancing, queue_aware_routing=aware, kv_pinning=KvPinning(enabled=True)),
        rules=tuple(rules),
        defaults=Defaults(chain),
    ),
    st.lists(RULES, max_size=2),
    ORDERS,
    st.sampled_from(Balancing),
    st.booleans(),
)


def recorded(config: RouterConfig, asked: Asked) -> pb.Decision:
    """The decision that ``config`` makes, by way of JSON."""
    choice = Configured.of(config, 0).pipeline.route(asked)
    chosen = choice.backend.name if isinstance(choice, Choice) else ""
    made = Decision("t-1", 1.0, asked.request, choice.rule, chosen, "", choice.candidates, seen=Seen.of(asked))
    return ParseDict(json.loads(json.dumps(json_of_message(message_of_decision(made)))), pb.Decision())


@given(CONFIGS, questions())
def test_under_the_same_configuration_nothing_moves(config: RouterConfig, asked: Asked) -> None:
    """Whatever the state, the rules, the policy and the caches were."""
    config = replace(config, backends=tuple(state.backend for state in asked.snapshot.values()))
    result = replay([recorded(config, asked)], config)
    assert (result.replayed, result.moved) == (1, 0)


@given(CONFIGS, questions())
def test_a_question_survives_its_record(config: RouterConfig, asked: Asked) -> None:
    """The choice that is made again has the candidates, reasons and scores of the first one."""
    backends = {name: state.backend for name, state in asked.snapshot.items()}
    pipeline = Configured.of(config, 0).pipeline
    again = pipeline.route(asked_of_message(recorded(config, asked), backends))
    assert [structs.astuple(item)[:3] for item in again.candidates] == [
        structs.astuple(item)[:3] for item in pipeline.route(asked).candidates
    ]


@given(questions())
def test_a_rule_that_takes_everything_away_moves_what_was_served(asked: Asked) -> None:
    """To a refusal; what was refused before stays so."""
    backends = tuple(state.backend for state in asked.snapshot.values())
    open_ = RouterConfig(backends=backends, defaults=Defaults(NAMES))
    closed = replace(open_, rules=(Rule("none", required_capabilities=frozenset({"none"})),))
    record = recorded(open_, asked)
    result = replay([record], closed)
    assert result.moved == (1 if record.backend else 0)
