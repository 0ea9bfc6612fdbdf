"""The output of a run's tasks, copied as it is written.

What the attempts of one instance wrote comes out in their order: the next one's is not
begun before all of the one before is written or given up, however much faster its agent
answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from mesos_py.cli.running.sink import Prefixed, Sink
from mesos_py.errors import MesosPyError, NotFound

FILES: Final = ("stdout", "stderr")


class Logs(Protocol):
    """Where a task's files are read; see `Relay.read`."""

    def read(
        self, framework_id: str, task_id: str, path: str, *, known: bool
    ) -> AsyncIterator[bytes]: ...


class Copies:
    """Used from one event loop; `close` it at the end.

    `say(text)` is called with what keeps an output from being read, `unread()` once each
    time that nobody reads what we write any more.
    """

    def __init__(
        self,
        logs: Logs,
        sink: Sink,
        say: Callable[[str], None],
        unread: Callable[[], None],
        *,
        prefix: bool,
    ) -> None:
        self._logs = logs
        self._sink = sink
        self._say = say
        self._unread = unread
        self._prefix = prefix
        self._of_task: dict[str, list[asyncio.Task[None]]] = {}
        # By instance and file: the last one begun, which the next one waits for.
        self._last: dict[tuple[int, str], asyncio.Task[None]] = {}

    def follow(
        self, framework_id: str, task_id: str, instance: int, title: str, *, ran: bool
    ) -> None:
        """Copy both files of a task from now on; again is nothing.

        `ran`: it is known that there was a process, and so that there are files.
        """
        if task_id in self._of_task:
            return
        self._of_task[task_id] = []
        for name in FILES:
            source = self._logs.read(framework_id, task_id, name, known=ran)
            before = self._last.get((instance, name))
            copy = asyncio.create_task(self._copy(source, before, title, name, ran=ran))
            self._last[instance, name] = copy
            self._of_task[task_id].append(copy)

    def give_up(self, task_id: str, title: str) -> None:
        """Of a task whose agent is lost: what has not come by now does not come."""
        unfinished = [each for each in self._of_task.get(task_id, ()) if not each.done()]
        for each in unfinished:
            each.cancel()
        if unfinished:
            self._say(f"{title}: the rest of its output is lost")

    async def finish(self) -> None:
        """Until all output of what was followed is written or given up."""
        while pending := [each for each in self._all() if not each.done()]:
            await asyncio.wait(pending)

    def cancel(self) -> None:
        """Copy nothing more."""
        for each in self._all():
            each.cancel()

    async def close(self) -> None:
        self.cancel()
        await asyncio.gather(*self._all(), return_exceptions=True)

    def _all(self) -> list[asyncio.Task[None]]:
        return [each for copies in self._of_task.values() for each in copies]

    async def _copy(
        self,
        source: AsyncIterator[bytes],
        before: asyncio.Task[None] | None,
        title: str,
        name: str,
        *,
        ran: bool,
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        lines = Prefixed(f"{title} | ".encode()) if self._prefix else None
        try:
            async for data in source:
                ready = data if lines is None else lines.lines(data)
                if ready:
                    await self._sink.write(name, ready)
            if lines is not None and (rest := lines.end()):
                await self._sink.write(name, rest)
        except BrokenPipeError:
            self._unread()
        except MesosPyError as error:
            if isinstance(error, NotFound) and not ran:
                return  # it never came so far as to have a sandbox
            self._say(f"{title}: the rest of its {name} cannot be read: {error}")
