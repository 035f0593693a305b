"""Answers that router_ext gives itself: refusals and the model list."""

from typing import Final
from urllib.parse import unquote

import orjson

from router_ext.config.sections import RouterConfig
from router_ext.health.failures import FIRST_TOKEN_TIMEOUT, TIMEOUT
from router_ext.model.rejection import Reason, Rejection
from router_ext.stream.effects import Answer

_JSON: Final = ("content-type", "application/json")

MODELS_PATH: Final = "/v1/models"


def refusal(rejection: Rejection) -> Answer:
    """The OpenAI-style error of a rejection."""
    headers = [_JSON]
    if rejection.retry_after_s is not None:
        headers.append(("retry-after", str(rejection.retry_after_s)))
    return Answer(rejection.status, tuple(headers), orjson.dumps(rejection.body()))


def nothing_said(failure: str) -> Answer:
    """The answer where no backend brought one."""
    if failure in (TIMEOUT, FIRST_TOKEN_TIMEOUT):
        return refusal(Rejection(Reason.UPSTREAM_TIMEOUT, "The request timed out."))
    return refusal(Rejection(Reason.UPSTREAM_UNAVAILABLE, "No backend could answer.", retry_after_s=1))


class ModelList:
    """``GET /v1/models`` and below, from the configuration. ``created`` is seconds since the epoch."""

    def __init__(self, config: RouterConfig, created: int) -> None:
        cards: dict[str, dict[str, object]] = {}
        for backend in config.backends:
            for name in (backend.model_name, *sorted(backend.aliases), *sorted(backend.lora_adapters)):
                card = {"id": name, "object": "model", "created": created, "owned_by": backend.type.value}
                cards.setdefault(name, card)
        self._cards = cards
        self._list = Answer(200, (_JSON,), orjson.dumps({"object": "list", "data": [*cards.values()]}))

    def answer(self, path: str) -> Answer | None:
        """The answer for a path at or below ``/v1/models``; None for any other path."""
        if path == MODELS_PATH:
            return self._list
        if not path.startswith(MODELS_PATH + "/"):
            return None
        # Clients escape the slash of a name such as org/model, or leave it.
        card = self._cards.get(unquote(path.removeprefix(MODELS_PATH + "/")))
        if card is None:
            return Answer(404, (_JSON,), _UNKNOWN_MODEL)
        return Answer(200, (_JSON,), orjson.dumps(card))


_UNKNOWN_MODEL: Final = orjson.dumps(
    {
        "error": {
            "message": "No backend serves a model of that name.",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
    }
)
