"""The running configuration: all of a new one, or the last good one, in the process and on disk."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from router_ext.config.changes import NO_CHANGES, Changes
from router_ext.config.loader import LoadedConfig
from router_ext.config.problem import ConfigError, Problem
from router_ext.config.watcher import Change
from router_ext.control import Control, begin, discard_changes
from tests.fakes.clock import FakeClock
from tests.fakes.telemetry import RecordingTelemetry

A = '{name: a, url: "http://127.0.0.1:1", type: vllm, model_name: m}'
B = {"name": "b", "url": "http://127.0.0.1:2", "type": "vllm", "model_name": "m"}
ONE = f"backends: [{A}]\n"
TO_B = {"name": "to-b", "backends": ["b"], "match": {"service": "s"}}


class Place:
    """A folder with a file, and a router on it. ``failure`` is what the next attempt to take over raises."""

    def __init__(self, folder: Path, text: str = ONE, environ: Mapping[str, str] | None = None) -> None:
        self.file = folder / "router.yaml"
        self.file.write_text(text)
        self.kept = folder / "data" / "changes.json"
        self.environ = environ or {}
        self.taken: list[LoadedConfig] = []
        self.failure: Exception | None = None
        self.telemetry = RecordingTelemetry()
        self.clock = FakeClock()

    async def take_over(self, loaded: LoadedConfig) -> None:
        """Keeps it, unless Envoy's files cannot be written."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        self.taken.append(loaded)

    def start(self, workers: int | None = None) -> Control:
        """One process on what is on disk."""
        running = begin(self.file, self.environ, workers, self.clock.wall())
        return Control(
            self.file,
            self.environ,
            running,
            self.take_over,
            telemetry=self.telemetry,
            clock=self.clock,
            workers=workers,
        )

    def on_disk(self) -> bytes | None:
        """The kept changes."""
        return self.kept.read_bytes() if self.kept.exists() else None


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A file with one backend, a."""
    return Place(tmp_path)


def names(control: Control) -> list[str]:
    """The backends that run."""
    return [backend.name for backend in control.running.loaded.config.backends]


def changes_refused(control: Control) -> str:
    """Why the changes on disk are not in force; nothing where they are."""
    refusal = control.running.changes_refused
    return "" if refusal is None else refusal.message


def add_b(changes: Changes) -> Changes:
    """One backend more."""
    return changes.with_backend("b", B)


async def contents(*items: Change) -> AsyncIterator[Change]:
    """What a watcher reports."""
    for item in items:
        yield item


# Changes


async def test_a_change_runs_and_is_on_disk(place: Place) -> None:
    """What runs is what a restart would run."""
    control = place.start()
    before = control.running
    place.clock.advance(5)
    applied = await control.change(add_b)
    assert names(control) == ["a", "b"]
    assert (applied.before, applied.after) == (before, control.running)
    assert control.running.loaded_at == before.loaded_at + 5
    assert [item.config for item in place.taken] == [control.running.loaded.config]
    assert names(place.start()) == ["a", "b"]
    assert place.telemetry.changes_taken == 1
    assert place.telemetry.digests == []


async def test_a_dry_run_says_what_would_be_and_does_nothing(place: Place) -> None:
    """Nothing is written or taken over; what is wrong is raised as it would be."""
    control = place.start()
    before = control.running
    applied = await control.change(add_b, dry_run=True)
    assert [backend.name for backend in applied.after.loaded.config.backends] == ["a", "b"]
    assert (control.running, place.taken, place.on_disk()) == (before, [], None)
    with pytest.raises(ConfigError):
        await control.change(lambda changes: changes.with_rule("to-b", TO_B), dry_run=True)


async def test_a_change_that_does_not_validate_changes_nothing(place: Place) -> None:
    """The refusal has every problem; the disk and what runs stay, and so does the file's standing."""
    control = place.start()
    await control.change(add_b)
    before, on_disk = control.running, place.on_disk()
    with pytest.raises(ConfigError) as error:
        await control.change(lambda changes: changes.with_rule("r", {"backends": ["c"], "priority": "high"}))
    assert [problem.path for problem in error.value.problems] == [
        "admin API rules[r].priority",
        "admin API rules[r].backends[0]",
    ]
    assert (control.running, place.on_disk()) == (before, on_disk)
    assert (place.telemetry.reload_problems, place.telemetry.change_problems) == ([], [])


