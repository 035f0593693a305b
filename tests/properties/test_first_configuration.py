"""Whatever listens on an engine's port, the configuration that is written of it is what it seems."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from router_ext.cli.starting.document import configuration
from router_ext.cli.starting.engines import PATHS, Answer, Place, recognized
from router_ext.config.loader import parse

SECRET = "s3cret"
HOSTILE = st.sampled_from(
    [
        '"',
        "\\",
        '"\n- name: evil',
        "# x",
        ": ",
        "{a: b}",
        "*a",
        "&a b",
        "!!python/x",
        "env:SECRET",
        "${SECRET}",
        "'",
        "%",
    ]
)
NAMES = st.text(max_size=12) | st.lists(HOSTILE | st.text(max_size=4), max_size=4).map("".join)
CARDS = st.fixed_dictionaries(
    {"id": NAMES},
    optional={"root": NAMES, "parent": NAMES, "owned_by": st.sampled_from(["vllm", "llamacpp", "library"]) | NAMES},
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["total_slots", "modalities", "version", "models", "model_path", "default_generation_settings"]),
    VALUES,
)


@given(
    cards=st.lists(CARDS, max_size=6) | VALUES,
    others=st.dictionaries(st.sampled_from(PATHS[1:]), OBJECTS | VALUES),
    status=st.sampled_from([200, 200, 200, 401, 404]),
)
def test_no_answer_writes_anything_but_names(cards: object, others: dict[str, object], status: int) -> None:
    """The configuration is valid, holds the found models and no other, and no value of the environment."""
    place = Place("127.0.0.1", 8000)
    answers = {path: Answer(200, value) for path, value in others.items()}
    engine = recognized(place, {"/v1/models": Answer(status, {"data": cards}), **answers})
    found = [engine] if engine is not None else []
    config = parse(configuration(found, []), "router.yaml", Path("/somewhere"), {"SECRET": SECRET}).config
    models = engine.models if engine is not None else ()
    assert [backend.model_name for backend in config.backends] == [model.name for model in models] or not models
    assert [backend.aliases for backend in config.backends] == [set(model.aliases) for model in models] or not models
    assert {str(backend.endpoint) for backend in config.backends} == {"http://127.0.0.1:8000"}
    assert SECRET not in repr(config)
    assert config.rules == ()
