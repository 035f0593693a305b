"""Which engine listens at a place, and what it serves, by its answers to a few questions.

Whoever listens there may answer anything. Names are taken only when a configuration can carry them, so that no answer
can write more into the file than a name, or have a variable of the environment put in its place.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from router_ext.model.backend import BackendType

MAX_MODELS: Final = 16
MAX_NAMES: Final = 64
"""Aliases and adapters of a model."""

MODELS: Final = "/v1/models"

_SIGNS: Final = (
    ("/props", "default_generation_settings", BackendType.LLAMACPP),
    ("/server_info", "model_path", BackendType.SGLANG),
    ("/get_server_info", "model_path", BackendType.SGLANG),
    ("/api/tags", "models", BackendType.OLLAMA),
    ("/version", "version", BackendType.VLLM),
)
"""A path, a key of its answer, and whose it is. llama.cpp answers Ollama's path too, so the first that fits counts."""

PATHS: Final = (MODELS, *(path for path, _, _ in _SIGNS))
"""What is asked of a place."""

_OWNERS: Final = {
    "vllm": BackendType.VLLM,
    "sglang": BackendType.SGLANG,
    "llamacpp": BackendType.LLAMACPP,
    "library": BackendType.OLLAMA,
}
"""``owned_by`` in the list of models."""

_NAME: Final = re.compile(r"(?!env:)[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?")
_KEY_WANTED: Final = (401, 403)
_MAX_SLOTS: Final = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look. ``host`` is a name or an address without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a GET gave: the status, and the value of a body that is JSON, else None."""

    status: int
    value: object = None


@dataclass(frozen=True, slots=True)
class Model:
    """A model, the other names that clients may use for it, and the adapters on top of it."""

    name: str
    aliases: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine. ``slots`` is how many requests it answers at a time, None where it does not say.

    ``left_out`` counts the names that a configuration cannot carry, or that are too many. ``wants_key`` is true for one
    that tells its models only to those who have its key: then ``models`` is empty.
    """

    place: Place
    type: BackendType
    models: tuple[Model, ...] = ()
    slots: int | None = None
    vision: bool = False
    left_out: int = 0
    wants_key: bool = False


@dataclass(frozen=True, slots=True)
class _Card:
    """A line of the list of models, with names that fit. ``root`` is what the engine loaded, ``parent`` the model that
    an adapter is for.
    """

    name: str
    root: str | None
    parent: str | None


def recognized(place: Place, answers: Mapping[str, Answer]) -> Engine | None:
    """The engine that gave ``answers``, by path; None when that is no engine."""
    models = answers.get(MODELS, Answer(0))
    lines = _lines(models)
    kind = _kind(lines, answers)
    if models.status in _KEY_WANTED and kind is not None:
        return Engine(place, kind, wants_key=True)
    found = _models(_cards(lines))
    if not found:
        return None
    kept = sum(1 + len(model.aliases) + len(model.adapters) for model in found)
    props = _object(answers.get("/props"))
    return Engine(place, kind or BackendType.OPENAI, found, _slots(props), _sees(props), len(lines) - kept)


def _lines(models: Answer) -> list[Mapping[str, object]]:
    data = _object(models).get("data")
    return [line for line in data if isinstance(line, dict)] if isinstance(data, list) else []


def _kind(lines: Sequence[Mapping[str, object]], answers: Mapping[str, Answer]) -> BackendType | None:
    for line in lines:
        owner = line.get("owned_by")
        if isinstance(owner, str) and owner in _OWNERS:
            return _OWNERS[owner]
    return next((kind for path, key, kind in _SIGNS if key in _object(answers.get(path))), None)


def _object(answer: Answer | None) -> Mapping[str, object]:
    return answer.value if answer is not None and answer.status == 200 and isinstance(answer.value, dict) else {}


def _cards(lines: Sequence[Mapping[str, object]]) -> list[_Card]:
    """In order; of a name that is there twice the first counts."""
    cards: dict[str, _Card] = {}
    for line in lines:
        name = _name(line.get("id"))
        if name is not None:
            cards.setdefault(name, _Card(name, _name(line.get("root")), _name(line.get("parent"))))
    return list(cards.values())


def _models(cards: Sequence[_Card]) -> tuple[Model, ...]:
    """Cards with one root are one model under several names; those with a parent are its adapters."""
    known = {card.name for card in cards}
    adapters = {card.name: card.parent for card in cards if card.parent in known and card.parent != card.name}
    families: dict[str, list[str]] = {}
    for card in cards:
        if card.name not in adapters:
            families.setdefault(card.root or card.name, []).append(card.name)
    return tuple(_model(names, adapters) for names in islice(families.values(), MAX_MODELS))


def _model(names: Sequence[str], parents: Mapping[str, str | None]) -> Model:
    family = set(names)
    adapters = [adapter for adapter, parent in parents.items() if parent in family]
    return Model(names[0], tuple(names[1 : MAX_NAMES + 1]), tuple(adapters[:MAX_NAMES]))


def _name(value: object) -> str | None:
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def _slots(props: Mapping[str, object]) -> int | None:
    slots = props.get("total_slots")
    return slots if type(slots) is int and 1 <= slots <= _MAX_SLOTS else None


def _sees(props: Mapping[str, object]) -> bool:
    modalities = props.get("modalities")
    return isinstance(modalities, dict) and modalities.get("vision") is True
