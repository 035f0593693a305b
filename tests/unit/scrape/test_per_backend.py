"""One task a backend."""

import asyncio
from collections.abc import Iterable

import pytest

from router_ext.model.backend import Backend
from router_ext.scrape.per_backend import BackendTasks
from tests.fakes.domain import backend
from tests.sim.wire import eventually
from tests.unit.scrape.stand import running


class Watched:
    """Backends with their tasks: ``log`` has a line for each beginning and end."""

    def __init__(self, *backends: Backend) -> None:
        self.backends: Iterable[Backend] = backends
        self.log: list[str] = []
        self.fails = False
        self.tasks = BackendTasks(self._watch, lambda: self.backends, lambda gone: self.log.append(f"gone {gone.name}"))

    async def _watch(self, backend: Backend) -> None:
        self.log.append(f"begin {backend.name}")
        if self.fails:
            raise RuntimeError(backend.name)
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append(f"end {backend.name}")


async def change(watched: Watched, *then: Backend, expected: list[str], anew: bool = False) -> None:
    """Waits until a change to other backends has had the expected effects, in any order, and no other."""
    async with running(asyncio.ensure_future(watched.tasks.run())):
        await eventually(lambda: len(watched.log) == 2)
        watched.log.clear()
        watched.backends = then
        watched.tasks.configure(anew=anew)
        await eventually(lambda: len(watched.log) >= len(expected))
        assert sorted(watched.log) == expected


async def test_a_task_is_not_disturbed_by_a_backend_that_is_added() -> None:
    """Those of the others go on."""
    watched = Watched(backend("a"), backend("b"))
    await change(watched, backend("a"), backend("b"), backend("c"), expected=["begin c"])


async def test_a_removed_backend_is_told_and_its_task_ends() -> None:
    """The one that stays goes on."""
    watched = Watched(backend("a"), backend("b"))
    await change(watched, backend("b"), backend("c"), expected=["begin c", "end a", "gone a"])


async def test_a_changed_backend_begins_again() -> None:
    """It may be another one under the same name."""
    watched = Watched(backend("a"), backend("b"))
    await change(watched, backend("a", model="m-x"), backend("b"), expected=["begin a", "end a", "gone a"])


async def test_all_tasks_begin_again_when_asked_to() -> None:
    """Though their backends are the same."""
    watched = Watched(backend("a"), backend("b"))
    expected = ["begin a", "begin b", "end a", "end b", "gone a", "gone b"]
    await change(watched, backend("a"), backend("b"), expected=expected, anew=True)


async def test_an_error_of_one_task_ends_them_all() -> None:
    """A bug is not hidden."""
    watched = Watched(backend("a"))
    watched.fails = True
    with pytest.raises(ExceptionGroup) as caught:
        await watched.tasks.run()
    assert [str(error) for error in caught.value.exceptions] == ["a"]
