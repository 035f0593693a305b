"""Standard input and output as a wire of which nothing but the protocol may make use."""

import os
import sys
from io import TextIOWrapper


def claim_standard_streams() -> tuple[TextIOWrapper, TextIOWrapper]:
    """The two ends of the wire. From then on whatever else this process or a child of it writes to standard output
    goes to standard error, and reads of standard input find its end.
    """
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return (
        os.fdopen(wire_in, "r", encoding="utf-8", errors="replace"),
        os.fdopen(wire_out, "w", encoding="utf-8", newline="\n"),
    )
