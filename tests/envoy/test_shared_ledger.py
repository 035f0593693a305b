"""Two routers behind an Envoy each, and several workers behind one: their ledgers are one in Redis."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import Stack, stack
from tests.envoy.test_costs import CONFIG, SETTLED, SIMS, ask, asked, booked
from tests.fakes.valkey_server import ValkeyServer, valkey_server

SHARED = """
  {workers}
  shared_state: redis
  sessions: {{redis_url: '{url}'}}
"""
UNPUSHED = "kronaxis_router_ledger_unpushed_rows"
SPENT = "kronaxis_router_spent_today_usd"

Booked = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Replicas:
    """Both stacks and their server."""

    one: Stack
    other: Stack
    server: ValkeyServer


@pytest.fixture(scope="module")
def replicas() -> Iterator[Replicas]:
    """Two replicas for all tests."""
    with valkey_server() as server:
        extra = SHARED.format(url=server.url.reveal(), workers="")
        with (
            stack(CONFIG, SIMS, server_extra=extra) as one,
            stack(CONFIG, {}, server_extra=extra, sim_ports=one.sim_ports) as other,
        ):
            yield Replicas(one, other, server)


async def spend(running: Stack, count: int) -> Booked:
    """Requests of ``shop``, all of them settled at the end: calls, tokens and micro-dollars by hand."""
    before = running.metric(SETTLED)
    usages = [usage for _, usage in await ask(running, count, "shop", max_tokens=5)]
    await until(lambda: running.metric(SETTLED) >= before + count, "all to be settled")
    prompt, completion = (sum(usage[name] for usage in usages) for name in ("prompt_tokens", "completion_tokens"))
    return count, prompt, completion, 2 * prompt + 10 * completion


def plus(*amounts: Booked) -> Booked:
    """All of them together."""
    calls, prompt, completion, micro_usd = (sum(column) for column in zip(*amounts, strict=True))
    return calls, prompt, completion, micro_usd


async def until(condition: Callable[[], bool], what: str) -> None:
    """Waits until it holds."""
    await asyncio.to_thread(wait_until, condition, what)


async def until_booked(running: Stack, wanted: Booked) -> None:
    """Waits until the ledger of all says this of ``shop``, and that it is complete."""
    await until(lambda: booked(running, "shop") == wanted, f"{wanted} at {running.admin_url}")
    assert asked(running, "/api/costs")["complete"] is True


def knows_spent(running: Stack, micro_usd: int) -> bool:
    """Whether budgets count this as spent for ``shop`` today."""
    return round(running.metric(SPENT, service="shop") * 1e6) == micro_usd


async def test_each_router_shows_what_both_spent(replicas: Replicas) -> None:
    """By key, as if one ledger had it all."""
    before = booked(replicas.one, "shop")
    wanted = plus(before, await spend(replicas.one, 10), await spend(replicas.other, 20))
    for running in (replicas.one, replicas.other):
        await until_booked(running, wanted)


async def test_a_killed_router_loses_nothing_that_was_settled(replicas: Replicas) -> None:
    """Killed at once: what it had no time to push its successor does."""
    before = booked(replicas.one, "shop")
    spent = await spend(replicas.one, 10)
    killed = await spend(replicas.other, 20)
    await asyncio.to_thread(replicas.other.router.kill)
    await asyncio.to_thread(replicas.other.start_router)
    for running in (replicas.one, replicas.other):
        await until_booked(running, plus(before, spent, killed))
    await asyncio.to_thread(replicas.other.await_routed)


async def test_while_redis_is_away_costs_are_known_in_part_and_all_comes_back(replicas: Replicas) -> None:
    """The server returns with nothing: both push everything anew. No request notices."""
    before = booked(replicas.one, "shop")
    await until(lambda: replicas.one.metric(UNPUSHED) == replicas.other.metric(UNPUSHED) == 0, "all to be pushed")
    replicas.server.kill()
    spent = await spend(replicas.one, 10), await spend(replicas.other, 20)
    assert asked(replicas.one, "/api/costs")["complete"] is False
    await until(lambda: replicas.one.metric(UNPUSHED) > 0, "rows to wait")
    replicas.server.start()
    for running in (replicas.one, replicas.other):
        await until_booked(running, plus(before, *spent))


async def test_routers_that_all_start_anew_know_the_day_without_their_files(replicas: Replicas) -> None:
    """Costs and budgets: the file of one is gone, and nobody is left to tell of it."""
    before = booked(replicas.one, "shop")
    wanted = plus(before, await spend(replicas.one, 10), await spend(replicas.other, 20))
    both = replicas.one, replicas.other
    for running in both:
        await until_booked(running, wanted)
    for running in both:
        await asyncio.to_thread(running.router.kill)
    files = list(replicas.other.folder.rglob("ledger.sqlite*"))
    assert files
    for file in files:
        file.unlink()
    for running in both:
        await asyncio.to_thread(running.start_router)
        await until_booked(running, wanted)
        await until(partial(knows_spent, running, wanted[3]), "budgets to know")
        await asyncio.to_thread(running.await_routed)


async def test_any_worker_tells_of_all(replicas: Replicas) -> None:
    """Of replicas too; and while Redis is away the supervisor adds what each has on file."""
    with valkey_server() as server:
        extra = SHARED.format(url=server.url.reveal(), workers="workers: 2")
        with stack(CONFIG, {}, server_extra=extra, sim_ports=replicas.one.sim_ports) as running:
            before = booked(running, "shop")
            wanted = plus(before, await spend(running, 40))
            await until_booked(running, wanted)
            files = list(running.folder.rglob("ledger.w*.sqlite"))
            assert len(files) == 2
            server.kill()
            assert asked(running, "/api/costs")["complete"] is False
            wanted = plus(wanted, await spend(running, 40))
            await until(lambda: booked(running, "shop") == wanted, "all to be booked")
            server.start()
            await until_booked(running, wanted)
