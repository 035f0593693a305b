"""The queue scraper against a simulated engine, and against servers that misbehave."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from router_ext.clock import SystemClock
from router_ext.config.sections import RouterConfig
from router_ext.demo.sim.faults import Faults
from router_ext.demo.sim.server import SimServer
from router_ext.demo.sim.settings import SimSettings
from router_ext.dispatch.egress import MAX_ANSWER_BYTES, EgressAnswer, EgressUnavailableError
from router_ext.health.load import QueueReading
from router_ext.model.backend import BackendType
from router_ext.scrape.queues import QueueScraper, first_delay_s, is_scrapable
from tests.fakes.domain import backend
from tests.sim.wire import chat, eventually, post
from tests.unit.scrape.stand import (
    CannedProber,
    DirectProber,
    PageServer,
    RecordingSink,
    at_port,
    response,
    running,
    scraped,
)

PAGE = b"vllm:num_requests_waiting 3\nvllm:num_requests_running 2\n"
SEEN = QueueReading(3.0, 2.0)


@asynccontextmanager
async def scraping(config: RouterConfig, prober: CannedProber | None = None) -> AsyncIterator[RecordingSink]:
    """A scraper at work; without a prober it asks the backends themselves."""
    sink = RecordingSink()
    async with DirectProber() as direct:
        scraper = QueueScraper(lambda: config, prober or direct, SystemClock(), sink)
        async with running(asyncio.ensure_future(scraper.run())):
            yield sink


async def one_report(raw: bytes | None) -> QueueReading | None:
    """The first report of a server with this answer."""
    async with PageServer(raw) as server, scraping(scraped(at_port(server.port))) as sink:
        await eventually(lambda: bool(sink.reports))
    return sink.reports[0][1]


async def canned_report(answer: EgressAnswer | Exception) -> QueueReading | None:
    """The first report for this answer of the egress listener."""
    async with scraping(scraped(backend()), CannedProber(answer)) as sink:
        await eventually(lambda: bool(sink.reports))
    return sink.reports[0][1]


async def test_the_load_of_a_simulated_engine_comes_and_goes() -> None:
    """One slot and three requests: one runs, two wait; then none."""
    async with (
        SimServer(SimSettings(decode_tps=10, max_num_seqs=1)) as sim,
        scraping(scraped(at_port(sim.port))) as sink,
    ):
        asks = [asyncio.ensure_future(post(sim.port, "/v1/chat/completions", chat(stream=True))) for _ in range(3)]
        await eventually(lambda: sim.engine.waiting == 2)
        before = len(sink.reports)
        await eventually(lambda: len(sink.reports) > before + 1)
        busy = sink.latest()
        for ask in asks:
            ask.cancel()
        await eventually(lambda: (latest := sink.latest()) is not None and latest.requests == 0)
    assert busy is not None
    assert (busy.waiting, busy.running) == (2.0, 1.0)
    assert busy.start_time is not None


async def test_an_engine_that_drops_connections_is_unknown_until_it_answers_again() -> None:
    """The loop goes on over failures."""
    async with SimServer() as sim, scraping(scraped(at_port(sim.port))) as sink:
        sim.faults.set(Faults(refuse=True))
        await eventually(lambda: bool(sink.reports) and sink.latest() is None)
        sim.faults.clear()
        await eventually(lambda: sink.latest() is not None)


async def test_an_engine_that_starts_to_hang_is_unknown_after_one_interval() -> None:
    """That is the deadline of a scrape when it is shorter than five seconds."""
    async with PageServer(response(PAGE)) as server, scraping(scraped(at_port(server.port))) as sink:
        await eventually(lambda: bool(sink.reports) and sink.latest() == SEEN)
        server.raw = None
        await eventually(lambda: sink.latest() is None)


@pytest.mark.parametrize(
    ("raw", "reading"),
    [
        (response(PAGE), SEEN),
        (response(PAGE, "500 Internal Server Error"), None),
        (response(PAGE, "404 Not Found"), None),
        (response(PAGE, "201 Created"), None),
        (response(b""), None),
        (response(b"<html><body>Welcome</body></html>\n"), None),
        (response(b"\x1f\x8b\x00\xff" * 100), None),
        (response(PAGE)[:-5], None),
        (b"", None),
        (b"no http\r\n\r\n", None),
        (None, None),
    ],
)
async def test_only_a_whole_page_with_status_200_is_read(raw: bytes | None, reading: QueueReading | None) -> None:
    """Errors, other content, cut bodies, silence and closed connections are unknown load."""
    assert await one_report(raw) == reading


@pytest.mark.parametrize("error", [TimeoutError(), EgressUnavailableError("refused")])
async def test_a_failure_of_the_egress_listener_is_unknown_load(error: Exception) -> None:
    """Late, or not there at all."""
    assert await canned_report(error) is None


@pytest.mark.parametrize(("size", "reading"), [(MAX_ANSWER_BYTES - 1, SEEN), (MAX_ANSWER_BYTES, None)])
async def test_a_page_that_fills_the_clients_limit_is_unknown(size: int, reading: QueueReading | None) -> None:
    """Lines may be missing behind it; one byte less is a whole page."""
    assert await canned_report(EgressAnswer(200, (), PAGE.ljust(size, b"#"))) == reading


async def test_unusable_values_are_counted_beside_the_report() -> None:
    """One line of the page is no number."""
    page = PAGE + b"some_exporter_cpu 8123n\n"
    async with scraping(scraped(backend()), CannedProber(EgressAnswer(200, (), page))) as sink:
        await eventually(lambda: bool(sink.errors))
    assert (sink.reports[0][1], sink.errors[0]) == (SEEN, ("a", 1))


@pytest.mark.parametrize(("interval_s", "deadline_s"), [(0.05, 0.05), (5.0, 5.0), (60.0, 5.0)])
async def test_a_scrape_has_a_deadline(interval_s: float, deadline_s: float) -> None:
    """The interval, and five seconds at most. This name's offset is a 150,000th of the interval."""
    early = backend("early-10331")
    prober = CannedProber(EgressAnswer(200, (), PAGE))
    async with scraping(scraped(early, interval_s=interval_s), prober) as sink:
        await eventually(lambda: bool(sink.reports))
    assert prober.asked[0] == ("early-10331", "/metrics", deadline_s)


