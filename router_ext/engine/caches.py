"""The prefix caches of the backends, from one request's view: what it expects, and what came of it."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from router_ext.config.sections import KvPinning
from router_ext.model.affinity import Affinity
from router_ext.model.backend import Backend
from router_ext.model.outcome import Usage
from router_ext.model.prefix import Prompt
from router_ext.model.request import API_BY_PATH, InferenceRequest
from router_ext.payload.envelope import Envelope
from router_ext.payload.prompt import PromptChain, PromptStart, read_prompt
from router_ext.routing.memory import Hold, PrefixMemory

NOTHING: Final = Prompt()


class Expected(Struct, frozen=True):
    """What one decision expects of its backend's cache: ``matched`` of the prompt's size."""

    chain: PromptChain
    matched: int
    hold: Hold

    @property
    def missing(self) -> int:
        """The part of the prompt that has to be prefilled."""
        return self.chain.prompt.size - self.matched


class CacheReport(Struct, frozen=True):
    """Prompt tokens that were expected in the cache, and those that the engine found there.

    ``cached`` is the latter in the unit of ``Prompt.size``.
    """

    predicted_tokens: int
    cached_tokens: int
    cached: float


class Caches:
    """The pins of all backends. Off while ``server.kv_pinning`` is not enabled: then no request expects anything."""

    def __init__(self) -> None:
        self._enabled = False
        self._memory = PrefixMemory(0.0, 1)
        self._backends: dict[str, Backend] = {}

    def __len__(self) -> int:
        return len(self._memory)

    def configure(self, pinning: KvPinning, backends: Iterable[Backend]) -> None:
        """Takes over new limits, and forgets backends that left, moved or changed their model."""
        wanted = {backend.name: backend for backend in backends}
        for name, old in self._backends.items():
            new = wanted.get(name)
            if new is None or (new.endpoint, new.model_name) != (old.endpoint, old.model_name):
                self._memory.forget(name)
        self._enabled, self._backends = pinning.enabled, wanted
        self._memory.resize(pinning.ttl_s, pinning.max_entries)

    def read(
        self, request: InferenceRequest, envelope: Envelope, start: PromptStart | None = None
    ) -> PromptChain | None:
        """The prefix chain of a request; None while pinning is off. ``start`` as in ``read_prompt``."""
        if not self._enabled:
            return None
        return read_prompt(API_BY_PATH[request.path], request.model, envelope, start)

    def affinity(self, chain: PromptChain, seed: int, now: float, *, touches: bool = True) -> Affinity:
        """What the backends are expected to hold of a prompt. ``touches`` is as in ``PrefixMemory.match``."""
        return Affinity(chain.prompt.size, self._memory.match(chain.prompt, now, touches=touches), seed, now)

    def expect(self, chain: PromptChain, backend: Backend, matched: int) -> Expected:
        """What to remember until the request is settled."""
        return Expected(chain, matched, self._memory.hold(chain.prompt, backend.name, matched))

    def warmed(self, expected: Expected, backend: Backend, now: float, answer: Sequence[object] = ()) -> Prompt:
        """The backend has the prompt in its cache: its first token came, or its whole answer; ``answer`` as in
        ``PromptChain.extended``. Returns what it holds now, the empty prompt where it has no cache.
        """
        if not backend.traits.caches_prefixes:
            return NOTHING
        held = expected.chain.extended(answer)
        self._memory.serve(held, backend.name, now)
        return held

    def told(self, prompt: Prompt, backend: Backend, now: float) -> None:
        """Another router saw that the backend has the prompt in its cache."""
        if self._enabled and backend.traits.caches_prefixes:
            self._memory.serve(prompt, backend.name, now)

    def settled(self, expected: Expected, backend: Backend, usage: Usage | None, now: float) -> CacheReport | None:
        """A request ended well. Returns what the engine said of its cache, None when it said nothing."""
        if not backend.traits.caches_prefixes:
            return None
        size = expected.chain.prompt.size
        if usage is None or usage.cached_tokens is None or not usage.prompt_tokens or not size:
            self._memory.settle(expected.chain.prompt, backend.name, expected.hold, None, now)
            return None
        tokens = usage.prompt_tokens
        cached = size * min(1.0, usage.cached_tokens / tokens)
        self._memory.settle(expected.chain.prompt, backend.name, expected.hold, cached, now)
        return CacheReport(round(tokens * expected.matched / size), usage.cached_tokens, cached)

    def forget(self, name: str) -> None:
        """The backend started anew: its cache is empty."""
        self._memory.forget(name)
