"""What one simulated engine is configured with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SimSettings:
    """One simulated engine.

    Rates are tokens a second, sizes are tokens unless named otherwise. ``max_queue`` None means no limit, 0 means that
    a request is accepted only when it can start at once. ``stable_ids`` derives ids and times from the request body, so
    that two answers to the same bytes are equal byte for byte. ``keepalive_s`` is how long an idle connection stays
    open (real vLLM: 5). ``record`` keeps every received request in memory, for tests.

    Raises ValueError when a rate or size is not positive, or the model has no name.
    """

    model: str = "sim"
    aliases: tuple[str, ...] = ()
    loras: tuple[str, ...] = ()
    prefill_tps: float = 20_000.0
    decode_tps: float = 200.0
    max_num_seqs: int = 64
    cache_blocks: int = 4_000
    block_size: int = 16
    max_model_len: int = 131_072
    max_queue: int | None = None
    api_key: str = ""
    seed: int = 0
    stable_ids: bool = False
    multimodal: bool = False
    embedding_size: int = 16
    max_body_bytes: int = 67_108_864
    keepalive_s: float = 5.0
    record: bool = True

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model: a name is needed")
        for name in ("prefill_tps", "decode_tps", "max_num_seqs", "cache_blocks", "block_size", "max_model_len"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}: must be more than 0, got {getattr(self, name)}")
        if self.max_queue is not None and self.max_queue < 0:
            raise ValueError(f"max_queue: must not be negative, got {self.max_queue}")

    @property
    def served_names(self) -> tuple[str, ...]:
        """Every name that a request may use, the primary one first."""
        return (self.model, *self.aliases, *self.loras)

    def resolve(self, requested: str) -> str | None:
        """The name that an answer carries: the adapter's own, the primary one for an alias, None when unknown."""
        if requested in self.loras:
            return requested
        return self.model if not requested or requested in self.served_names else None
