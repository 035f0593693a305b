"""``router-ext top`` as a process: on a terminal, in a pipe, and against a router that is not there."""

import asyncio
import json
import re
import signal

import pytest

from router_ext.demo.child import free_port
from tests.cli.processes import DEADLINE_S, run, start, terminal
from tests.fakes.admin_api import TOKEN, FakeAdminApi

SIZE_OF_THE_TERMINAL = {"COLUMNS": "", "LINES": ""}
FAST = ("--interval", "100ms")


def test_one_frame_is_printed_for_scripts() -> None:
    """Of two readings, so that it has rates. No colours and no control characters in a pipe."""

    async def printed() -> str:
        async with FakeAdminApi() as api:
            ended = await run("top", "--once", "--admin", api.url, *FAST)
            assert (ended.code, ended.err) == (0, "")
            assert api.asked.count("/api/stats") == 2
            return ended.out

    lines = asyncio.run(printed()).splitlines()
    assert lines[0].startswith("router_ext  up 1h 1m")
    states = [line.split()[:2] for line in lines if line.strip().startswith(("a ", "b "))]
    assert states == [["a", "healthy"], ["b", "breaker"]]
    assert not any(ord(char) < 32 for line in lines for char in line)


def test_one_frame_is_one_object_for_programs() -> None:
    """With the router's figures and each backend's."""

    async def printed() -> str:
        async with FakeAdminApi(token=TOKEN) as api:
            url = api.url + "/"
            ended = await run("top", "--once", "--json", "--admin", url, *FAST, environ={"ROUTER_API_TOKEN": TOKEN})
            assert (ended.code, ended.err) == (0, "")
            return ended.out

    frame = json.loads(asyncio.run(printed()))
    assert frame["error"] is None
    assert frame["router"]["requests_s"] > 0
    assert [(line["backend"], line["spend_usd"]) for line in frame["router"]["backends"]] == [("a", 1.75), ("b", 0.0)]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_router_that_is_away_is_one_line_for_scripts(as_json: bool) -> None:
    """And exit code 1."""
    port = free_port()
    ended = asyncio.run(run("top", "--once", "--admin", f"http://127.0.0.1:{port}", *(["--json"] if as_json else [])))
    message = f"http://127.0.0.1:{port} does not answer (Connection refused)"
    assert (ended.code, ended.out) == (1, "")
    if as_json:
        assert json.loads(ended.err)["error"] == {"message": message, "code": "router_away", "problems": []}
    else:
        assert ended.err == f"router-ext: {message}\n"


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [("/api/stats", 401, "set ROUTER_API_TOKEN"), ("/api/backends", 500, "status 500 for /api/backends")],
)
def test_a_router_that_refuses_is_told_why(path: str, status: int, told: str) -> None:
    """What it answers, and what to do."""

    async def failed() -> str:
        async with FakeAdminApi(broken={path: status}) as api:
            ended = await run("top", "--once", "--admin", api.url, *FAST)
            assert ended.code == 1
            return ended.err

    assert told in asyncio.run(failed())


def test_a_ledger_out_of_reach_hides_nothing_else() -> None:
    """Only the spending of the backends is not known."""

    async def printed() -> str:
        async with FakeAdminApi(broken={"/api/costs": 503}) as api:
            return (await run("top", "--once", "--json", "--admin", api.url, *FAST)).out

    lines = json.loads(asyncio.run(printed()))["router"]["backends"]
    assert [line["spend_usd"] for line in lines] == [None, None]


def test_frames_follow_each_other_in_a_pipe_and_the_router_may_come_and_go() -> None:
    """Each is a line of JSON; Ctrl-C ends them with exit code 0."""

    async def watched() -> tuple[list[bool], int, bytes]:
        url = f"http://127.0.0.1:{free_port()}"
        process = await start("top", "--json", "--admin", url, *FAST)
        assert process.stdout is not None
        seen: list[bool] = []

        async def until(away: bool) -> None:
            while True:
                frame = json.loads(await asyncio.wait_for(process.stdout.readline(), DEADLINE_S))  # type: ignore[union-attr]
                if (frame["error"] is not None) == away:
                    seen.append(frame["router"] is not None)
                    return

        await until(away=True)
        async with FakeAdminApi(url=url):
            await until(away=False)
        await until(away=True)
        async with FakeAdminApi(url=url):
            await until(away=False)
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)
        return seen, process.returncode or 0, err

    assert asyncio.run(watched()) == ([False, True, True, True], 0, b"")


@pytest.mark.parametrize("end", ["q", "\x03"], ids=["q", "Ctrl-C"])
def test_a_terminal_is_left_as_it_was(end: str) -> None:
    """The frame has a screen of its own, in colours; a key ends it, and the cursor is back."""

    async def shown() -> tuple[int, bytes]:
        async with FakeAdminApi() as api:
            with terminal("top", "--admin", api.url, *FAST) as screen:
                await screen.until(b"healthy")
                screen.press(end.encode())
                return await screen.ended(), screen.shown

    code, seen = asyncio.run(shown())
    assert code == 0
    assert b"\x1b[?1049h" in seen
    assert seen.index(b"\x1b[?1049l") > seen.index(b"healthy")
    assert b"\x1b[32mhealthy" in seen
    assert b"\x1b[?25h" in seen
    assert b"Traceback" not in seen


def test_a_terminal_that_is_resized_gets_a_frame_of_its_size() -> None:
    """At once, not with the next reading; no line is longer than the terminal is wide."""

    async def shown() -> bytes:
        async with FakeAdminApi() as api:
            with terminal("top", "--admin", api.url, "--interval", "1h", environ=SIZE_OF_THE_TERMINAL) as screen:
                screen.resize(columns=140, lines=30)
                await screen.until(b"today")
                await screen.until(b"healthy")
                screen.shown = b""
                screen.resize(columns=50, lines=12)
                # Names are cut where there is no room for them.
                await screen.until("…".encode())
                screen.press(b"q")
                assert await screen.ended() == 0
                return screen.shown

    _, _, frame = asyncio.run(shown()).rpartition(b"\x1b[H")
    lines = re.sub(rb"\x1b\[[?0-9;]*[A-Za-z]", b"", frame).decode().splitlines()
    assert 0 < max(map(len, lines)) <= 50
    assert len(lines) <= 12


def test_a_terminal_without_colours_gets_none() -> None:
    """``NO_COLOR`` is set."""

    async def shown() -> bytes:
        async with FakeAdminApi() as api:
            with terminal("top", "--admin", api.url, *FAST, environ={"NO_COLOR": "1"}) as screen:
                await screen.until(b"healthy")
                screen.press(b"q")
                await screen.ended()
                return screen.shown

    assert b"\x1b[32m" not in asyncio.run(shown())


def test_a_terminal_shows_a_router_that_goes_away() -> None:
    """Above the last table."""

    async def shown() -> None:
        async with FakeAdminApi() as api:
            with terminal("top", "--admin", api.url, *FAST) as screen:
                await screen.until(b"healthy")
                api.broken["/api/stats"] = 500
                await screen.until(b"status 500 for /api/stats, for 0 s")
                screen.press(b"q")
                assert await screen.ended() == 0

    asyncio.run(shown())
