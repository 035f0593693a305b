"""Reading metrics pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_ext.health.load import QueueReading
from router_ext.model.backend import BackendType
from router_ext.scrape.queue_page import PAGE_NAMES, QueuePage, read_queue_page
from tests.captures import FOLDER, load_response

VLLM, SGLANG, LLAMACPP = BackendType.VLLM, BackendType.SGLANG, BackendType.LLAMACPP
BOTH = "vllm:num_requests_waiting 6\nvllm:num_requests_running 2\n"


def page(text: str, engine: BackendType = VLLM, model: str = "") -> QueuePage:
    """The page as it is read."""
    return read_queue_page(text.encode(), PAGE_NAMES[engine], model)


def load(text: str, engine: BackendType = VLLM, model: str = "") -> QueueReading:
    """The reading of a page that has one and holds no error."""
    seen = page(text, engine, model)
    assert seen.reading is not None
    assert seen.errors == 0
    return seen.reading


@pytest.mark.parametrize(
    ("engine", "file", "expected"),
    [
        ("vllm", "get_metrics_idle", QueueReading(0.0, 0.0, 0.0, 1795997675.87, 37.0)),
        ("vllm", "get_metrics_after", QueueReading(0.0, 0.0, 0.0, 1795997675.87, 738.0)),
        ("llamacpp", "get_metrics_idle", QueueReading(0.0, 0.0, prompt_tokens=0.0)),
        ("llamacpp", "get_metrics_after", QueueReading(0.0, 0.0, prompt_tokens=192.0)),
    ],
)
def test_recorded_pages_of_idle_engines_are_read(engine: str, file: str, expected: QueueReading) -> None:
    """Hundreds of other lines, and no error among them."""
    assert load(load_response(engine, file).body.decode(), BackendType(engine), "smollm2") == expected


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (VLLM, QueueReading(6.0, 2.0, 0.0055096418732781816, 1796001182.76, 14986.0)),
        (LLAMACPP, QueueReading(6.0, 2.0, prompt_tokens=7397.0)),
    ],
)
def test_recorded_pages_of_loaded_engines_are_read(engine: BackendType, expected: QueueReading) -> None:
    """Eight requests, two at a time."""
    assert load((FOLDER / engine / "metrics_under_load.txt").read_text(), engine, "smollm2") == expected


def test_sglang_is_read_by_its_own_names() -> None:
    """Its ranks repeat one queue; a queue by priority is a part of the queue without one; replicas are added."""
    text = """
sglang:num_queue_reqs{dp_rank="0",tp_rank="0",priority=""} 5.0
sglang:num_queue_reqs{dp_rank="0",tp_rank="0",priority="1"} 3.0
sglang:num_queue_reqs{dp_rank="0",tp_rank="0",priority="2"} 2.0
sglang:num_queue_reqs{dp_rank="0",tp_rank="1",priority=""} 5.0
sglang:num_queue_reqs{dp_rank="1",tp_rank="0",priority=""} 4.0
sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 7.0
sglang:num_running_reqs{dp_rank="1",tp_rank="0"} 1.0
sglang:token_usage{dp_rank="0",tp_rank="0"} 0.37
sglang:token_usage{dp_rank="1",tp_rank="0"} 0.8
sglang:prompt_tokens_total{is_streaming="true"} 500.0
sglang:prompt_tokens_total{is_streaming="false"} 20.0
"""
    assert load(text, SGLANG) == QueueReading(9.0, 8.0, 0.8, None, 520.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# EOF\n",
        "vllm:kv_cache_usage_perc 0.5\nprocess_start_time_seconds 1.7e9\n",
        "vllm:num_requests_waiting NaN\nvllm:num_requests_running +Inf\n",
        "vllm:num_requests_waiting -Inf\nvllm:num_requests_running nan\n",
        "vllm:num_requests_waiting_by_reason 5\nvllm:num_requests_running_total 5\nxvllm:num_requests_waiting 5\n",
        "llamacpp:requests_deferred 3\nllamacpp:requests_processing 2\n",
        "# vllm:num_requests_waiting 5\n",
    ],
)
def test_a_page_without_both_queues_is_unknown(text: str) -> None:
    """Never load 0."""
    assert page(text) == QueuePage(None, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm:num_requests_waiting 0\n", QueueReading(0.0, 0.0)),
        ("vllm:num_requests_waiting 3\n", QueueReading(3.0, 0.0)),
        ("vllm:num_requests_running 3", QueueReading(0.0, 3.0)),
    ],
)
def test_one_queue_is_enough(text: str, expected: QueueReading) -> None:
    """The other one counts 0. A line end at the end of the page is not needed."""
    assert load(text) == expected


@pytest.mark.parametrize(
    "line",
    [
        'vllm:num_requests_waiting{engine="0"} 12',
        'vllm:num_requests_waiting{engine="0",} 1.2e1',
        '  vllm:num_requests_waiting { engine = "0" }  12.0  1700000000000',
        "vllm:num_requests_waiting\t12",
        "vllm:num_requests_waiting 12\r",
        'vllm:num_requests_waiting{note="a } # \\" b"} 12',
        'vllm:num_requests_waiting{engine="0"} 12 # {trace_id="abc"} 0.5 1.7e9',
        "vllm:num_requests_waiting 12 # {} 0.5",
    ],
)
def test_a_sample_may_be_written_in_many_ways(line: str) -> None:
    """Labels, blanks, timestamps and exemplars as both text formats allow them."""
    assert load(line + "\n").waiting == 12.0


@pytest.mark.parametrize(
    "line",
    [
        "vllm:num_requests_waiting",
        "vllm:num_requests_waiting 12n",
        "vllm:num_requests_waiting -1",
        'vllm:num_requests_waiting{engine="0" 12',
        "vllm:num_requests_waiting{engine=0} 12",
        'vllm:num_requests_waiting{engine="0"}',
        "vllm:num_requests_waiting " + "9" * 400,
        "vllm:num_requests_waiting 1 " + "9" * 400,
    ],
)
def test_a_line_that_cannot_be_used_is_one_error(line: str) -> None:
    """The other queue is read all the same."""
    assert page(f"{line}\nvllm:num_requests_running 2\n") == QueuePage(QueueReading(0.0, 2.0), 1)


@pytest.mark.parametrize(
    ("ratio", "usage", "errors"), [("0", 0.0, 0), ("1", 1.0, 0), ("1.01", None, 1), ("-0.01", None, 1)]
)
def test_a_cache_usage_outside_0_to_1_is_not_used(ratio: str, usage: float | None, errors: int) -> None:
    """It is counted as an error; the queues stay."""
    seen = page(f"{BOTH}vllm:kv_cache_usage_perc {ratio}\n")
    assert seen == QueuePage(QueueReading(6.0, 2.0, usage), errors)


def test_a_process_that_repeats_a_queue_does_not_double_it() -> None:
    """The greatest figure of each engine, then the sum over engines."""
    text = """
