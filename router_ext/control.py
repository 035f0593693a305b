"""What the router runs on: a file and the changes above it. Every way to another configuration leads through here.

A configuration is taken over as a whole or not at all. The changes that are on disk are those that run, also where
several processes share them: each looks whether another has written.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from router_ext.config.changes import Changes
from router_ext.config.changes_file import ChangesFile
from router_ext.config.loader import LoadedConfig, data_dir, parse, read_file
from router_ext.config.problem import ConfigError, Problem
from router_ext.config.restart import restart_only
from router_ext.config.watcher import Change
from router_ext.ports import Clock, Telemetry

LOOK_S: Final = 0.5
"""How often a process looks for changes that another one wrote."""

_TRIES: Final = 5
"""How often a change begins anew because another process wrote meanwhile."""

Edit = Callable[[Changes], Changes]
"""From the changes that are on disk to others. It may be called more than once; what it raises ends the change."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something was not taken over: every problem, one a line, and the wall time in seconds."""

    message: str
    at: float


@dataclass(frozen=True, slots=True)
class Running:
    """What is in force since ``loaded_at`` (wall time in seconds).

    ``content`` is the file that was read; the one on disk may be another, and ``refused`` is then why it is not in
    force. ``changes_refused`` is the same of changes that another process wrote. Both are None where what is on disk
    runs.
    """

    loaded: LoadedConfig
    content: bytes
    changes: Changes
    loaded_at: float
    refused: Refusal | None = None
    changes_refused: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """A step from one configuration to another; of a dry run, the step that would have been.

    ``warnings`` are those that the other configuration did not have. ``restart_needed`` names settings that differ from
    those at start and wait for a restart.
    """

    before: Running
    after: Running
    warnings: tuple[Problem, ...]
    restart_needed: tuple[str, ...]


def begin(path: Path, environ: Mapping[str, str], workers: int | None, now: float) -> Running:
    """The file with the changes on disk. ``workers`` is that of ``config.loader.load``, ``now`` wall time in seconds.

    Raises ConfigError with all problems; where only the changes are in the way, it names their file and a way on.
    """
    content = read_file(path)
    source, folder = path.name, path.parent
    file = ChangesFile(data_dir(content, source, folder, environ))
    changes = file.decoded(file.content())
    try:
        loaded = parse(content, source, folder, environ, workers, changes=changes)
    except ConfigError as error:
        if changes and _stands_alone(content, path, environ, workers):
            raise ConfigError(source, [*error.problems, Problem("", 0, _way_on(file.path))]) from None
        raise
    return Running(loaded, content, changes, now)


def discard_changes(path: Path, environ: Mapping[str, str]) -> Path | None:
    """Sets the changes on disk aside and says where they are now; None: there are none. Raises ConfigError, OSError."""
    return ChangesFile(data_dir(read_file(path), path.name, path.parent, environ)).set_aside()


def _stands_alone(content: bytes, path: Path, environ: Mapping[str, str], workers: int | None) -> bool:
    try:
        parse(content, path.name, path.parent, environ, workers)
    except ConfigError:
        return False
    return True


def _way_on(changes: Path) -> str:
    return (
        f"the changes of the admin API in {changes} do not fit the file: mend the file, or start without the changes "
        "by router-ext serve --discard-changes"
    )


