"""Standard output belongs to the protocol, whoever else writes there."""

import subprocess
import sys

SCRIPT = """
import logging, os, subprocess, sys, warnings
from router_ext.mcp.wire import claim_standard_streams
print("before")
wire_in, wire_out = claim_standard_streams()
wire_out.write("first\\n")
print("print")
sys.__stdout__.write("dunder\\n")
os.write(1, b"write\\n")
subprocess.run(["echo", "child"], check=True)
logging.basicConfig(stream=sys.stdout, level=10, force=True)
logging.debug("log")
warnings.warn("warned", DeprecationWarning)
child = subprocess.run(["cat"], capture_output=True, check=True).stdout
wire_out.write(f"{wire_in.readline()}{child!r}\\n")
wire_out.flush()
sys.stdout.flush()
raise SystemExit(repr(sys.stdin.read()))
"""


def test_only_the_wire_writes_to_standard_output_and_only_it_reads_standard_input() -> None:
    """Prints, logs, warnings, bare writes and children end in standard error; children find no input."""
    argv = [sys.executable, "-W", "always", "-c", SCRIPT]
    ended = subprocess.run(argv, input="question\nmore\n", capture_output=True, text=True, timeout=30, check=False)
    assert ended.stdout == "before\nfirst\nquestion\nb''\n"
    for said in ("print\n", "dunder\n", "write\n", "child\n", ":log\n", "warned\n", "\n''\n"):
        assert said in ended.stderr
