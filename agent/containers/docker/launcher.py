"""The containers of one agent that dockerd runs.

    launch -> sandbox made -> image there, or pulled -> created -> started
           -> its output copied as it comes -> "die" -> inspected -> output read to its end
           -> ended -> (the agent has written that down) -> removed

Each container has a coroutine of its own that leads through these steps.  Nothing is
reported because it was asked for: a container has ended when dockerd, asked again,
says so.  While dockerd is silent nothing ends; it is asked until it answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from agent.containers.docker.asking import Pauses, Removing, answered
from agent.containers.docker.cgroups import remove_parent
from agent.containers.docker.changing import Changing
from agent.containers.docker.cleanup import known_agents
from agent.containers.docker.copying import Copying
from agent.containers.docker.ending import Standing
from agent.containers.docker.engine import Engine, EngineError
from agent.containers.docker.execs import Execs, Ran
from agent.containers.docker.limits import limits_of
from agent.containers.docker.logs import OutputFiles
from agent.containers.docker.records import Container, NotStarted, Phase
from agent.containers.docker.settings import DockerSettings, cgroup_parent
from agent.containers.docker.starting import Fetching, Starting, unless_asked
from agent.containers.docker.statistics import usage_of
from agent.containers.events import ContainerEvents
from agent.containers.processes import start_ticks
from agent.core.effects import ContainerSpec, Signal
from agent.core.records import Exit
from agent.core.recovery import SavedContainer
from agent.core.volume_uses import without_volumes
from agent.isolation.base import Limitation
from mesos_py import logs
from mesos_py.errors import MesosPyError, Unavailable
from mesos_py.metrics import Metrics
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.docker")

# At the agent's end: for removing what still runs.
CLOSE_S: Final = 20.0
FILE_THREADS: Final = 2
# dockerd that is away is looked for this often at the least.
LISTEN_AGAIN_S: Final = 1.0
# A container that has lost a process for memory and has not ended by then goes on.
GOES_ON_S: Final = 1.0
GONE: Final = "its docker container was removed by somebody else"
NOT_MADE: Final = "the agent ended before its docker container was started"


class DockerLauncher:
    """Implements what the agent's shell wants of a launcher.  Used from one event loop."""

    def __init__(
        self,
        settings: DockerSettings,
        work_dir: str,
        endpoint: str,
        events: ContainerEvents,
        fetcher: Fetching,
        metrics: Metrics,
    ) -> None:
        """`endpoint` is that of the agent's service for executors."""
        self.settings = settings
        self._work_dir = work_dir
        self._events = events
        self._engine = Engine(settings)
        self._starting = Starting(self._engine, settings, work_dir, endpoint, fetcher)
        self._removing = Removing(self._engine)
        self._changing = Changing(self._engine, settings, self._spawn)
        self._execs = Execs(self._engine)
        self._containers: dict[str, Container] = {}
        self._by_docker_id: dict[str, Container] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._agent_ids: set[str] = set()
        # Ended, and how: dockerd keeps it until the agent has written it down.  The
        # docker id, "" if nothing is left.
        self._kept: dict[str, str] = {}
        # dockerd has answered once, and is listened to.
        self._there = asyncio.Event()
        self._files = ThreadPoolExecutor(FILE_THREADS, thread_name_prefix="docker-files")
        self._notes = Path(work_dir, "docker", "output")
        self._measure(metrics)

    def _measure(self, metrics: Metrics) -> None:
        metrics.watch(
            "docker_containers", "Docker containers of this agent", lambda: len(self._containers)
        )
        metrics.watch(
            "docker_orphans", "Docker containers that are not known to be gone", self._orphans
        )
        self._oom_kills = metrics.counter(
            "docker_oom_kills_total", "Processes in docker containers killed for their memory"
        )
        self._lost_bytes = metrics.counter(
            "docker_output_lost_bytes_total", "Output of docker containers that no file took"
        )

    def _orphans(self) -> int:
        stuck = sum(each.stuck for each in self._containers.values())
        return len(self._removing.orphans) + stuck

    def __len__(self) -> int:
        return len(self._containers)

    def __contains__(self, container_id: str) -> bool:
        return container_id in self._containers or container_id in self._kept

    async def start(self, *, required: bool = True) -> None:
        """Raises OSError; and Unavailable if dockerd does not answer, unless that is not
        `required`: then all waits until it does."""
        self._make_directories()
        try:
            await self._engine.connect()
        except Unavailable as error:
            if required:
                raise
            log.warning("waiting for dockerd", error=error)
            self._spawn(self._connect())
            return
        self._spawn(self._listen())
        await self._there.wait()

    async def _connect(self) -> None:
        async for _ in Pauses():
            with contextlib.suppress(Unavailable):
                await self._engine.connect()
                self._spawn(self._listen())
                return

    def _make_directories(self) -> None:
        for path, mode in (
            (self._notes.parent, 0o711),
            (self._notes, 0o700),
            # Executors of other users must get at the socket, and at nothing else there.
            (self._starting.socket_dir, 0o711),
        ):
            path.mkdir(exist_ok=True)
            path.chmod(mode)

    # ---- Orders -------------------------------------------------------------------

    def launch(self, spec: ContainerSpec) -> None:
        self._agent_ids.add(spec.agent_id)
        container = Container(spec.container_id, spec.agent_id, spec.resources())
        self._live(container, self._launch(container, spec))

    def kill(self, container_id: str, number: Signal) -> None:
        container = self._containers.get(container_id)
        if container is None:
            return
        first = container.signal is None
        container.signal = number
        container.asked.set()
        if first and container.phase is Phase.RUNNING:
            self._spawn(self._changing.insist(container))

    def update(self, container_id: str, resources: Resources) -> None:
        container = self._containers.get(container_id)
        if container is not None:
            container.resources = resources
            self._changing.apply(container)

    def forget(self, container_id: str) -> None:
        """How it ended is written down."""
        docker_id = self._kept.pop(container_id, "")
        if docker_id:
            self._spawn(self._removing.remove(docker_id))

    def flush(self) -> None:
        """Nothing is held back here."""

    async def usage(self, container_id: str) -> dict[str, float]:
        """What a container has used; nothing of one that is not known or not measured."""
        container = self._containers.get(container_id)
        if container is None or container.phase is not Phase.RUNNING:
            return {}
        try:
            stats = await self._engine.stats(container.docker_id)
        except EngineError as error:
            log.info("no statistics", container=container_id, error=error)
            return {}
        return {
            **usage_of(stats, limits_of(container.resources, self.settings)),
            "memory_oom_kills": float(container.oom_kills),
        }

    async def run_in(
        self, container_id: str, argv: list[str], environment: Mapping[str, str]
    ) -> Ran | None:
        """Run a command beside the container's own; cancelled, it is killed.

        None if the container does not run; Ran.code is None where dockerd does not say.
        """
        container = self._containers.get(container_id)
        if container is None or container.phase is not Phase.RUNNING:
            return None
        try:
            return await self._execs.run(container.docker_id, argv, environment)
        except EngineError as error:
            return Ran(None, str(error))

    def recover(self, agent_id: str, saved: Sequence[SavedContainer]) -> asyncio.Task[None]:
        """Take up the containers of an earlier run of this agent; end all others of it.

        Each of `saved` is told of exactly once more: when it ends, or now if it has
        ended.  What carries the id of this agent, or one that it had before in the same
        work directory, and is not among them is removed.  Nothing else is touched.

        To be called when the service for executors listens, so that these come back.
        Done when the others are found; that takes as long as dockerd is silent.
        """
        for each in saved:
            container = Container(each.container_id, agent_id, without_volumes(each.resources))
            self._live(container, self._take_up(container, each))
        return self._spawn(self._end_others(agent_id))

    async def _end_others(self, agent_id: str) -> None:
        await self._there.wait()
        self._agent_ids |= {agent_id, *await asyncio.to_thread(known_agents, self._work_dir)}
        for each in sorted(self._agent_ids):
            find = functools.partial(self._engine.labelled, agent_id=each)
            for docker_id, container_id in await answered(find):
                if container_id not in self:
                    log.info("orphan removed", container=container_id, agent=each)
                    self._spawn(self._removing.remove(docker_id))

    async def close(self) -> None:
        """End everything that still runs.  Nothing is told any more."""
        await self._stop()
        left = {*self._removing.asked, *filter(None, self._kept.values())}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S if self._there.is_set() else 0):
                await asyncio.gather(
                    *map(self._removing.remove, left),
                    *map(self._removed, self._containers.values()),
                )
        if self._removing.asked:
            log.error("docker containers not removed", docker=sorted(self._removing.asked))
        driver = self._engine.dockerd.cgroup_driver
        for agent_id in self._agent_ids:
            remove_parent(cgroup_parent(self.settings.cgroup_root, agent_id, driver))
        await self._disconnect()

    async def leave(self) -> None:
        """Let everything go on, for the next run of this agent to find."""
        await self._stop()
        await self._disconnect()

    async def _stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for container in self._containers.values():
            if container.copying is not None:
                await container.copying.cancel()

    async def _disconnect(self) -> None:
        await self._engine.close()
        self._files.shutdown()

    # ---- Lives ----------------------------------------------------------------------

    async def _launch(self, container: Container, spec: ContainerSpec) -> None:
        asked = False
        try:
            await unless_asked(container, self._there.wait())
            request = await self._starting.prepare(container, spec)
            asked = True
            self._identify(container, await self._starting.create(container, request))
            await self._starting.start(container)
        except (NotStarted, MesosPyError, EngineError, OSError, ValueError) as error:
            if asked:
                await self._removed(container)
            self._failed(container, _text_of(error))
            return
        await self._run(container, spec.sandbox, known=False)

    async def _take_up(self, container: Container, saved: SavedContainer) -> None:
        """Of an earlier run of the agent: whatever has become of it."""
        await self._there.wait()
        labels = {"agent_id": container.agent_id, "container_id": container.container_id}
        found = await answered(functools.partial(self._engine.labelled, **labels))
        docker_id = found[0][0] if found else ""
        standing = await answered(lambda: self._engine.inspect(docker_id)) if found else None
        if standing is None and saved.pid is not None:
            self._ended(container, None)
            return
        if standing is None or standing.is_new:
            await self._removed(container)
            self._failed(container, NOT_MADE)
            return
        self._identify(container, docker_id)
        # Should it be a custom executor's.
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._starting.link_socket)
        await self._run(container, saved.sandbox, known=saved.pid is not None, again=True)

    async def _run(
        self, container: Container, parts: tuple[str, ...], *, known: bool, again: bool = False
    ) -> None:
        """From its start, which may be long ago, to its end."""
        docker_id = container.docker_id
        files = OutputFiles(self._work_dir, parts, str(self._notes / container.container_id))
        copying = container.copying = Copying(self._engine, docker_id, files, self._files)
        await copying.start(again=again)
        found = await answered(lambda: self._engine.inspect(docker_id))
        container.phase = Phase.RUNNING
        if found is not None and found.addresses:
            self._events.container_addressed(container.container_id, found.addresses)
        if not known:
            pid = found.pid if found is not None else 0
            self._events.container_started(container.container_id, pid, start_ticks(pid))
            self._events.containers_told()
        if container.signal is not None:
            self._spawn(self._changing.insist(container))
        self._changing.apply(container)
        while found is not None and found.alive:
            await container.look.wait()
            container.look.clear()
            found = await answered(lambda: self._engine.inspect(docker_id))
        await copying.finish(removed=found is None)
        self._lost_bytes.inc(copying.lost_bytes)
        self._ended(container, found)

    def _ended(self, container: Container, found: Standing | None) -> None:
        container_id = container.container_id
        exit = found.exit(container.signal) if found is not None else Exit(None, GONE)
        if found is not None and found.oom_killed and not container.oom_kills:
            # The event has not come, or not yet.
            self._oom_kills.inc()
        if found is not None and found.out_of_memory:
            self._events.container_limited(container_id, self._out_of_memory(container, fatal=True))
        self._forget(container)
        self._kept[container_id] = container.docker_id if found is not None else ""
        self._events.container_ended(container_id, exit)
        self._events.containers_told()

    def _out_of_memory(self, container: Container, *, fatal: bool) -> Limitation:
        limits = container.applied or limits_of(container.resources, self.settings)
        mem_mb = limits.mem_bytes // 2**20
        what = "it" if fatal else "a process of it, which goes on,"
        return Limitation(
            pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY,
            f"Memory limit exceeded: the kernel killed {what} at its limit of {mem_mb} MB",
            Resources.of(mem=mem_mb),
            fatal=fatal,
        )

    def _failed(self, container: Container, text: str) -> None:
        self._forget(container)
        self._kept[container.container_id] = ""
        self._events.container_failed(container.container_id, text)
        self._events.containers_told()

    async def _give_up(self, container: Container, error: Exception) -> None:
        """A fault of ours must not leave a task that never ends."""
        log.error("supervision failed", container=container.container_id, error=error)
        await self._removed(container)
        if container.container_id in self._containers:
            text = f"internal error of the agent: {type(error).__name__}: {error}"
            if container.phase is Phase.PREPARING:
                self._failed(container, text)
            else:
                self._forget(container)
                self._kept[container.container_id] = ""
                self._events.container_ended(container.container_id, Exit(None, text))
                self._events.containers_told()

    async def _removed(self, container: Container) -> None:
        if container.docker_id:
            await self._removing.remove(container.docker_id)
        else:
            await self._removing.remove_unknown(container.agent_id, container.container_id)

    # ---- What dockerd says ------------------------------------------------------------

    async def _listen(self) -> None:
        """Hear of ends; after each break, look at all."""
        since_s = int(time.time())
        async for _ in Pauses(LISTEN_AGAIN_S):
            try:
                events = self._engine.events(since_s)
                async with contextlib.aclosing(events):
                    async for docker_id, what in events:
                        # Of the same machine's clock, and somewhat early.
                        since_s = int(time.time()) - 1
                        if not what:
                            self._there.set()
                            log.info("dockerd heard", version=self._engine.dockerd.version)
                            self._look_at_all()
                        elif (container := self._by_docker_id.get(docker_id)) is not None:
                            self._heard(container, what)
                log.warning("dockerd has ended its events")
            except EngineError as error:
                log.warning("dockerd not heard", error=error)
            except Exception as error:
                # Who does not listen any more hears of no end.
                log.exception("events not understood", error=error)

    def _heard(self, container: Container, what: str) -> None:
        if what == "oom":
            # Of any of its processes: what becomes of the container is another matter.
            container.oom_kills += 1
            self._oom_kills.inc()
            log.info("process killed for memory", container=container.container_id)
            if container.oom_kills == 1:
                self._spawn(self._tell_if_it_goes_on(container))
        else:
            container.look.set()

    async def _tell_if_it_goes_on(self, container: Container) -> None:
        """It has lost a process to its memory limit; most often it ends with it."""
        await asyncio.sleep(GOES_ON_S)
        if container.container_id in self._containers:
            limitation = self._out_of_memory(container, fatal=False)
            self._events.container_limited(container.container_id, limitation)
            self._events.containers_told()

    def _look_at_all(self) -> None:
        for container in self._containers.values():
            container.look.set()

    # ---- Books ----------------------------------------------------------------------

    def _live(self, container: Container, life: Coroutine[Any, Any, None]) -> None:
        self._containers[container.container_id] = container

        async def guarded() -> None:
            try:
                await life
            except Exception as error:
                await self._give_up(container, error)

        self._spawn(guarded())

    def _identify(self, container: Container, docker_id: str) -> None:
        container.docker_id = docker_id
        self._by_docker_id[docker_id] = container

    def _forget(self, container: Container) -> None:
        self._containers.pop(container.container_id, None)
        self._by_docker_id.pop(container.docker_id, None)
        container.gone = True
        container.asked.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _text_of(error: Exception) -> str:
    if isinstance(error, MesosPyError):
        return error.message
    if isinstance(error, OSError):
        return f"cannot prepare the container: {error}"
    return str(error)