class Control:
    """The owner of the running configuration. ``running`` is what the process has started with.

    ``take_over`` puts a configuration in force. It raises OSError or RuntimeError, before it has changed anything, when
    Envoy's files cannot be written.
    """

    def __init__(
        self,
        path: Path,
        environ: Mapping[str, str],
        running: Running,
        take_over: Callable[[LoadedConfig], Awaitable[None]],
        *,
        telemetry: Telemetry,
        clock: Clock,
        workers: int | None = None,
    ) -> None:
        self._path = path
        self._environ = environ
        self._take_over = take_over
        self._telemetry = telemetry
        self._clock = clock
        self._workers = workers
        self._running = running
        self._at_start = running.loaded.config
        self._file = ChangesFile(running.loaded.config.server.data_dir)
        self._seen: bytes | None = self._file.encoded(running.changes)
        self._lock = asyncio.Lock()

    @property
    def running(self) -> Running:
        """What is in force now."""
        return self._running

    async def change(self, edit: Edit, *, dry_run: bool = False) -> Applied:
        """Puts other changes above the file that runs, and keeps them on disk.

        Raises ConfigError with all problems, OSError or RuntimeError when it cannot be written or taken over, and what
        ``edit`` raises. Everything is then as it was, on disk too.
        """
        async with self._lock:
            for _ in range(_TRIES):
                applied = await self._try_change(edit, dry_run=dry_run)
                if applied is not None:
                    return applied
        raise OSError(f"{self._file.path}: other processes change it all the time")

    async def reload(self, *, dry_run: bool = False) -> Applied:
        """Takes over the file as it is on disk now, with the changes above it.

        Raises ConfigError with all problems, OSError or RuntimeError when it cannot be taken over. Nothing has changed
        then but ``running.refused``.
        """
        async with self._lock:
            try:
                content = await asyncio.to_thread(read_file, self._path)
                return await self._load(content, dry_run=dry_run)
            except (ConfigError, OSError, RuntimeError) as error:
                if not dry_run:
                    self._refuse(error)
                raise

    async def follow(self, contents: AsyncIterator[Change]) -> None:
        """Takes over each valid content of the file, for ever. Of others ``running.refused`` tells."""
        async for content in contents:
            async with self._lock:
                await self._take(content)

    async def follow_changes(self, wait: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Looks for changes of other processes, for ever."""
        while True:
            await wait(LOOK_S)
            await self.reread_changes()

    async def reread_changes(self) -> None:
        """Takes over the changes on disk where they are not those that run. What is refused is told once, and stands in
        ``running.changes_refused`` until something good is on disk.
        """
        async with self._lock:
            try:
                await self._reread()
            except (ConfigError, OSError, RuntimeError) as error:
                self._refuse_changes(error)

    async def _reread(self) -> None:
        seen, self._seen = self._seen, None
        content = await asyncio.to_thread(self._file.content)
        self._seen = seen
        if content == seen:
            return
        try:
            changes = self._file.decoded(content)
            loaded = await self._parsed(self._running.content, changes)
        except ConfigError:
            # The same content will not fit the same file another time. What is wrong with a disk may pass.
            self._seen = content
            raise
        await self._put(replace(self._running, loaded=loaded, changes=changes, changes_refused=None))
        self._seen = content
        self._telemetry.changes_taken_over()

    async def _try_change(self, edit: Edit, *, dry_run: bool) -> Applied | None:
        """None when the file was written meanwhile."""
        was = await asyncio.to_thread(self._file.content)
        changes = edit(self._file.decoded(was)).above(self._running.loaded.in_file)
        content = self._file.encoded(changes)
        loaded = await self._parsed(self._running.content, changes)
        after = replace(self._running, loaded=loaded, changes=changes, changes_refused=None)
        before = self._running
        if changes == before.changes and content == was:
            return self._applied(before, before)
        if dry_run:
            return self._applied(before, after)
        if not await self._keep_and_put(was, content, after):
            return None
        self._seen = content
        self._telemetry.changes_taken_over()
        return self._applied(before, self._running)

    async def _keep_and_put(self, was: bytes, content: bytes, after: Running) -> bool:
        """First on disk, so that what runs would run after a restart. A failure puts the disk back if it can."""
        try:
            if not await asyncio.to_thread(self._file.replace, was, content):
                return False
            await self._put(after)
        except (OSError, RuntimeError):
            with suppress(OSError, ConfigError):
                await asyncio.to_thread(self._file.replace, content, was)
            raise
        return True

    async def _take(self, content: Change) -> None:
        if content == self._running.content and self._running.refused is None:
            return
        try:
            if isinstance(content, ConfigError):
                raise content
            await self._load(content)
        except (ConfigError, OSError, RuntimeError) as error:
            self._refuse(error)

    async def _load(self, content: bytes, *, dry_run: bool = False) -> Applied:
        before = self._running
        kept, changes = await self._kept_changes()
        loaded = await self._parsed(content, changes)
        refused = before.changes_refused if kept is None else None
        after = replace(before, loaded=loaded, content=content, changes=changes, refused=None, changes_refused=refused)
        if dry_run:
            return self._applied(before, after)
        await self._put(after)
        self._seen = self._seen if kept is None else kept
        self._telemetry.reloaded(loaded.digest)
        if before.changes_refused and refused is None:
            self._telemetry.changes_taken_over()
        return self._applied(before, self._running)

    async def _kept_changes(self) -> tuple[bytes | None, Changes]:
        """The changes on disk, which another process may have written. Where they cannot be read, those that run."""
        try:
            content = await asyncio.to_thread(self._file.content)
            return content, self._file.decoded(content)
        except ConfigError:
            return None, self._running.changes

    async def _parsed(self, content: bytes, changes: Changes) -> LoadedConfig:
        return await asyncio.to_thread(
            parse, content, str(self._path), self._path.parent, self._environ, self._workers, changes=changes
        )

    async def _put(self, after: Running) -> None:
        await self._take_over(after.loaded)
        self._running = replace(after, loaded_at=self._clock.wall())

    def _applied(self, before: Running, after: Running) -> Applied:
        return Applied(
            before,
            after,
            after.loaded.warnings_beside(before.loaded),
            restart_only(self._at_start, after.loaded.config),
        )

    def _refuse(self, error: Exception) -> None:
        """Told once: who reloads by hand and who watches the file may meet the same content."""
        message, known = str(error), self._running.refused
        if known is None or known.message != message:
            self._running = replace(self._running, refused=Refusal(message, self._clock.wall()))
            self._telemetry.reload_refused(message)

    def _refuse_changes(self, error: Exception) -> None:
        message, known = str(error), self._running.changes_refused
        if known is None or known.message != message:
            self._running = replace(self._running, changes_refused=Refusal(message, self._clock.wall()))
            self._telemetry.changes_refused(message)
