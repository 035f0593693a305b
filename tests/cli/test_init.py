"""``router-ext init`` against what may listen on an engine's port: engines, other servers, and hostile ones."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from router_ext.cli import init
from router_ext.cli.failure import CommandError
from router_ext.cli.init import places
from router_ext.cli.main import main
from router_ext.cli.starting import scan as scanning
from router_ext.cli.starting.engines import Engine, Place
from router_ext.cli.starting.scan import PORTS, scan
from router_ext.demo.child import free_port
from router_ext.demo.sim.server import SimServer
from router_ext.demo.sim.settings import SimSettings
from router_ext.model.backend import BackendType

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "CONFIG_PATH")
LLAMACPP = {
    "/v1/models": {"object": "list", "data": [{"id": "/models/m.gguf", "object": "model", "owned_by": "llamacpp"}]},
    "/props": {"default_generation_settings": {}, "total_slots": 4, "modalities": {"vision": True}},
    "/api/tags": {"models": [{"name": "m"}]},
}
SGLANG = {
    "/v1/models": {"object": "list", "data": [{"id": "org/m", "owned_by": "sglang", "root": "org/m"}]},
    "/get_server_info": {"model_path": "org/m", "api_key": "sk-of-the-engine"},
}
OLLAMA = {
    "/v1/models": {
        "data": [{"id": "llama3.2:latest", "owned_by": "library"}, {"id": "qwen3:8b", "owned_by": "library"}]
    },
    "/api/tags": {"models": [{"name": "llama3.2:latest"}, {"name": "qwen3:8b"}]},
}

Respond = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this machine do not count."""
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


async def _served(stack: AsyncExitStack, respond: Respond) -> Place:
    """A server that answers each connection's first request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await respond(head.split(b" ")[1].decode(), writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await stack.enter_async_context(await asyncio.start_server(serve, "127.0.0.1", 0))
    return Place("127.0.0.1", server.sockets[0].getsockname()[1])


def _answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    head = "\r\n".join((f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers))
    return head.encode() + b"\r\n\r\n" + body


def _pages(pages: dict[str, Any]) -> Respond:
    async def respond(path: str, writer: asyncio.StreamWriter) -> None:
        found = pages.get(path)
        writer.write(_answer(b"{}", "404 Not Found") if found is None else _answer(orjson.dumps(found)))

    return respond


def _scanned(*responders: Respond) -> list[Engine]:
    async def scanned() -> list[Engine]:
        async with AsyncExitStack() as stack:
            return await scan([await _served(stack, respond) for respond in responders])

    return asyncio.run(scanned())


def test_engines_are_told_apart() -> None:
    """By their answers to the paths of all of them."""
    engines = _scanned(_pages(LLAMACPP), _pages(SGLANG), _pages(OLLAMA))
    assert [engine.type for engine in engines] == [BackendType.LLAMACPP, BackendType.SGLANG, BackendType.OLLAMA]
    assert [[model.name for model in engine.models] for engine in engines] == [
        ["/models/m.gguf"],
        ["org/m"],
        ["llama3.2:latest", "qwen3:8b"],
    ]
    assert (engines[0].slots, engines[0].vision) == (4, True)


async def _endless(path: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"[" * 65536)
        await writer.drain()


async def _silent(path: str, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def _trickling(path: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _other_protocol(path: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\x00\xff" * 100)


async def _nested(path: str, writer: asyncio.StreamWriter) -> None:
    writer.write(_answer(b'{"data":' + b"[" * 500_000))


async def _packed(path: str, writer: asyncio.StreamWriter) -> None:
    body = orjson.dumps(LLAMACPP["/v1/models"])
    writer.write(_answer(body, "200 OK", "content-encoding: gzip"))


async def _huge_header(path: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 2**20 + b"\r\n\r\n{}")


@pytest.mark.parametrize(
    "respond",
    [_endless, _silent, _trickling, _other_protocol, _nested, _huge_header],
    ids=["endless", "silent", "trickling", "other protocol", "nested", "huge header"],
)
def test_what_answers_badly_is_no_engine(respond: Respond, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it keep the engine beside it from being found. Sizes and times are bounded."""
    monkeypatch.setattr(scanning, "DEADLINE_S", 1.0)
    assert [engine.type for engine in _scanned(respond, _pages(SGLANG))] == [BackendType.SGLANG]


def test_a_body_is_not_unpacked() -> None:
    """A small body could become an endless one; it was asked for as it is, so here it is read as it is."""
    assert [engine.type for engine in _scanned(_packed)] == [BackendType.LLAMACPP]


def test_a_redirect_is_not_followed() -> None:
    """It could lead anywhere."""

    async def scanned() -> tuple[list[Engine], list[str]]:
        asked: list[str] = []

        async def target(path: str, writer: asyncio.StreamWriter) -> None:
            asked.append(path)

        async with AsyncExitStack() as stack:
            there = await _served(stack, target)

            async def redirect(path: str, writer: asyncio.StreamWriter) -> None:
                writer.write(_answer(b"", "302 Found", f"location: http://{there}{path}"))

            return await scan([await _served(stack, redirect)]), asked

    assert asyncio.run(scanned()) == ([], [])


