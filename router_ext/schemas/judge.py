"""A judge: a process that reads requests from its standard input until that ends, and writes replies.

``python -m router_ext.schemas.judge CPU_SECONDS``: so much processor time may one request take. The router kills it
sooner by its own clock; this limit and those of memory hold when the router is gone or slow.
"""

import gc
import os
import re
import resource
import sys
import threading
from pathlib import Path
from typing import BinaryIO, Final

from router_ext.schemas.frames import READY, Reply, encode_reply, read_request
from router_ext.schemas.verdict import Law

MAX_MEMORY: Final = 512 * 1024 * 1024
"""Bytes of address space. A judge that needs more dies. It starts with 230 MiB, most of it stack, 20 resident."""

STACK: Final = 128 * 1024 * 1024
"""Bytes of stack. 10,000 levels of a value, each under 56 combinators inside one another, need less than 64 MiB."""

MAX_LEVELS: Final = 10_000
"""Recursion limit, which bounds how deeply a text may be nested."""

WORN_KB: Final = 192 * 1024
"""Highest resident KiB after which a judge asks to be replaced: schemas that it keeps compiled may be large."""

_PEAK: Final = re.compile(rb"VmHWM:\s*(\d+) kB")
"""The line of Linux' ``/proc/self/status`` with the highest resident size since the process began."""

NICENESS: Final = 5
"""Judges that are busy all the time leave the processor to the router when it wants it."""


def main() -> None:
    """Runs in a thread, as only there the size of the stack can be chosen."""
    _limit()
    threading.stack_size(STACK)
    judge = threading.Thread(target=_serve, args=(sys.stdin.buffer, sys.stdout.buffer, int(sys.argv[1])))
    judge.start()
    judge.join()


def _limit() -> None:
    _bound(resource.RLIMIT_AS, MAX_MEMORY)
    # A core file would hold prompts.
    _bound(resource.RLIMIT_CORE, 0)
    os.nice(NICENESS)
    sys.setrecursionlimit(MAX_LEVELS)
    # Values are trees: they go when their last reference goes.
    gc.disable()


def _serve(source: BinaryIO, sink: BinaryIO, cpu_s: int) -> None:
    law = Law()
    sink.write(READY)
    sink.flush()
    while (request := read_request(source)) is not None:
        _allow(cpu_s)
        reply = Reply(law.verdict(request.schema, request.text), worn=_is_worn())
        sink.write(encode_reply(reply))
        sink.flush()


def _allow(cpu_s: int) -> None:
    """The limit counts from the start of the process, so each request moves it on. It is told in whole seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _bound(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + cpu_s)


def _bound(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _is_worn() -> bool:
    # Quick, and never too low: it begins with the peak of the process that started this one, maybe a large router.
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss <= WORN_KB:
        return False
    try:
        status = Path("/proc/self/status").read_bytes()
    except OSError:
        return False
    peak = _PEAK.search(status)
    return peak is not None and int(peak[1]) > WORN_KB


if __name__ == "__main__":
    main()