async def test_a_backend_that_a_rule_needs_cannot_go(place: Place) -> None:
    """References are checked over file and changes together."""
    control = place.start()
    await control.change(lambda changes: add_b(changes).with_rule("to-b", TO_B))
    with pytest.raises(ConfigError, match=r"admin API rules\[to-b\].backends\[0\]: unknown backend 'b'"):
        await control.change(lambda changes: changes.without_backend("b"))
    await control.change(lambda changes: changes.without_rule("to-b").without_backend("b"))
    assert (names(control), place.on_disk()) == (["a"], None)


async def test_what_an_edit_raises_ends_the_change(place: Place) -> None:
    """The caller's own refusals come through, with nothing done."""

    def refuse(_changes: Changes) -> Changes:
        raise KeyError("b")

    control = place.start()
    with pytest.raises(KeyError):
        await control.change(refuse)
    assert (place.taken, place.on_disk()) == ([], None)


@pytest.mark.parametrize("failure", [OSError("no space left"), RuntimeError("no CA bundle")], ids=["disk", "CA"])
@pytest.mark.parametrize("earlier", [True, False], ids=["second change", "first change"])
async def test_a_change_that_cannot_be_taken_over_is_taken_back_from_the_disk(
    place: Place, failure: Exception, earlier: bool
) -> None:
    """A full disk in Envoy's folder must not leave a change behind for the next start."""
    control = place.start()
    if earlier:
        await control.change(lambda changes: changes.with_drained("a"))
    before, on_disk = control.running, place.on_disk()
    place.failure = failure
    with pytest.raises(type(failure), match=str(failure)):
        await control.change(add_b)
    assert (control.running, place.on_disk()) == (before, on_disk)
    await control.reread_changes()
    assert control.running == before


async def test_a_change_that_cannot_be_written_is_not_in_force(place: Place) -> None:
    """A folder that cannot be made: the error comes through, and nothing was taken over."""
    control = place.start()
    place.kept.parent.write_text("a file in the folder's place")
    with pytest.raises((OSError, ConfigError)):
        await control.change(add_b)
    assert (names(control), place.taken) == (["a"], [])


async def test_a_change_stands_on_the_file_that_runs_and_not_on_the_one_on_disk(place: Place) -> None:
    """A file that nobody has loaded yet, good or bad, has no say."""
    control = place.start()
    place.file.write_text("backends: [")
    await control.change(add_b)
    assert names(control) == ["a", "b"]


async def test_a_change_starts_from_what_another_process_wrote(place: Place) -> None:
    """Neither of two workers undoes the other's change."""
    one, other = place.start(), place.start()
    await one.change(add_b)
    applied = await other.change(lambda changes: changes.with_drained("a"))
    assert names(other) == ["a", "b"]
    assert applied.after.loaded.config.drained == {"a"}
    assert begin(place.file, {}, None, 0.0).changes == add_b(NO_CHANGES).with_drained("a")


async def test_changes_at_the_same_time_are_all_kept(place: Place) -> None:
    """Two processes with changes of their own: an edit that lost the race is made anew."""
    workers = [place.start(), place.start()]

    def draining(name: str) -> asyncio.Task[object]:
        return asyncio.create_task(workers[int(name) % 2].change(lambda changes: changes.with_drained(name)))

    await asyncio.gather(*(draining(str(number)) for number in range(6)))
    assert begin(place.file, {}, None, 0.0).changes.drained == set("012345")


async def test_the_same_change_again_does_nothing(place: Place) -> None:
    """Nothing is taken over twice."""
    control = place.start()
    await control.change(add_b)
    running = control.running
    applied = await control.change(add_b)
    assert (control.running, len(place.taken)) == (running, 1)
    assert applied.before == running


async def test_warnings_are_those_that_the_change_brings(place: Place) -> None:
    """What was doubtful before is not said again; a replaced backend of the file is."""
    place.file.write_text(f"defaults: {{fallback_chain: [a]}}\nbackends: [{A}]\n")
    control = place.start()
    applied = await control.change(add_b)
    assert [item.message for item in applied.warnings] == ["backend 'b' is used nowhere"]
    applied = await control.change(lambda changes: changes.with_backend("a", B))
    assert [item.message for item in applied.warnings] == ["the admin API has replaced backend 'a'"]


# The file


async def test_a_reload_keeps_the_changes(place: Place) -> None:
    """They stand above every file."""
    control = place.start()
    await control.change(add_b)
    place.file.write_text(ONE + "rules: [{name: r, backends: [b]}]\n")
    applied = await control.reload()
    assert names(control) == ["a", "b"]
    assert [rule.name for rule in applied.after.loaded.config.rules] == ["r"]
    assert place.telemetry.digests == [control.running.loaded.digest]


