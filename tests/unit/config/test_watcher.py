"""The watcher: what counts as a change of the file."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from router_ext.config.watcher import Change, ConfigWatcher


class ScriptOverError(Exception):
    """Ends a watch when all steps were played."""


def watch(file: Path, steps: Sequence[Callable[[], object]], digest: str = "") -> list[Change]:
    """The changes seen while one step is played before each poll."""
    left = iter(steps)

    async def wait(_interval_s: float) -> None:
        step = next(left, None)
        if step is None:
            raise ScriptOverError
        step()

    async def run() -> list[Change]:
        seen: list[Change] = []
        try:
            async for change in ConfigWatcher(file, digest=digest, wait=wait).changes():
                seen.append(change)  # noqa: PERF401  # the list must survive the end of the script
        except ScriptOverError:
            return seen
        raise AssertionError("a watch never ends by itself")

    return asyncio.run(run())


def write(file: Path, content: bytes) -> Callable[[], object]:
    """A step that writes ``content``."""
    return lambda: file.write_bytes(content)


def rest() -> None:
    """A step in which nothing happens."""


def digest_of(content: bytes) -> str:
    """The digest that the loader gives for ``content``."""
    return hashlib.sha256(content).hexdigest()


def test_loaded_content_is_no_change(tmp_path: Path) -> None:
    """Nothing is reported while the file is as it was loaded."""
    file = tmp_path / "router.yaml"
    assert watch(file, [write(file, b"a"), rest, rest], digest_of(b"a")) == []


def test_content_that_changed_before_the_first_poll_is_reported(tmp_path: Path) -> None:
    """An edit between loading and watching is not lost."""
    file = tmp_path / "router.yaml"
    assert watch(file, [write(file, b"b"), rest, rest], digest_of(b"a")) == [b"b"]


def test_a_change_is_reported_once_it_rests_for_two_polls(tmp_path: Path) -> None:
    """One poll is not enough, and a rested change is reported once."""
    file = tmp_path / "router.yaml"
    assert watch(file, [write(file, b"b")]) == []
    assert watch(file, [write(file, b"b"), rest]) == [b"b"]
    assert watch(file, [write(file, b"b"), rest, rest, rest]) == [b"b"]


def test_a_file_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    """Only the last of three states rests."""
    file = tmp_path / "router.yaml"
    steps = [write(file, b"half"), write(file, b"half of"), write(file, b"half of it"), rest]
    assert watch(file, steps) == [b"half of it"]


def test_a_change_that_is_taken_back_is_none(tmp_path: Path) -> None:
    """The file is again what was loaded."""
    file = tmp_path / "router.yaml"
    assert watch(file, [write(file, b"b"), write(file, b"a"), rest, rest], digest_of(b"a")) == []


def test_an_unreadable_file_is_a_change_and_so_is_its_return(tmp_path: Path) -> None:
    """The caller can say so, and reloads what comes back."""
    file = tmp_path / "router.yaml"
    steps = [write(file, b"a"), rest, file.unlink, rest, rest, write(file, b"a"), rest]
    seen = watch(file, steps, digest_of(b"a"))
    assert [str(change) for change in seen] == ["router.yaml: cannot be read: No such file or directory", "b'a'"]


def test_a_swapped_symlink_is_a_change(tmp_path: Path) -> None:
    """Kubernetes updates a ConfigMap by renaming a symlink to another folder over the old one."""
    for name, content in (("v1", b"a"), ("v2", b"b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "router.yaml").write_bytes(content)
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "..next").symlink_to("v2")
    file = tmp_path / "router.yaml"
    file.symlink_to("..data/router.yaml")
    steps = [rest, rest, lambda: os.replace(tmp_path / "..next", tmp_path / "..data"), rest]
    assert watch(file, steps, digest_of(b"a")) == [b"b"]
