"""The isolators of an agent at work: in order for each container, beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from agent.isolation.base import Container, Isolator, Limitation, Preparation, Recovered
from agent.isolation.posix import PosixIsolator
from mesos_py import logs
from mesos_py.resources import Resources

T = TypeVar("T")
log = logs.get("agent.isolation")

THREADS = 4
# A cleanup that failed is tried again, this often and so many times.
CLEANUP_AGAIN_S = 5.0
CLEANUP_TRIES = 12


class Isolating:
    """Calls isolators in worker threads: all calls for one container in one thread.

    With none that does something it only does other work beside the loop (`run`).
    """

    def __init__(self, isolators: Sequence[Isolator]) -> None:
        self._isolators = [each for each in isolators if not isinstance(each, PosixIsolator)]
        # One queue for each thread keeps the order of a container's calls.
        self._threads = [
            ThreadPoolExecutor(1, thread_name_prefix="isolation") for _ in range(THREADS)
        ]
        # Amounts that no thread has taken up yet.
        self._newest: dict[str, Resources] = {}

    @property
    def active(self) -> bool:
        return bool(self._isolators)

    def run(self, container_id: str, work: Callable[[], T]) -> asyncio.Future[T]:
        """Do some work after all that was asked for before for this container."""
        return asyncio.wrap_future(self._submit(container_id, work))

    def prepare(self, container: Container) -> Preparation:
        """Of all isolators, in their order.  In a thread; raises what one raised."""
        parts = [each.prepare(container) for each in self._isolators]
        environment: dict[str, str] = {}
        for part in parts:
            environment.update(part.environment)
        return Preparation(
            environment=environment,
            enter=tuple(file for part in parts for file in part.enter),
            namespaces=tuple(file for part in parts for file in part.namespaces),
            rlimits=tuple(limit for part in parts for limit in part.rlimits),
        )

    def isolate(
        self,
        container_id: str,
        pid: int,
        exceeded: Callable[[Limitation], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Take hold of the first process and watch.  Both callbacks come from threads."""

        def work() -> None:
            try:
                for each in self._isolators:
                    each.isolate(container_id, pid)
                for each in self._isolators:
                    each.watch(container_id, exceeded)
            except Exception as error:
                failed(error)

        if self.active:
            self._submit(container_id, work)

    def recover(self, containers: Sequence[Recovered]) -> None:
        """Before anything else.  In a thread; raises what one raised."""
        for each in self._isolators:
            each.recover(containers)

    def resume(self, container_id: str, exceeded: Callable[[Limitation], None]) -> None:
        """Watch a container that was recovered."""

        def work() -> None:
            for each in self._isolators:
                try:
                    each.watch(container_id, exceeded)
                except Exception as error:
                    log.warning("limits are not watched", container=container_id, error=error)

        if self.active:
            self._submit(container_id, work)

    def update(self, container_id: str, resources: Resources) -> None:
        def work() -> None:
            newest = self._newest.pop(container_id)
            for each in self._isolators:
                try:
                    each.update(container_id, newest)
                except Exception as error:
                    log.warning(
                        "update of limits failed",
                        container=container_id,
                        isolator=type(each).__name__,
                        error=error,
                    )

        if self.active:
            waiting = container_id in self._newest
            self._newest[container_id] = resources
            if not waiting:
                self._submit(container_id, work)

    def cleanup(self, container_id: str, tries: int = CLEANUP_TRIES) -> None:
        """Remove what isolators have made for the container; again if that fails."""
        if not self.active:
            return
        loop = asyncio.get_running_loop()

        def work() -> None:
            clean = True
            # What was made last is removed first.
            for each in reversed(self._isolators):
                try:
                    each.cleanup(container_id)
                except Exception as error:
                    clean = False
                    log.warning(
                        "cleanup failed",
                        container=container_id,
                        isolator=type(each).__name__,
                        tries_left=tries - 1,
                        error=error,
                    )
            if not clean and tries > 1:
                loop.call_soon_threadsafe(
                    loop.call_later, CLEANUP_AGAIN_S, self.cleanup, container_id, tries - 1
                )

        self._submit(container_id, work)

    def usage(self, container_id: str) -> dict[str, float]:
        """What all isolators can say.  In a thread."""
        numbers: dict[str, float] = {}
        for each in self._isolators:
            numbers.update(each.usage(container_id))
        return numbers

    async def close(self) -> None:
        """Finish what was asked for, and end the threads."""
        for each in self._threads:
            await asyncio.to_thread(each.shutdown)

    def _submit(self, container_id: str, work: Callable[[], T]) -> Future[T]:
        return self._threads[hash(container_id) % THREADS].submit(work)