async def test_a_file_that_does_not_fit_the_changes_is_refused(place: Place) -> None:
    """Its backend left the file, but a rule of the API needs it."""
    control = place.start()
    await control.change(lambda changes: changes.with_rule("r", {"backends": ["a"], "match": {"service": "s"}}))
    place.file.write_text(ONE.replace("name: a", "name: c"))
    with pytest.raises(ConfigError, match=r"admin API rules\[r\].backends\[0\]: unknown backend 'a'"):
        await control.reload()
    assert names(control) == ["a"]


async def test_after_a_refused_reload_what_runs_is_told_with_the_refusal(place: Place) -> None:
    """The running configuration, its time, and why and when the file was refused; a good file ends that."""
    control = place.start()
    before = control.running
    place.file.write_text("backends: [")
    place.clock.advance(7)
    with pytest.raises(ConfigError):
        await control.reload()
    after = control.running
    assert (after.loaded, after.content, after.loaded_at) == (before.loaded, before.content, before.loaded_at)
    assert after.refused is not None
    assert after.refused.at == before.loaded_at + 7
    assert "not valid YAML" in after.refused.message
    await control.change(add_b)
    assert control.running.refused == after.refused
    place.file.write_text(ONE)
    await control.reload()
    assert control.running.refused is None


async def test_a_dry_run_of_a_bad_file_is_no_refusal(place: Place) -> None:
    """It is asked what would happen: nothing has."""
    control = place.start()
    place.file.unlink()
    with pytest.raises(ConfigError):
        await control.reload(dry_run=True)
    assert control.running.refused is None
    assert place.telemetry.reload_problems == []


async def test_a_dry_run_of_a_reload_tells_what_waits_for_a_restart(place: Place) -> None:
    """Against what was loaded at the start, not against the last reload."""
    control = place.start()
    place.file.write_text(f"server: {{port: 9000}}\n{ONE}")
    assert (await control.reload(dry_run=True)).restart_needed == ("port",)
    assert control.running.loaded.config.server.port == 8050
    await control.reload()
    assert (await control.reload()).restart_needed == ("port",)


async def test_every_good_content_of_the_watched_file_is_taken_over(place: Place) -> None:
    """Bad ones between are reported and nothing else."""
    control = place.start()
    several = ONE.replace("name: a", "name: c").encode()
    await control.follow(contents(b"", several, b"[]"))
    assert names(control) == ["c"]
    assert len(place.telemetry.reload_problems) == 2
    assert control.running.refused is not None


@pytest.mark.parametrize(
    "content",
    [b"", b"backends: [", b"[]", b"\xff", ConfigError("router.yaml", [Problem("", 0, "cannot be read")])],
    ids=["empty", "cut", "list", "no UTF-8", "unreadable"],
)
async def test_a_bad_content_changes_nothing_and_is_reported_once(place: Place, content: Change) -> None:
    """Also when it is seen twice, by a watcher and by a reload."""
    control = place.start()
    await control.follow(contents(content, content))
    assert len(place.telemetry.reload_problems) == 1
    assert place.taken == []


async def test_the_good_file_back_again_ends_the_refusal(place: Place) -> None:
    """Although it is what runs."""
    control = place.start()
    await control.follow(contents(b"[]", ONE.encode()))
    assert control.running.refused is None
    assert place.telemetry.digests == [control.running.loaded.digest]


async def test_what_runs_already_is_not_taken_over_again(place: Place) -> None:
    """A watcher that reports what a reload has read does nothing."""
    control = place.start()
    await control.follow(contents(ONE.encode()))
    assert place.taken == []


@pytest.mark.parametrize("failure", [OSError("no space left"), RuntimeError("no CA bundle")], ids=["disk", "CA"])
async def test_a_good_file_whose_envoy_files_cannot_be_written_is_refused(place: Place, failure: Exception) -> None:
    """A full disk is no reason to stop routing."""
    control = place.start()
    place.failure = failure
    await control.follow(contents(ONE.replace("name: a", "name: c").encode()))
    assert place.telemetry.reload_problems == [str(failure)]
    assert names(control) == ["a"]


async def test_the_option_of_the_command_line_stands_above_a_new_file_too(place: Place) -> None:
    """A reload reads ``server.workers`` as the start did; without the option this file is refused."""
    several = f"server: {{workers: 8}}\n{ONE}".encode()
    one = place.start(workers=1)
    await one.follow(contents(several))
    assert one.running.loaded.config.server.workers == 1
    assert one.running.refused is None
    none = place.start()
    await none.follow(contents(several))
    assert none.running.refused is not None


# Changes of other processes


async def test_changes_of_another_process_are_found(place: Place) -> None:
    """Also when they are gone again."""
    one, other = place.start(), place.start()
    await one.change(add_b)
    await other.reread_changes()
    assert (names(other), other.running.changes) == (["a", "b"], one.running.changes)
    await one.change(lambda changes: changes.without_backend("b"))
    await other.reread_changes()
    assert names(other) == ["a"]


