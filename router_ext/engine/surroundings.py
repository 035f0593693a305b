"""What an engine may have around it."""

from dataclasses import dataclass

from router_ext.engine.tally import Tally
from router_ext.ports import (
    ALONE,
    NO_JUDGE,
    NO_LEDGER,
    NO_PAIRS,
    NO_SHADOW_LOG,
    Ledger,
    PairSink,
    SchemaJudge,
    ShadowSink,
    SharedState,
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Without them an engine is alone and forgets. ``tally`` is where the workers of one router see each other's
    requests in flight.
    """

    shared: SharedState = ALONE
    tally: Tally | None = None
    judge: SchemaJudge = NO_JUDGE
    pairs: PairSink = NO_PAIRS
    ledger: Ledger = NO_LEDGER
    shadow_log: ShadowSink = NO_SHADOW_LOG


NOTHING = Surroundings()
