"""The isolators of an agent at work: in order for each container, beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from agent.core.effects import ContainerSpec
from agent.isolation.base import NOTHING, Container, Isolator, Limitation, Preparation, Recovered
from agent.isolation.posix import PosixIsolator
from mesos_py import logs
from mesos_py.errors import Unavailable
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

T = TypeVar("T")
log = logs.get("agent.isolation")

THREADS = 4
# What could not be ended or cleaned up is tried again, at pauses that double.
AGAIN_S = 1.0
AGAIN_AT_MOST_S = 60.0


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
        self._closed = False

    @property
    def active(self) -> bool:
        return bool(self._isolators)

    def run(self, container_id: str, work: Callable[[], T]) -> asyncio.Future[T]:
        """Do some work after all that was asked for before for this container."""
        return asyncio.wrap_future(self._submit(container_id, work))

    def prepare(self, container: Container) -> Preparation:
        """Of all isolators, in their order.  In a thread; raises what one raised."""
        return _sum([each.prepare(container) for each in self._isolators])

    async def join(self, container_id: str, pid: int) -> Preparation:
        """What a further process of the container needs.  Raises what one raised."""
        if not self.active:
            return NOTHING

        def work() -> Preparation:
            return _sum([each.join(container_id, pid) for each in self._isolators])

        return await self.run(container_id, work)

    def addresses(self, container_id: str) -> tuple[str, ...]:
        """Those of the container's own network.  Not in a thread."""
        return tuple(found for each in self._isolators for found in each.addresses(container_id))

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

    def end(
        self,
        container_id: str,
        gone: Callable[[Limitation | None], None],
        again_s: float = AGAIN_S,
    ) -> None:
        """End what may be left of the container; `gone` is called, on the loop, when
        nothing is, with the limitation that was the cause, if one was."""
        loop = asyncio.get_running_loop()

        def work() -> None:
            try:
                found = self._end(container_id)
            except Unavailable as error:
                log.warning("container does not end", container=container_id, error=error)
                later_s = min(again_s * 2, AGAIN_AT_MOST_S)
                self._later(loop, again_s, self.end, container_id, gone, later_s)
            else:
                loop.call_soon_threadsafe(gone, found)

        self._submit(container_id, work)

    def kill(self, container_id: str) -> None:
        """End all of it now, as far as isolators can reach it.  Its end is told apart."""

        def work() -> None:
            try:
                self._end(container_id)
            except Unavailable as error:
                log.warning("container does not end", container=container_id, error=error)

        if self.active:
            self._submit(container_id, work)

    def _end(self, container_id: str) -> Limitation | None:
        found: Limitation | None = None
        for each in self._isolators:
            try:
                limitation = each.end(container_id)
            except Unavailable:
                raise
            except Exception as error:
                # Not that something still runs: it must not keep the task for ever.
                log.exception(
                    "end failed",
                    container=container_id,
                    isolator=type(each).__name__,
                    error=error,
                )
            else:
                found = found or limitation
        return found

    def cleanup(self, container_id: str, again_s: float = AGAIN_S) -> None:
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
                        again_s=again_s,
                        error=error,
                    )
            if not clean:
                later_s = min(again_s * 2, AGAIN_AT_MOST_S)
                self._later(loop, again_s, self.cleanup, container_id, later_s)

        self._submit(container_id, work)

    async def used(self, container_id: str) -> Mapping[str, float]:
        """What all isolators can say; {} where none counts."""
        return await self.run(container_id, lambda: self.usage(container_id)) if self.active else {}

    def usage(self, container_id: str) -> dict[str, float]:
        """What all isolators can say.  In a thread."""
        numbers: dict[str, float] = {}
        for each in self._isolators:
            try:
                numbers.update(each.usage(container_id))
            except Exception as error:
                # The others' numbers are good all the same.
                log.warning(
                    "usage failed",
                    container=container_id,
                    isolator=type(each).__name__,
                    error=error,
                )
        return numbers

    async def close(self) -> None:
        """Finish what was asked for, and end the threads."""
        self._closed = True
        for each in self._threads:
            await asyncio.to_thread(each.shutdown)
        for isolator in reversed(self._isolators):
            await asyncio.to_thread(self._close, isolator)

    def _close(self, isolator: Isolator) -> None:
        try:
            isolator.close()
        except Exception as error:
            log.warning("close failed", isolator=type(isolator).__name__, error=error)

    def _later(
        self,
        loop: asyncio.AbstractEventLoop,
        pause_s: float,
        method: Callable[..., None],
        *arguments: object,
    ) -> None:
        """From a thread: call `method` on the loop after a pause, unless all has ended."""

        def call() -> None:
            if not self._closed:
                method(*arguments)

        loop.call_soon_threadsafe(loop.call_later, pause_s, call)

    def _submit(self, container_id: str, work: Callable[[], T]) -> Future[T]:
        return self._threads[hash(container_id) % THREADS].submit(work)


def _sum(parts: Sequence[Preparation]) -> Preparation:
    environment: dict[str, str] = {}
    for part in parts:
        environment.update(part.environment)
    return Preparation(
        environment=environment,
        enter=tuple(file for part in parts for file in part.enter),
        namespaces=tuple(file for part in parts for file in part.namespaces),
        rlimits=tuple(limit for part in parts for limit in part.rlimits),
    )


def described(spec: ContainerSpec, where: str, uid: int, gid: int) -> Container:
    """The container as isolators are told of it.  `where`: its sandbox."""
    first = next((each for each in spec.holders if isinstance(each, pb.TaskInfo)), None)
    labels = first.labels.labels if first is not None else ()
    return Container(
        container_id=spec.container_id,
        framework_id=spec.framework_id,
        executor_id=spec.executor_id,
        sandbox=where,
        uid=uid,
        gid=gid,
        resources=spec.resources(),
        info=spec.container,
        labels={label.key: label.value for label in labels},
    )
