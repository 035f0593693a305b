"""What a request has to do with an A/B test."""

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

VARIANT_RULE: Final = "ab_test"
"""The rule name of requests that went to a variant of a test."""

Variant = Literal["a", "b"]


class Assignment(Struct, frozen=True):
    """The variant that a caller has in a test that splits the traffic.

    ``backend`` is the variant's own, ``other_backend`` the other one's. ``fell_back``: when the request came, its own
    could not take it and another backend got it.
    """

    test: str
    variant: Variant
    backend: str
    other_backend: str
    fell_back: bool = False

    def given_to(self, backend: str) -> "Assignment":
        """The same once ``backend`` was chosen for the request."""
        return self if backend == self.backend else replace(self, fell_back=True)

    def is_served_by(self, backend: str) -> bool:
        """True when an answer of ``backend`` is one of the variant, and may be compared with those of the other."""
        return not self.fell_back and backend == self.backend
