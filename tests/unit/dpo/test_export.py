"""From rescues to lines in a file. Files are real."""

import asyncio
from pathlib import Path

import pytest

from router_ext.config.sections import DpoExport as DpoConfig
from router_ext.dpo.export import DpoExport, build_export, pair_line
from router_ext.dpo.making import MAX_MAKING
from router_ext.dpo.writer import JsonLinesWriter
from router_ext.model.decision import Decision
from router_ext.model.gate import AnswerChoice, ReadAnswer
from router_ext.payload.envelope import Envelope, read_envelope
from router_ext.payload.inference import InferenceBody
from router_ext.ports import Rescue
from tests.fakes.clock import FakeClock
from tests.fakes.domain import request
from tests.fakes.lines import RecordedWriter
from tests.fakes.read_answers import CALL, answered, said

BODY = b'{"model":"m-a","messages":[{"role":"user","content":"Name a prime."}]}'
LINE = (
    b'{"prompt":[{"role":"user","content":"Name a prime."}],"chosen":"7","rejected":"9",'
    b'"timestamp":"2023-11-14T22:13:20.250Z","cheap_backend":"small","expensive_backend":"large",'
    b'"reason":"schema","rule":"chat"}'
)


def _decision(backend: str, rule: str) -> Decision:
    return Decision("t-1", 0.0, request(), rule, backend, "m", ())


def _rescue(
    body: bytes = BODY, rejected: ReadAnswer | None = None, chosen: ReadAnswer | None = None, reason: str = "schema"
) -> Rescue:
    envelope = read_envelope(body)
    assert isinstance(envelope, Envelope)
    decisions = _decision("small", "chat"), _decision("large", "other")
    answers = rejected or answered("9"), chosen or answered("7")
    return Rescue(InferenceBody(request(), envelope, compressed=False), *decisions, *answers, reason)


def _export(path: Path, told: RecordedWriter, *, redact: bool = False) -> DpoExport:
    clock = FakeClock(wall_s=1_700_000_000.25)
    return DpoExport(JsonLinesWriter(path, 1_000_000, 10, told, clock), told, clock, redact=redact)


def _names_in(folder: Path) -> list[str]:
    """The files there."""
    return [path.name for path in folder.iterdir()]


# The line


def test_a_rescue_is_one_line() -> None:
    """The cheap backend's rule, both texts, and the time of the rescue."""
    assert pair_line(_rescue(), 1_700_000_000.25, redact=False) == LINE


def test_several_choices_are_no_pair() -> None:
    """One of them was bad: nobody says that it was the first."""
    assert pair_line(_rescue(rejected=answered("9", "10")), 0.0, redact=False) == "several_choices"
    assert pair_line(_rescue(chosen=answered("7", "5")), 0.0, redact=False) == "several_choices"


@pytest.mark.parametrize(
    "answer", [answered(said(None, CALL)), answered(said("calling", CALL)), answered(None), answered(""), answered()]
)
def test_an_answer_without_text_is_no_half_of_a_pair(answer: ReadAnswer) -> None:
    """A call of a tool is none, be it with text."""
    assert pair_line(_rescue(rejected=answer), 0.0, redact=False) == "no_text"
    assert pair_line(_rescue(chosen=answer), 0.0, redact=False) == "no_text"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"model":"m-a","prompt":"Name a prime."}', "malformed"),
        (b'{"messages":[]}', "malformed"),
        (b'{"messages":[{"role":"user","content":7}]}', "malformed"),
        (b'{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"7"}]}', "last_role"),
        (b'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}', "media"),
    ],
)
def test_a_prompt_that_does_not_fit_is_told(body: bytes, reason: str) -> None:
    """The rescue gives no line."""
    assert pair_line(_rescue(body), 0.0, redact=False) == reason