def _init(*arguments: str, simulated: SimSettings) -> int:
    """Runs the command beside a simulated vLLM, where it looks anyway."""

    async def ran() -> int:
        async with SimServer(simulated) as sim:
            at = ("--scan", f"127.0.0.1:{sim.port}")
            return await asyncio.to_thread(main, ["init", *arguments, *at])

    return asyncio.run(ran())


@pytest.fixture
def _nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No usual port is looked at: something of this machine may listen there."""
    monkeypatch.setattr(init, "PORTS", ())


@pytest.mark.usefixtures("_nothing_here")
def test_a_file_is_written_of_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what it found, where it wrote it and what to do next; a key's value stays where it is."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-value")
    file = tmp_path / "router.yaml"
    assert _init("--out", str(file), simulated=SimSettings(model="org/m", loras=("tuned",))) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("found vllm at http://127.0.0.1:")
    assert lines[0].endswith(": org/m")
    assert lines[1] == "found a key of openai in OPENAI_API_KEY"
    assert lines[2] == f"wrote {file}: 2 backends"
    assert lines[4] == f"  router-ext check-config {file}"
    assert "sk-value" not in file.read_text() + "".join(lines)
    assert main(["check-config", str(file)]) == 0


@pytest.mark.usefixtures("_nothing_here")
def test_a_program_gets_an_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the backends as a router would read them."""
    file = tmp_path / "router.yaml"
    assert _init("--out", str(file), "--json", simulated=SimSettings(model="m")) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["file"] == str(file)
    assert [(backend["type"], backend["model"]) for backend in made["backends"]] == [("vllm", "m")]
    assert [engine["models"] for engine in made["engines"]] == [["m"]]
    assert (made["keys"], made["notes"]) == ([], [])
    assert made["next"][0] == f"router-ext check-config {file}"


@pytest.mark.usefixtures("_nothing_here")
def test_an_engine_with_a_key_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing else, so the backend is an example, and the exit code says so."""
    file = tmp_path / "router.yaml"
    assert _init("--out", str(file), "--json", simulated=SimSettings(model="m", api_key="k")) == 1
    made = json.loads(capsys.readouterr().out)
    assert [backend["name"] for backend in made["backends"]] == ["example"]
    assert len(made["notes"]) == 2
    assert "wants a key" in made["notes"][1]


@pytest.mark.usefixtures("_nothing_here")
def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also a link that leads nowhere. With --force it is written over."""
    file, link = tmp_path / "router.yaml", tmp_path / "link.yaml"
    file.write_text("mine")
    link.symlink_to(tmp_path / "none")
    for target in (file, link):
        assert main(["init", "--out", str(target)]) == 2
        assert capsys.readouterr().err == f"router-ext: {target} exists: --force writes over it\n"
    assert main(["init", "--out", str(file), "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "exists"
    assert file.read_text() == "mine"
    assert main(["init", "--out", str(file), "--force"]) == 1
    assert "backends:" in file.read_text()
    assert sorted(os.listdir(tmp_path)) == ["link.yaml", "router.yaml"]


@pytest.mark.usefixtures("_nothing_here")
def test_a_file_that_came_meanwhile_stays(tmp_path: Path) -> None:
    """Between the look at the folder and the writing."""
    file = tmp_path / "router.yaml"
    file.write_text("mine")
    with pytest.raises(CommandError, match="exists"):
        init.write(file, "text", force=False)
    assert file.read_text() == "mine"


@pytest.mark.usefixtures("_nothing_here")
def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1."""
    assert main(["init", "--out", str(tmp_path / "none" / "router.yaml")]) == 1
    assert capsys.readouterr().err.startswith("router-ext: ")


def test_places_are_hosts_with_or_without_a_port() -> None:
    """Without one, the usual ports."""
    assert places("gpu-1:9000") == [Place("gpu-1", 9000)]
    assert places("[::1]:9000") == [Place("::1", 9000)]
    assert places("10.0.0.7") == [Place("10.0.0.7", port) for port in PORTS]


@pytest.mark.parametrize(
    "text", ["", ":8000", "h:0", "h:65536", "::1", "[h]:1", "h/x", "u@h", "http://h", "h:1:2", "h\n", 'h"', "a b"]
)
def test_a_place_is_no_url(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad call, before anything is looked at."""
    with pytest.raises(SystemExit):
        main(["init", "--scan", text])
    assert "--scan" in capsys.readouterr().err


def test_nothing_at_a_place_is_nothing() -> None:
    """A closed port, and a name that no resolver knows."""
    assert asyncio.run(scan([Place("127.0.0.1", free_port()), Place("no-such-host.invalid", 80)])) == []