vllm:num_requests_waiting{engine="0",pid="41"} 5
vllm:num_requests_waiting{engine="0",pid="43"} 0
vllm:num_requests_waiting{engine="1",pid="41"} 2
vllm:num_requests_waiting{engine="1",pid="43"} 2
"""
    assert load(text).waiting == 7.0


@pytest.mark.parametrize(("model", "waiting"), [("m-a", 5.0), ("m-b", 2.0), ("m-c", 7.0), ("", 7.0)])
def test_a_page_of_several_models_is_read_for_one(model: str, waiting: float) -> None:
    """Unless it does not know that model: then every series counts."""
    text = 'vllm:num_requests_waiting{model_name="m-a"} 5\nvllm:num_requests_waiting{model_name="m-b"} 2\n'
    assert load(text, model=model).waiting == waiting


@pytest.mark.parametrize(
    ("text", "start_time"),
    [
        ("process_start_time_seconds 1.7e9\nvllm:prompt_tokens_created 1.8e9\n", 1.7e9),
        ('vllm:prompt_tokens_created{engine="0"} 1.8e9\nvllm:prompt_tokens_created{engine="1"} 1.9e9\n', 1.9e9),
        ("vllm:generation_tokens_created 1.8e9\n", None),
    ],
)
def test_the_start_is_the_process_start_or_else_the_latest_counter_start(text: str, start_time: float | None) -> None:
    """Any engine that starts anew moves it."""
    assert load(BOTH + text).start_time == start_time


def test_the_order_of_lines_does_not_matter() -> None:
    """Backwards, a recorded page reads the same."""
    text = (FOLDER / "vllm" / "metrics_under_load.txt").read_text()
    assert page("\n".join(reversed(text.splitlines()))) == page(text)


def test_bytes_that_are_no_text_spoil_their_line_only() -> None:
    """They may stand in a label of any exporter."""
    raw = b'other{name="\xff\xfe"} 1\nvllm:num_requests_waiting{engine="\xff"} 3\n'
    assert read_queue_page(raw, PAGE_NAMES[VLLM]) == QueuePage(QueueReading(3.0, 0.0), 0)


_LINES = st.builds(
    "{}{}".format,
    st.sampled_from(["vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "other"]),
    st.text(alphabet='{}=",\\ #\r\t_a0159.eE+-NaInf', max_size=30),
)


@given(st.lists(_LINES), st.binary())
def test_no_page_raises(lines: list[str], tail: bytes) -> None:
    """Figures that come out are finite and within their range."""
    seen = read_queue_page("\n".join(lines).encode() + b"\n" + tail, PAGE_NAMES[VLLM]).reading
    assert seen is None or (0 <= seen.requests < float("inf") and 0 <= (seen.kv_usage or 0) <= 1)