def test_texts_are_masked_where_that_is_asked_for() -> None:
    """Those of the prompt and of both answers."""
    mail = "jo@example.com"
    body = b'{"messages":[{"role":"user","content":"I am jo@example.com"}]}'
    rescue = _rescue(body, answered(f"bad {mail}"), answered(f"good {mail}"))
    plain, masked = (pair_line(rescue, 0.0, redact=redact) for redact in (False, True))
    assert isinstance(plain, bytes)
    assert isinstance(masked, bytes)
    assert (plain.count(mail.encode()), masked.count(mail.encode()), masked.count(b"[EMAIL]")) == (3, 0, 3)


# The file


async def test_close_writes_what_was_offered_before(tmp_path: Path) -> None:
    """Also what is still being made; each rescue has the time of its offer."""
    told, path = RecordedWriter(), tmp_path / "pairs.jsonl"
    export = _export(path, told)
    task = asyncio.create_task(export.run())
    for _ in range(3):
        export.offer(_rescue())
    assert not path.exists()
    async with asyncio.timeout(10):
        await export.close()
        await task
    assert path.read_bytes().splitlines() == [LINE] * 3
    assert (told.written, told.dropped, told.unfit) == (3, {}, [])


async def test_a_rescue_that_is_no_pair_is_counted_and_writes_nothing(tmp_path: Path) -> None:
    """By its reason."""
    told, path = RecordedWriter(), tmp_path / "pairs.jsonl"
    export = _export(path, told)
    export.offer(_rescue(chosen=ReadAnswer((AnswerChoice(0, None),))))
    export.offer(_rescue(b'{"model":"m-a","prompt":"hi"}'))
    export.offer(_rescue())
    async with asyncio.timeout(10):
        await export.close()
    assert sorted(told.unfit) == ["malformed", "no_text"]
    assert (told.written, path.read_bytes()) == (1, LINE + b"\n")


async def test_only_so_many_lines_are_made_at_a_time(tmp_path: Path) -> None:
    """The sixty-fifth rescue is dropped and counted; once others are done there is room again."""
    told, path = RecordedWriter(), tmp_path / "pairs.jsonl"
    export = _export(path, told)
    for _ in range(MAX_MAKING + 1):
        export.offer(_rescue())
    assert (MAX_MAKING, told.dropped) == (64, {"queue_full": 1})
    async with asyncio.timeout(10):
        while export._making:  # noqa: ASYNC110 - the set has no event of its own
            await asyncio.sleep(0.001)
        export.offer(_rescue())
        await export.close()
    assert (told.written, told.dropped) == (65, {"queue_full": 1})
    assert path.read_bytes().splitlines() == [LINE] * 65


async def test_after_close_a_rescue_is_dropped(tmp_path: Path) -> None:
    """And counted."""
    told, path = RecordedWriter(), tmp_path / "pairs.jsonl"
    export = _export(path, told)
    await export.close()
    export.offer(_rescue())
    async with asyncio.timeout(10):
        while export._making:  # noqa: ASYNC110 - the set has no event of its own
            await asyncio.sleep(0.001)
    assert (told.written, told.dropped, path.exists()) == (0, {"closed": 1}, False)


# The export of a configuration


async def test_an_export_that_is_not_enabled_is_none(tmp_path: Path) -> None:
    """There is no file."""
    config = DpoConfig(output_path=tmp_path / "pairs.jsonl")
    assert build_export(config, RecordedWriter(), FakeClock(), None) is None
    assert _names_in(tmp_path) == []


@pytest.mark.parametrize(("worker", "name"), [(None, "pairs.jsonl"), (2, "pairs.w2.jsonl")])
async def test_each_worker_has_a_file_of_its_own(tmp_path: Path, worker: int | None, name: str) -> None:
    """One router alone has the file that is configured. Masking is as configured."""
    config = DpoConfig(enabled=True, output_path=tmp_path / "pairs.jsonl", redact=True)
    export = build_export(config, RecordedWriter(), FakeClock(wall_s=1_700_000_000.25), worker)
    assert export is not None
    export.offer(_rescue(rejected=answered("jo@example.com")))
    async with asyncio.timeout(10):
        await export.close()
    assert _names_in(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == LINE.replace(b'"9"', b'"[EMAIL]"') + b"\n"