async def test_a_look_that_finds_nothing_new_does_nothing(place: Place) -> None:
    """Neither after the own change nor twice after another's."""
    one, other = place.start(), place.start()
    await one.change(add_b)
    await one.reread_changes()
    await other.reread_changes()
    await other.reread_changes()
    assert len(place.taken) == 2


async def test_changes_that_cannot_be_used_are_refused_once(place: Place) -> None:
    """What runs stays; the refusal is told until something good is on disk."""
    control = place.start()
    await control.change(add_b)
    place.kept.write_text("{")
    for _ in range(3):
        await control.reread_changes()
    assert names(control) == ["a", "b"]
    assert len(place.telemetry.change_problems) == 1
    assert "changes.json" in changes_refused(control)
    with pytest.raises(ConfigError, match="--discard-changes"):
        await control.change(lambda changes: changes.with_drained("a"))
    place.kept.unlink()
    await control.reread_changes()
    assert (changes_refused(control), names(control)) == ("", ["a"])


async def test_changes_that_can_be_read_again_are_in_force_again(place: Place) -> None:
    """A folder in the file's place for a while; then the very content that runs."""
    control = place.start()
    await control.change(add_b)
    content = place.kept.read_bytes()
    place.kept.unlink()
    place.kept.mkdir()
    await control.reread_changes()
    assert "cannot be read" in changes_refused(control)
    place.kept.rmdir()
    place.kept.write_bytes(content)
    await control.reread_changes()
    assert (changes_refused(control), names(control)) == ("", ["a", "b"])


async def test_changes_that_could_not_be_taken_over_are_tried_again(place: Place) -> None:
    """A disk that was full may have room at the next look."""
    one, other = place.start(), place.start()
    await one.change(add_b)
    place.failure = OSError("no space left")
    await other.reread_changes()
    assert changes_refused(other) == "no space left"
    await other.reread_changes()
    assert (names(other), changes_refused(other)) == (["a", "b"], "")


async def test_a_reload_takes_the_changes_of_other_processes_along(place: Place) -> None:
    """So that no process writes an older set of clusters than another."""
    one, other = place.start(), place.start()
    await one.change(add_b)
    await other.reload()
    assert names(other) == ["a", "b"]


async def test_a_reload_goes_on_without_changes_that_cannot_be_read(place: Place) -> None:
    """Those that run stay in force."""
    control = place.start()
    await control.change(add_b)
    place.kept.write_text("{")
    place.file.write_text(ONE + "rules: [{name: r, backends: [b]}]\n")
    await control.reload()
    assert [rule.name for rule in control.running.loaded.config.rules] == ["r"]


# The start


def test_changes_that_do_not_fit_the_file_stop_the_start_with_a_way_on(place: Place) -> None:
    """Problem, file and command are named."""
    place.kept.parent.mkdir()
    place.kept.write_text(json.dumps({"version": 1, "rules": {"to-b": TO_B}}))
    with pytest.raises(ConfigError) as error:
        place.start()
    text = str(error.value)
    assert "admin API rules[to-b].backends[0]: unknown backend 'b'" in text
    assert f"{place.kept} do not fit the file" in text
    assert "router-ext serve --discard-changes" in text


def test_a_file_that_is_wrong_by_itself_is_not_blamed_on_the_changes(place: Place) -> None:
    """Its own problems are told, without advice about the changes."""
    place.kept.parent.mkdir()
    place.kept.write_text(json.dumps({"version": 1, "backends": {"b": B}}))
    place.file.write_text("backends: []\nports: 3\n")
    with pytest.raises(ConfigError) as error:
        place.start()
    assert "discard-changes" not in str(error.value)


def test_a_file_may_lean_on_backends_of_the_changes(place: Place) -> None:
    """What a reload accepts, a restart accepts."""
    place.kept.parent.mkdir()
    place.kept.write_text(json.dumps({"version": 1, "backends": {"b": B}}))
    place.file.write_text(ONE + "rules: [{name: r, backends: [b]}]\n")
    assert names(place.start()) == ["a", "b"]


def test_discarded_changes_are_set_aside(place: Place) -> None:
    """They are renamed, broken or not, and the start goes on without them."""
    place.kept.parent.mkdir()
    place.kept.write_text("{")
    aside = place.kept.with_name("changes.json.discarded")
    assert discard_changes(place.file, {}) == aside
    assert (aside.read_text(), names(place.start())) == ("{", ["a"])
    assert discard_changes(place.file, {}) is None
