"""The exit codes of every command, in one table: they stand in ``--help`` and in ``docs/cli.md``."""

from collections.abc import Mapping
from typing import Final

from router_ext.cli.failure import EXIT_BAD_CALL, EXIT_WRONG

EXIT_INTERRUPTED: Final = 130
EXIT_UNREAD: Final = 141

Meanings = Mapping[int, str]

USUAL: Final[Meanings] = {
    0: "done",
    EXIT_WRONG: "the command found something wrong",
    EXIT_BAD_CALL: "the call or the configuration is wrong",
}
"""Of a command that ``OF_COMMAND`` does not name."""

ANY_COMMAND: Final[Meanings] = {
    EXIT_INTERRUPTED: "ended by Ctrl-C (SIGINT)",
    EXIT_UNREAD: "whoever read the output has closed it, as `head` does",
}
"""Of every command, beside its own."""

_SERVING: Final[Meanings] = {
    0: "stopped by SIGTERM or SIGINT, after the requests in progress",
    EXIT_WRONG: "an address is taken, or a file cannot be written",
    EXIT_BAD_CALL: USUAL[EXIT_BAD_CALL],
}

OF_COMMAND: Final[Mapping[str, Meanings]] = {
    "serve": _SERVING,
    "worker": _SERVING,
    "check-config": {0: "the file is valid; there may be warnings", EXIT_BAD_CALL: "the file is not valid"},
    "envoy-config": {
        0: "the files are written, or as they should be already",
        EXIT_WRONG: "a file cannot be written",
        EXIT_BAD_CALL: USUAL[EXIT_BAD_CALL],
    },
    "init": {
        0: "the file is written, from what was found",
        EXIT_WRONG: "nothing was found: the file is written, with a backend as an example; or it cannot be written",
        EXIT_BAD_CALL: "the call is wrong, or there is a file already and no --force",
    },
    "doctor": {
        0: "nothing is wrong; there may be warnings",
        EXIT_WRONG: "a check found an error",
        EXIT_BAD_CALL: USUAL[EXIT_BAD_CALL],
    },
    "explain": {
        0: "explained, also where the request would be refused",
        EXIT_WRONG: "the router is away, or refuses the call",
        EXIT_BAD_CALL: "the body, a header or the configuration is wrong",
    },
    "tail": {
        0: "ended by Ctrl-C",
        EXIT_WRONG: "the router was away from the start, or refuses the call",
        EXIT_BAD_CALL: USUAL[EXIT_BAD_CALL],
    },
    "replay": {
        0: "replayed, also where decisions move",
        EXIT_BAD_CALL: "the record or the configuration is wrong",
    },
    "mcp": {0: "whoever spoke to it has closed the input", EXIT_BAD_CALL: "the address or the token cannot be used"},
    "top": {
        0: "ended by q or Ctrl-C, or one frame is printed",
        EXIT_WRONG: "with --once: the router does not answer",
        EXIT_BAD_CALL: "the call is wrong",
    },
    "dpo check": {
        0: "every line is a pair",
        EXIT_WRONG: "some lines are none",
        EXIT_BAD_CALL: "the call is wrong, or a file cannot be read",
    },
    "dpo convert": {
        0: "converted",
        EXIT_WRONG: "some lines are no pairs: nothing is written",
        EXIT_BAD_CALL: "the call is wrong, or a file cannot be read or written",
    },
    "demo": {
        0: "stopped by Ctrl-C, or every step of the tour is right",
        EXIT_WRONG: "a step of the tour is wrong, or something does not start",
        EXIT_BAD_CALL: "the call is wrong",
    },
    "sim-backend": {0: "stopped by SIGTERM or SIGINT", EXIT_BAD_CALL: "a setting or the address cannot be used"},
    "completion": {0: "printed", EXIT_BAD_CALL: "the call is wrong"},
}
"""By command, subcommands after a space."""


def epilog(command: str) -> str:
    """The exit codes as they stand below ``--help``."""
    lines = [f"  {code:<4} {meaning}" for code, meaning in OF_COMMAND.get(command, USUAL).items()]
    return "\n".join(("exit codes:", *lines))
