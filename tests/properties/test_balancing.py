"""Any state of caches and queues."""

from hypothesis import given
from hypothesis import strategies as st

from router_ext.health.prefill import PrefillQueue
from router_ext.model.affinity import Affinity, Balancing
from router_ext.model.backend import BackendType
from router_ext.model.decision import Choice
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health, Prefill, Snapshot
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from tests.fakes.domain import backend, request

NAMES = ("a", "b", "c", "d")
ORDERS = st.lists(st.sampled_from(NAMES), unique=True).map(tuple)
AMOUNTS = st.floats(0, 1e9)
PREFILLS = st.builds(Prefill, rate=st.sampled_from([0.0, 1e-3, 1e3, 1e9]), queued=AMOUNTS, free_at=AMOUNTS)


@st.composite
def states(draw: st.DrawFn) -> Snapshot:
    """Some of the backends, each in any state."""
    found: dict[str, BackendState] = {}
    for name in draw(ORDERS):
        engine = draw(st.sampled_from([BackendType.VLLM, BackendType.OPENAI]))
        item = backend(name, engine=engine, model=draw(st.sampled_from(["m-a", "m-b"])), room=3)
        in_flight, elsewhere = draw(st.integers(0, 4)), draw(st.floats(0, 100))
        found[name] = BackendState(item, draw(st.sampled_from(Health)), in_flight, elsewhere, draw(PREFILLS))
    return found


AFFINITIES = st.builds(
    Affinity,
    size=st.just(10_000),
    matched=st.dictionaries(st.sampled_from([*NAMES, "gone"]), st.integers(1, 10_000)),
    seed=st.integers(0, 2**64),
    now=AMOUNTS,
)


@given(ORDERS, ORDERS, states(), AFFINITIES, st.sampled_from(Balancing), st.booleans())
def test_caches_and_queues_never_change_whether_a_request_can_be_served(
    names: tuple[str, ...],
    chain: tuple[str, ...],
    found: Snapshot,
    affinity: Affinity,
    balancing: Balancing,
    queue_aware: bool,
) -> None:
    """But for a pinned backend outside the rule; who serves is fit, and stands first among the candidates."""
    pipeline = Pipeline([Rule("r", backends=names)], chain, queue_aware=queue_aware, balancing=balancing)
    plain, choice = pipeline.route(Asked(request(), found)), pipeline.route(Asked(request(), found, affinity))
    if not isinstance(choice, Choice):
        assert not isinstance(plain, Choice)
        return
    name = choice.backend.name
    state = found[name]
    assert state.health is not Health.DOWN
    assert state.in_flight < 3
    assert choice.candidates[0].backend == name
    assert choice.matched == (affinity.matched.get(name, 0) if choice.backend.type is BackendType.VLLM else 0)
    assert len({item.backend for item in choice.candidates}) == len(choice.candidates)
    if name not in names and isinstance(plain, Choice) and plain.backend.name in names:
        assert balancing is Balancing.PIN
        assert choice.matched > 0
        assert choice.backend.serves("m-a")


@given(ORDERS, states(), AFFINITIES, st.sampled_from(Balancing))
def test_equal_input_gives_equal_output(
    names: tuple[str, ...], found: Snapshot, affinity: Affinity, balancing: Balancing
) -> None:
    """Also in another pipeline of the same configuration."""
    first, second = (Pipeline([], names, queue_aware=True, balancing=balancing) for _ in range(2))
    answer = first.route(Asked(request(), found, affinity))
    assert second.route(Asked(request(), dict(found), affinity)) == answer


EVENTS = st.lists(
    st.tuples(st.sampled_from(["begin", "hidden", "first_token", "end"]), st.integers(0, 4), st.floats(0, 20)),
    max_size=40,
)


@given(EVENTS)
def test_a_queue_is_empty_when_all_its_requests_have_ended(events: list[tuple[str, int, float]]) -> None:
    """Whatever happens in whatever order, nothing is below 0 and nothing stays."""
    queue, now, begun = PrefillQueue(), 0.0, set[str]()
    for event, number, pause in events:
        now += pause
        name = str(number)
        if event in {"begin", "hidden"}:
            if name not in begun:
                queue.begin(name, 5000.0, now, shows_first_token=event == "begin")
                begun.add(name)
        elif event == "first_token":
            queue.first_token(name, now)
        else:
            queue.end(name, now)
            begun.discard(name)
        state = queue.state
        assert state.queued >= state.behind >= 0
        assert state.rate >= 0
        assert state.wait_s(now, state.rate or 1.0) >= 0
    for name in begun:
        queue.end(name, now)
    assert queue.state.queued == 0
    assert queue.state.wait_s(now, queue.state.rate or 1.0) == 0
