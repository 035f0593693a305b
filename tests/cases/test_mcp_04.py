"""MCP-04: on standard output there must be nothing but the protocol, whatever libraries and children say."""

import asyncio
import json
import sys
from pathlib import Path

from router_ext.demo.child import free_port

NOISE = '''
"""Makes the import of the protocol's library as loud as one can be."""

import sys


class Loud:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp.server.stdio":
            sys.meta_path.remove(self)
            import logging, os, subprocess, warnings

            print("banner of a library")
            sys.__stdout__.write("banner around print\\n")
            os.write(1, b"bytes of an extension\\n")
            subprocess.run(["echo", "said by a child"])
            logging.basicConfig(stream=sys.stdout, level=logging.DEBUG)
            logging.getLogger("noise").debug("a debug line")
            warnings.warn("this import is deprecated", DeprecationWarning)
        return None


sys.meta_path.insert(0, Loud())
'''
MESSAGES = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "router_health", "arguments": {}}},
    {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "nothing", "arguments": {}}},
    {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": 7}},
]


async def test_every_line_of_standard_output_is_a_message(tmp_path: Path) -> None:
    """Debug logs, warnings, prints, bare writes and children's output go to standard error."""
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "always", "-X", "dev", "-m", "router_ext.cli.main", "mcp", "--log-level", "debug"),
        *("--admin", f"http://127.0.0.1:{free_port()}"),
        env={"PYTHONPATH": str(tmp_path), "LOG_LEVEL": "debug", "PATH": "/usr/bin:/bin", "PYTHONASYNCIODEBUG": "1"},
        cwd=Path(__file__).parents[2],
        limit=2**22,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    saying = asyncio.create_task(process.stderr.read())
    lines = []
    async with asyncio.timeout(60):
        for sent in [json.dumps(message) for message in MESSAGES] + ["no message"]:
            process.stdin.write(sent.encode() + b"\n")
            if '"id"' in sent:
                lines.append(await process.stdout.readline())
        process.stdin.close()
        lines += (await process.stdout.read()).splitlines()
        said = (await saying).decode()
        assert await process.wait() == 0
    answers = [json.loads(line) for line in lines]
    assert {answer["jsonrpc"] for answer in answers} == {"2.0"}
    assert [answer["id"] for answer in answers if "id" in answer][:5] == [1, 2, 3, 4, 5]
    for text in ("banner of a library", "banner around", "of an extension", "said by a child", "a debug line"):
        assert text in said
    assert "this import is deprecated" in said
    assert "mcp_started" in said