async def test_only_engines_with_a_known_page_are_scraped() -> None:
    """Providers have none."""
    every = [backend(kind.value, engine=kind) for kind in BackendType]
    async with scraping(scraped(*every), CannedProber(EgressAnswer(200, (), PAGE))) as sink:
        await eventually(lambda: len(sink.reports) >= 9)
    assert sink.names() == {"vllm", "sglang", "llamacpp"} == {item.name for item in every if is_scrapable(item)}


async def test_each_engine_is_read_by_the_names_of_its_type() -> None:
    """A page of another engine tells nothing."""
    backends = (backend("a"), backend("b", engine=BackendType.LLAMACPP))
    async with scraping(scraped(*backends), CannedProber(EgressAnswer(200, (), PAGE))) as sink:
        await eventually(lambda: sink.names() == {"a", "b"})
    assert (sink.latest("a"), sink.latest("b")) == (SEEN, None)


async def test_one_hanging_backend_does_not_hold_up_another() -> None:
    """Each has a loop of its own."""
    async with PageServer(None) as hung, PageServer(response(PAGE)) as well:
        config = scraped(at_port(hung.port, "hung"), at_port(well.port, "well"), interval_s=0.2)
        async with scraping(config) as sink:
            await eventually(lambda: sink.names() == {"hung", "well"})
    assert (sink.latest("hung"), sink.latest("well")) == (None, SEEN)


async def test_a_reload_removes_backends_adds_others_and_changes_the_interval() -> None:
    """The first interval of an hour does not hold up the second one."""
    sink = RecordingSink()
    configs = [scraped(backend("a"), interval_s=3600.0)]
    scraper = QueueScraper(lambda: configs[-1], CannedProber(EgressAnswer(200, (), PAGE)), SystemClock(), sink)
    async with running(asyncio.ensure_future(scraper.run())):
        configs.append(scraped(backend("a"), backend("b")))
        scraper.configure()
        await eventually(lambda: sink.names() == {"a", "b"})
        configs.append(scraped(backend("b")))
        scraper.configure()
        await eventually(lambda: [name for name, _, _ in sink.reports[-3:]] == ["b", "b", "b"])


def test_first_scrapes_spread_over_the_interval() -> None:
    """A name always has the same offset; of 64 backends each quarter of the interval gets some."""
    delays = [first_delay_s(f"node-{index}", 8.0) for index in range(64)]
    assert delays == [first_delay_s(f"node-{index}", 8.0) for index in range(64)]
    assert all(0 <= delay < 8 for delay in delays)
    assert all(any(quarter * 2 <= delay < quarter * 2 + 2 for delay in delays) for quarter in range(4))
