"""A judge without its router: it must not outlive it."""

import resource
import signal
import subprocess
import sys

from router_ext.model.gate import SchemaVerdict
from router_ext.schemas.frames import READY, REPLY, Reply, Request, decode_reply, encode_request
from tests.schemas.courts import ENDLESS, bomb, schema_text

PATIENCE_S = 60.0


def start() -> "subprocess.Popen[bytes]":
    """A judge that may use a second of CPU for a request."""
    argv = [sys.executable, "-m", "router_ext.schemas.judge", "1"]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_judge_answers_what_came_before_the_end_and_ends() -> None:
    """The end of its input is the end of the router."""
    judge = start()
    requests = [Request(b'{"type": "integer"}', b"1"), Request(b'{"type": "integer"}', b"1.5"), Request(None, b"x")]
    output, _ = judge.communicate(b"".join(map(encode_request, requests)), timeout=PATIENCE_S)
    assert output[:1] == READY
    replies = [decode_reply(output[at : at + REPLY.size]) for at in range(1, len(output), REPLY.size)]
    expected = [SchemaVerdict.VALID, SchemaVerdict.INVALID, SchemaVerdict.NOT_JSON]
    assert replies == [Reply(verdict, worn=False) for verdict in expected]
    assert judge.returncode == 0


def test_a_judge_at_work_runs_out_of_processor_time() -> None:
    """It would go on for centuries, with nobody to kill it."""
    judge = start()
    judge.communicate(encode_request(Request(schema_text(ENDLESS).text, b'"x"')), timeout=PATIENCE_S)
    assert judge.returncode == -signal.SIGXCPU


def test_processor_time_is_limited_for_each_request_not_for_all() -> None:
    """Ten requests take more than the two seconds at which one alone is killed at the latest."""
    judge = start()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    slow = encode_request(Request(schema_text(bomb(25)).text, b'"x"'))
    output, _ = judge.communicate(slow * 10, timeout=PATIENCE_S)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > 2.0
    assert len(output) == 1 + 10 * REPLY.size
    assert judge.returncode == 0
