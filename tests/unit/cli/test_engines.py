"""Which engine gave which answers, and which of its names are taken."""

import pytest

from router_ext.cli.starting.engines import MAX_MODELS, MAX_NAMES, Answer, Engine, Model, Place, recognized
from router_ext.model.backend import BackendType

PLACE = Place("127.0.0.1", 8000)


def _models(*cards: object) -> Answer:
    return Answer(200, {"object": "list", "data": list(cards)})


def _card(name: object, owner: str = "vllm", **more: object) -> dict[str, object]:
    return {"id": name, "object": "model", "owned_by": owner, **more}


def _found(*cards: object, **answers: object) -> Engine:
    engine = recognized(
        PLACE, {"/v1/models": _models(*cards), **{f"/{path}": Answer(200, value) for path, value in answers.items()}}
    )
    assert engine is not None
    return engine


@pytest.mark.parametrize(
    ("owner", "kind"),
    [
        ("vllm", BackendType.VLLM),
        ("sglang", BackendType.SGLANG),
        ("llamacpp", BackendType.LLAMACPP),
        ("library", BackendType.OLLAMA),
        ("somebody", BackendType.OPENAI),
    ],
)
def test_an_engine_signs_its_list_of_models(owner: str, kind: BackendType) -> None:
    """By ``owned_by``; what nobody knows is OpenAI's API, spoken by something else."""
    assert _found(_card("m", owner)).type is kind


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("props", {"default_generation_settings": {}}, BackendType.LLAMACPP),
        ("server_info", {"model_path": "m"}, BackendType.SGLANG),
        ("get_server_info", {"model_path": "m"}, BackendType.SGLANG),
        ("api/tags", {"models": []}, BackendType.OLLAMA),
        ("version", {"version": "0.32.0"}, BackendType.VLLM),
        ("version", ["0.32.0"], BackendType.OPENAI),
    ],
)
def test_an_unsigned_list_is_told_by_the_paths_that_answer(path: str, value: object, kind: BackendType) -> None:
    """Each engine has a path of its own, with a key of its own."""
    assert _found(_card("m", "me"), **{path: value}).type is kind


def test_llamacpp_is_not_taken_for_ollama() -> None:
    """It answers Ollama's path too."""
    answers = {"api/tags": {"models": []}, "props": {"default_generation_settings": {}}}
    assert _found(_card("m", "me"), **answers).type is BackendType.LLAMACPP


@pytest.mark.parametrize(
    "models",
    [
        Answer(200),
        Answer(404),
        Answer(500, {"data": [_card("m")]}),
        Answer(200, []),
        Answer(200, {"data": {}}),
        Answer(200, {"data": []}),
        Answer(200, {"data": ["m", None, 1]}),
        Answer(200, {"data": [_card(7)]}),
    ],
    ids=["no JSON", "no such path", "an error", "a list", "no list of models", "no models", "no cards", "no names"],
)
def test_what_lists_no_models_is_no_engine(models: Answer) -> None:
    """Whatever else it may be."""
    assert recognized(PLACE, {"/v1/models": models}) is None


@pytest.mark.parametrize("status", [401, 403])
def test_an_engine_with_a_key_is_found_by_what_it_says_without(status: int) -> None:
    """Its models are not known."""
    answers = {"/v1/models": Answer(status, {}), "/version": Answer(200, {"version": "1"})}
    assert recognized(PLACE, answers) == Engine(PLACE, BackendType.VLLM, wants_key=True)
    assert recognized(PLACE, {"/v1/models": Answer(status, {})}) is None


def test_names_of_one_model_are_aliases() -> None:
    """vLLM lists each name that it serves a model under; they have the root in common."""
    engine = _found(_card("a", root="/models/x"), _card("b", root="/models/x"), _card("c", root="/models/y"))
    assert engine.models == (Model("a", aliases=("b",)), Model("c"))


def test_a_model_with_a_parent_is_an_adapter_of_it() -> None:
    """A parent that is not in the list makes none."""
    cards = (_card("base"), _card("lora", parent="base", root="/loras/l"), _card("orphan", parent="gone"))
    assert _found(*cards).models == (Model("base", adapters=("lora",)), Model("orphan"))


def test_a_model_that_is_its_own_parent_is_a_model() -> None:
    """An odd answer loses nothing."""
    assert _found(_card("m", parent="m")).models == (Model("m"),)


@pytest.mark.parametrize(
    "name",
    ["", " m", "m ", "a\nb", "a\u00e4", "\x1b[31m", "m" * 257, "env:OPENAI_API_KEY", 7, None, ["m"]],
    ids=["empty", "space first", "space last", "lines", "not ASCII", "escape", "long", "variable", "7", "null", "list"],
)
def test_a_name_that_no_configuration_carries_is_left_out(name: object) -> None:
    """``env:NAME`` would put a secret of this machine where the engine can read it. What is left out is counted."""
    engine = _found(_card("good"), _card(name))
    assert (engine.models, engine.left_out) == ((Model("good"),), 1)


def test_models_and_names_are_bounded() -> None:
    """What is too much is counted as left out."""
    many = _found(*(_card(f"m{number}") for number in range(MAX_MODELS + 3)))
    assert (len(many.models), many.left_out) == (MAX_MODELS, 3)
    named = _found(*(_card(f"m{number}", root="r") for number in range(MAX_NAMES + 3)))
    assert (len(named.models[0].aliases), named.left_out) == (MAX_NAMES, 2)
    tuned = _found(_card("m"), *(_card(f"l{number}", parent="m") for number in range(MAX_NAMES + 2)))
    assert (len(tuned.models[0].adapters), tuned.left_out) == (MAX_NAMES, 2)


@pytest.mark.timeout(10)
def test_a_list_of_any_length_is_read_at_once() -> None:
    """As many models and adapters as fit into an answer: whoever listens there cannot keep ``init`` busy."""
    cards = [_card(f"m{number}", root="m", parent=f"m{number + 1}") for number in range(30_000)]
    many = _found(*cards, *(_card(f"a{number}", root=f"r{number}") for number in range(30_000)))
    assert len(many.models) == MAX_MODELS


@pytest.mark.parametrize(("slots", "taken"), [(1, 1), (4096, 4096), (0, None), (4097, None), (True, None), ("4", None)])
def test_slots_are_a_number_of_requests(slots: object, taken: int | None) -> None:
    """Anything else is as if it said nothing."""
    assert _found(_card("m", "llamacpp"), props={"total_slots": slots}).slots == taken


@pytest.mark.parametrize(
    ("modalities", "sees"), [({"vision": True}, True), ({"vision": 1}, False), ({}, False), ("vision", False)]
)
def test_images_are_for_engines_that_say_so(modalities: object, sees: bool) -> None:
    """llama.cpp does."""
    assert _found(_card("m", "llamacpp"), props={"modalities": modalities}).vision is sees
