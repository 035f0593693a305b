"""The decision contract as the admin API's document describes it: ``router_ext.v1`` in JSON.

Fields that are empty, 0 or false are left out. 64-bit numbers are texts.
"""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class _Message(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, serialize_by_alias=True)


class ShownRequest(_Message):
    """What routing knew about the request: no prompt, no credential."""

    path: str = ""
    service: str = ""
    call_type: str = ""
    priority: str = ""
    tier: int = 0
    model: str = ""
    content_type: str = ""
    stream: bool = False
    body_bytes: str = ""


class ShownScore(_Message):
    """One scorer's value: lower is better."""

    scorer: str = ""
    value: float = 0.0


class ShownCandidate(_Message):
    """One backend's part in a decision; ``filteredBy`` names the filter that removed it."""

    backend: str = ""
    filtered_by: str = ""
    reason: str = ""
    scores: list[ShownScore] = []


class ShownPin(_Message):
    """How much of the prompt the chosen backend is expected to hold in its cache, in bytes of text."""

    expected_bytes: int = 0
    prompt_bytes: int = 0


class ShownHeld(_Message):
    """A prefix of the prompt in one backend's cache."""

    backend: str = ""
    bytes: int = 0


class ShownCaches(_Message):
    """One prompt against the prefix caches."""

    prompt_bytes: int = 0
    held: list[ShownHeld] = []
    seed: int = 0


class ShownPrefill(_Message):
    """Prompts that wait to be read by one backend, in bytes of text."""

    rate: float = 0.0
    queued: float = 0.0
    behind: float = 0.0
    free_in_s: float | None = None


class ShownTtft(_Message):
    """Times to the first token of one backend's last requests."""

    samples: int = 0
    p95_ms: float = 0.0
    age_s: float = 0.0


class ShownState(_Message):
    """One backend at the instant of the decision."""

    backend: str = ""
    health: str = ""
    circuit_open: bool = False
    in_flight: int = 0
    elsewhere: float = 0.0
    paused_s: float = 0.0
    prefill: ShownPrefill | None = None
    ttft: ShownTtft | None = None


class ShownSeen(_Message):
    """The state that a decision depended on."""

    backends: list[ShownState] = []
    caches: ShownCaches | None = None
    probes: bool = False
    tried: list[str] = []


class ShownDecision(_Message):
    """One decision with every candidate, filter and score."""

    id: str = ""
    time: str = ""
    request: ShownRequest | None = None
    rule: str = ""
    backend: str = ""
    upstream_model: str = ""
    candidates: list[ShownCandidate] = []
    rejection: str = ""
    attempt: int = 0
    request_id: str = ""
    downgraded: bool = False
    pin: ShownPin | None = None
    seen: ShownSeen | None = None


class DecisionList(_Message):
    """Decisions, newest first."""

    decisions: list[ShownDecision]


class ShownRefusal(_Message):
    """The error that the client would get."""

    status: int = 0
    code: str = ""
    message: str = ""
    retry_after_s: int = 0


class ShownAbTest(_Message):
    """The caller's place in an A/B test."""

    test: str = ""
    variant: str = ""
    fell_back: bool = False
    by_chance: bool = False


class ShownGate(_Message):
    """How the quality gate would look at the answer."""

    probability: float = 0.0
    fallback: str = ""
    observes: bool = False
    schema_: bool = False

    model_config = ConfigDict(alias_generator=lambda name: to_camel(name.rstrip("_")), serialize_by_alias=True)


class ShownShadow(_Message):
    """A copy of the request for another backend."""

    test: str = ""
    backend: str = ""
    probability: float = 0.0


class ShownSession(_Message):
    """The session that the request belongs to: ``create``, ``continue`` or ``end``."""

    action: str = ""
    tokens: int = 0


class ShownExplanation(_Message):
    """What would become of a request. ``refusal`` is there instead of ``cluster`` when it would not be routed."""

    decision: ShownDecision | None = None
    cluster: str = ""
    refusal: ShownRefusal | None = None
    budget: str = ""
    ab_test: ShownAbTest | None = None
    gate: ShownGate | None = None
    shadow: ShownShadow | None = None
    session: ShownSession | None = None
