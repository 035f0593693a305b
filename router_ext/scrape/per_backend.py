"""One task for each backend, kept in step with the configuration."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from router_ext.model.backend import Backend


class BackendTasks:
    """Runs ``watch`` for each backend that ``wanted`` lists.

    A backend whose settings changed counts as another one: its task is cancelled and a new one begins. ``gone`` is
    told of every backend whose task is cancelled, before the new ones begin.
    """

    def __init__(
        self,
        watch: Callable[[Backend], Coroutine[Any, Any, None]],
        wanted: Callable[[], Iterable[Backend]],
        gone: Callable[[Backend], None] = lambda _backend: None,
    ) -> None:
        self._watch = watch
        self._wanted = wanted
        self._gone = gone
        self._configured = asyncio.Event()
        self._anew = False

    def configure(self, *, anew: bool = False) -> None:
        """Call it when ``wanted`` may list others than before; ``anew`` begins every task again."""
        self._anew |= anew
        self._configured.set()

    async def run(self) -> None:
        """Runs until cancelled. An error of any task ends all of them, and is raised in an exception group."""
        tasks: dict[Backend, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._configured.clear()
                wanted = tuple(self._wanted())
                for backend in tasks.keys() - (set() if self._anew else set(wanted)):
                    tasks.pop(backend).cancel()
                    self._gone(backend)
                self._anew = False
                for backend in wanted:
                    if backend not in tasks:
                        tasks[backend] = group.create_task(self._watch(backend), name=f"watch {backend.name}")
                await self._configured.wait()
