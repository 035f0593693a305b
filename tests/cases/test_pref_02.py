"""PREF-02: the same body must give the same keys and the same bytes, every time and in every process."""

import os
import subprocess
import sys
from pathlib import Path

from router_ext.model.request import Api, Caller
from router_ext.payload.inference import BodyLimits, InferenceBody, read_inference
from tests.fakes.domain import CHAT
from tests.fakes.prompts import read

ROOT = Path(__file__).parents[2]
TOOL = b'{"type":"function","function":{"name":"f","parameters":{"properties":{"b":{"type":"string"},"a":{}}}}}'
TURNS = b'"messages":[{"role":"system","content":"S"},{"role":"user","content":"hi"}]'
BODY = b'{"model":"m-a","max_tokens":999999,"tools":[' + TOOL + b"]," + TURNS + b"}"

SCRIPT = f"""
from router_ext.model.request import Api
from tests.fakes.prompts import read
print(read(Api.CHAT, {BODY!r}).key.hex())
"""


def _rewritten() -> bytes | None:
    body = read_inference(CHAT, Caller(), BODY, "", BodyLimits(10_000))
    assert isinstance(body, InferenceBody)
    return body.for_model("m-b")


def test_a_rewritten_body_keeps_the_key_order_of_the_client() -> None:
    """Byte for byte the same in 100 runs: only the model's name changes."""
    assert {_rewritten() for _ in range(100)} == {BODY.replace(b'"m-a"', b'"m-b"')}


def test_every_process_finds_the_same_key() -> None:
    """Whatever seed Python hashes strings with, so that replicas can share pins."""
    keys = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        output = subprocess.check_output([sys.executable, "-c", SCRIPT], env=environment, cwd=ROOT, text=True)
        keys.add(output.strip())
    assert keys == {read(Api.CHAT, BODY).key.hex()}


def test_spacing_and_the_order_of_top_level_fields_do_not_matter() -> None:
    """Engines never see them in the prompt."""
    spaced = BODY.replace(b",", b" , ").replace(b":", b": ")
    moved = b"{" + TURNS + b',"tools":[' + TOOL + b'],"model":"m-a"}'
    assert read(Api.CHAT, spaced).key == read(Api.CHAT, moved).key == read(Api.CHAT, BODY).key


def test_the_key_order_inside_a_tool_does_matter() -> None:
    """Engines render a schema as the client wrote it."""
    other = BODY.replace(b'"b":{"type":"string"},"a":{}', b'"a":{},"b":{"type":"string"}')
    assert read(Api.CHAT, other).key != read(Api.CHAT, BODY).key
