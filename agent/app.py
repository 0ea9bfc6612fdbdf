"""The agent daemon: wiring, start and end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import os
import random
import signal
import socket
from typing import TYPE_CHECKING, Final

import grpc.aio

from agent.api.executor_service import ExecutorServer, ExecutorService
from agent.api.executor_streams import ExecutorStreams
from agent.api.files import FileService
from agent.api.http.flags import executor_ip
from agent.api.http.server import AgentHttp
from agent.api.master_link import MasterLink
from agent.api.metrics import PREFIX, Told, observe, used_by
from agent.api.older.metrics import Recovery
from agent.api.shell import Shell
from agent.checkpoint import cleanup
from agent.checkpoint.store import Checkpoint, CheckpointUnwritable, boot_id
from agent.checks.wiring import prober_of
from agent.containers import containerizers
from agent.containers.isolating import Isolating
from agent.containers.launcher import Launcher
from agent.containers.nested import Nested
from agent.containers.router import Router
from agent.containers.warden import OnAgentLoss
from agent.core.agent import AgentCore
from agent.core.nested import Allowed
from agent.core.recovery import SavedContainer, require_compatible
from agent.core.state import Settings
from agent.default_executor.program import command_line, python_path
from agent.fetcher.fetcher import Fetcher
from agent.flags import AgentFlags
from agent.ids import RandomIds
from agent.isolation import base as isolation
from agent.resources import offered, parse_attributes, warn_of_taken_ports
from agent.sandboxes.keeper import SandboxKeeper
from agent.volumes.eraser import Eraser
from agent.volumes.keeper import VolumeKeeper
from agent.volumes.links import VolumeLinks
from agent.volumes.store import VolumeStore
from mesos_py import logs, mesos_flags, rpc
from mesos_py.address import Address
from mesos_py.clock import SystemClock
from mesos_py.election import Backoff, Detector, parse_master
from mesos_py.errors import InternalError, InvalidValue, MesosPyError, Refused
from mesos_py.files import DirectoryLock, write_atomically
from mesos_py.metrics import Metrics
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2, agent_pb2_grpc
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import VERSION

if TYPE_CHECKING:
    from agent.containers.docker.launcher import DockerLauncher

log = logs.get("agent")

# At the end: how long to wait for the last updates to be acknowledged, and for the
# master to hear that this agent leaves.
LAST_ACKS_S: Final = 2.0
LAST_WORDS_S: Final = 3.0


class AgentDaemon:
    """One agent, from start to stop.  Made on the event loop that it runs on."""

    def __init__(self, flags: AgentFlags) -> None:
        self.flags = flags
        self.work_dir = flags.work_dir.absolute()
        self.port = 0
        # Done when nothing runs any more; with an error when that was nobody's wish.
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._failure: MesosPyError | None = None
        self._created = SystemClock().now()
        self._recovery = Recovery()
        self._asked = 0
        # The tasks go on without this process.
        self._leaving = False
        # Nothing runs any more, and this agent is not to come back.
        self._over = False
        self._started = False
        self._agent_id = ""
        # Whether the port file is there: the agent has registered since it was started.
        self._shown = False
        self._resources = Resources()
        self._clean_up = contextlib.AsyncExitStack()
        self._shell: Shell | None = None
        self._link: MasterLink | None = None
        self._launcher: Launcher | None = None
        self._docker: DockerLauncher | None = None

    async def start(self) -> None:
        """Lock, bind, wire, and begin to look for the master.

        Raises Conflict, PortInUse and InvalidValue, having left nothing behind.
        """
        flags = self.flags
        told_ip = _told_ip(flags)
        attributes = parse_attributes(flags.attributes)
        isolation.resolve(flags.isolation)
        if flags.enforce_container_disk_quota and "disk" not in flags.isolation:
            reason = "nothing is measured without --isolation disk"
            raise InvalidValue("enforce-container-disk-quota", "true", reason)
        containerizers.check(flags.containerizers)
        detector = parse_master(flags.master)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(detector.close)
            stack.callback(DirectoryLock(self.work_dir).release)
            self._resources = offered(flags.resources, self.work_dir)
            self._checkpoint = Checkpoint(self.work_dir)
            stack.callback(self._end_checkpoint)
            warn_of_taken_ports(self._resources)
            server = rpc.new_server()
            stack.push_async_callback(server.stop, 0.2)
            self.port = rpc.bind(server, flags.ip, flags.port)
            info = pb.AgentInfo(
                hostname=flags.hostname or socket.gethostname(),
                ip=told_ip,
                port=flags.advertise_port or self.port,
                resources=self._resources.to_proto(),
                attributes=attributes,
            )
            await self._wire(stack, server, detector, info)
            self._clean_up = stack.pop_all()
        log.info(
            "agent up",
            ip=flags.ip,
            port=self.port,
            http_port=info.http_port,
            offers=self._resources,
            version=VERSION,
        )

    async def _wire(
        self,
        stack: contextlib.AsyncExitStack,
        server: grpc.aio.Server,
        detector: Detector,
        info: pb.AgentInfo,
    ) -> None:
        flags = self.flags
        executor_server = ExecutorServer(self.work_dir)
        on_loss = OnAgentLoss.WAIT if flags.tasks_on_exit == "keep" else OnAgentLoss.KILL
        stack.push_async_callback(executor_server.close)
        metrics = Metrics(prefix=PREFIX)
        keeper = await self._keeper(stack, metrics)
        http = await self._http(stack, keeper, metrics)
        info.http_port = flags.advertise_http_port or http.port
        work_dir = str(self.work_dir)
        http_endpoint = str(Address(executor_ip(flags.ip, flags.advertise_ip), http.port))
        settings = self._settings(executor_server.endpoint, http_endpoint, _files_url(info))
        core, saved, volumes = self._core(settings, info, metrics)
        shell = self._shell = Shell(core, SystemClock(), metrics, self._checkpoint, self, keeper)
        stack.callback(shell.close)
        files = FileService(
            work_dir, lambda: self._agent_id, core.find_task, keeper.removals, keeper.cuts
        )
        executors = ExecutorStreams(shell)
        fetcher = Fetcher(work_dir, flags.fetcher_limits(), metrics)
        launcher = self._launcher = Launcher(
            work_dir, shell, fetcher, on_loss, flags.recovery_timeout_s
        )
        link = self._link = MasterLink(detector, shell, _backoff(flags), os.urandom(8).hex())
        self._docker = containerizers.docker_launcher(
            dataclasses.asdict(flags), settings, shell, fetcher, metrics
        )
        if self._agent_id:
            launcher.isolating = Isolating(self._isolators())
        stack.push_async_callback(self._end_launcher, launcher)
        prober = prober_of(stack, core, shell, launcher, self._docker)
        router = Router(launcher, self._docker)
        nested = self._nested(shell, launcher)
        shell.wire(link, router, executors, files, prober, nested, volumes)
        docker_saved, others = containerizers.split(saved, flags.containerizers)
        if self._docker is not None:
            # An agent that comes back has other tasks to see to, and waits for dockerd.
            await self._docker.start(required=not self._agent_id)
        await launcher.start(others)
        keeper.keep(core.state.containers)
        await executor_server.start(ExecutorService(executors))
        if self._docker is not None and self._agent_id:
            self._docker.recover(self._agent_id, docker_saved)
        shell.executors_welcome()
        http.executors.open(executors)
        used = used_by(launcher, self._docker)
        observe(stack, server, core, used, metrics, http, self._told(), nested=nested)
        agent_pb2_grpc.add_AgentFilesServicer_to_server(files, server)
        await server.start()
        self._started = True
        linking = asyncio.create_task(link.run())
        linking.add_done_callback(self._link_ended)
        stack.push_async_callback(_cancelled, linking)

    def _nested(self, shell: Shell, launcher: Launcher) -> Nested:
        allowed = Allowed(self.flags.nested_containers)
        state, end = shell.core.state, shell.container_unwanted
        return Nested(state, launcher, end, self._is_docker, allowed)

    def _is_docker(self, container_id: str) -> bool:
        return self._docker is not None and container_id in self._docker

    async def _keeper(self, stack: contextlib.AsyncExitStack, metrics: Metrics) -> SandboxKeeper:
        limits = self.flags.sandbox_limits()
        keeper = SandboxKeeper(self.work_dir, limits, lambda: self._agent_id, metrics)
        stack.push_async_callback(keeper.close)
        return keeper

    async def _http(
        self, stack: contextlib.AsyncExitStack, keeper: SandboxKeeper, metrics: Metrics
    ) -> AgentHttp:
        http = AgentHttp(self.work_dir, keeper.files, self.flags)
        stack.push_async_callback(http.close)
        await http.serve(self.flags.ip, self.flags.http_port)
        http.count(metrics)
        return http

    def _told(self) -> Told:
        flags = self.flags
        return Told(
            mesos_flags.as_texts(flags),
            self._created,
            self._recovery,
            flags.fetcher_cache_size_bytes,
        )

    def _settings(self, executor_endpoint: str, http_endpoint: str, files_url: str) -> Settings:
        flags = self.flags
        return Settings(
            work_dir=str(self.work_dir),
            executor_endpoint=executor_endpoint,
            http_endpoint=http_endpoint,
            files_url=files_url,
            executor_registration_timeout_s=flags.executor_registration_timeout_s,
            executor_shutdown_grace_s=flags.executor_shutdown_grace_period_s,
            max_completed_tasks=flags.max_completed_executors,
            executor_reregistration_timeout_s=flags.executor_reregistration_timeout_s,
            recovery_timeout_s=flags.recovery_timeout_s if flags.tasks_on_exit == "keep" else 0.0,
            boot_id=boot_id(),
            provided=isolation.provided(isolation.resolve(flags.isolation))
            | containerizers.provided(flags.containerizers),
            default_executor=command_line(flags.fetcher_limits(), str(self.work_dir)),
            python_path=python_path(),
        )

    def _core(
        self, settings: Settings, info: pb.AgentInfo, metrics: Metrics
    ) -> tuple[AgentCore, list[SavedContainer], VolumeKeeper]:
        """It goes on from the checkpoint; the containers of the earlier run to look for."""
        store = VolumeStore(settings.work_dir)
        core = AgentCore(settings, info, RandomIds(), store)
        saved = self._restored(core, info, store)
        eraser = Eraser(store, metrics)
        if store.used:
            # What the earlier run did not come to.
            eraser.erase()
        return core, saved, VolumeKeeper(VolumeLinks(settings.work_dir), eraser)

    def _restored(
        self, core: AgentCore, info: pb.AgentInfo, store: VolumeStore
    ) -> list[SavedContainer]:
        now = SystemClock().now()
        restored = core.restore(self._checkpoint.read(), now)
        for text in restored.damaged:
            log.error("damaged record", record=text)
        self._recovery.errors = len(restored.damaged)
        for place in store.recover(*core.saved_volumes()):
            log.warning("no volume is known for what is there; it is left alone", path=place)
        if restored.info is None:
            return []
        self._agent_id = restored.info.id.value
        same_boot = restored.boot_id == boot_id()
        saved = core.saved_containers() if same_boot else []
        require_compatible(restored.info, info, saved, core.state.reserved)
        if not same_boot:
            core.on_rebooted(now)
        self._recovery.seconds = SystemClock().now().monotonic_s - now.monotonic_s
        log.info("recovered", agent=self._agent_id, containers=len(saved), rebooted=not same_boot)
        return saved

    async def _end_launcher(self, launcher: Launcher) -> None:
        if not self._started and not self._asked and self.flags.tasks_on_exit == "keep":
            self._leaving = True  # a start that fails is no reason to end what goes on
        if self._docker is not None:
            await (self._docker.leave() if self._leaving else self._docker.close())
        if self._leaving:
            await launcher.leave()
            return
        await launcher.close()
        if self._asked:
            # Nothing is left that anybody could ask for.
            self._over = True

    def _end_checkpoint(self) -> None:
        """When nobody writes any more."""
        if not self._over:
            self._checkpoint.close()
            return
        try:
            self._checkpoint.end()
        except CheckpointUnwritable as error:
            log.error("checkpoint cannot be written; the next start is the same agent", error=error)

    # ---- What the shell tells (ShellEvents) -----------------------------------------

    def registered(self, agent_id: str) -> None:
        if self._shown or not agent_id:
            return
        try:
            if not self._agent_id:
                self._agent_id = agent_id
                made = self._isolators()
                assert self._launcher is not None
                for each in made:
                    each.recover(())
                self._launcher.isolating = Isolating(made)
                if self._docker is not None:
                    self._docker.recover(agent_id, ())
            self._shown = True
            if self.flags.port_file is not None:
                write_atomically(self.flags.port_file, f"{self.port}\n")
        except MesosPyError as error:
            self._fail(error)
        except OSError as error:
            reason = error.strerror or str(error)
            self._fail(InvalidValue("port-file", str(self.flags.port_file), reason))

    def _isolators(self) -> list[isolation.Isolator]:
        facts = isolation.AgentFacts(
            self._agent_id,
            str(self.work_dir),
            self._resources.plain,
            dataclasses.asdict(self.flags),
        )
        return [factory(facts) for factory in isolation.resolve(self.flags.isolation)]

    def must_end(self, reason: str, wanted: bool) -> None:
        if not wanted:
            self._fail(Refused(reason))
        elif not self.ended.done():
            self.ended.set_result(None)

    def sent_away(self, reason: str) -> None:
        """The id stays in the checkpoint, so that a supervisor that starts the agent again
        does not make it a new one: who wants that forgets this one (`--recover cleanup`).
        """
        if self._failure is None:
            text = f"the master has sent this agent away: {reason}; its tasks have ended"
            self._failure = Refused(f"{text} (`--recover cleanup` makes it a new agent)")
            log.error("agent must end", error=self._failure)
        self._leaving = True
        if not self.ended.done():
            self.ended.set_result(None)

    def _link_ended(self, linking: asyncio.Task[None]) -> None:
        if not linking.cancelled() and (error := linking.exception()) is not None:
            log.error("link to the master broke", error=error)
            self._fail(InternalError(f"link to the master: {type(error).__name__}: {error}"))

    def _fail(self, error: MesosPyError) -> None:
        """The agent cannot go on: its tasks end, and then it does, with `error`."""
        if self._failure is None:
            log.error("agent must end", error=error)
            self._failure = error
            self.end()

    # ---- The end ----------------------------------------------------------------------

    def end(self) -> None:
        """As `--tasks-on-exit` says: leave the tasks to the next run, or stop."""
        if self.flags.tasks_on_exit == "end" or self._asked:
            self.stop()
            return
        self._leaving = True
        log.info("agent leaving, tasks go on")
        if not self.ended.done():
            self.ended.set_result(None)

    def stop(self) -> None:
        """End all tasks with their grace, then the agent; asked twice: at once."""
        self._asked += 1
        if self._shell is None:
            if not self.ended.done():
                self.ended.set_result(None)
            return
        log.info("agent stopping", at_once=self._asked > 1)
        self._shell.stop(at_once=self._asked > 1)

    async def close(self) -> None:
        """Tell the master, and leave nothing running.  Raises what made the agent end."""
        if self._leaving:
            if self._shell is not None:
                self._shell.close()
        elif self._shell is not None and self._link is not None and self._asked == 1:
            await self._shell.all_acknowledged(LAST_ACKS_S)
            leaving = agent_pb2.Call.Unregister(message="the agent was stopped")
            last = agent_pb2.Call(type=agent_pb2.Call.UNREGISTER, unregister=leaving)
            await self._link.finish(last, LAST_WORDS_S)
        if self.flags.port_file is not None and self._shown:
            self.flags.port_file.unlink(missing_ok=True)
        await self._clean_up.aclose()
        if self._failure is not None:
            raise self._failure


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _files_url(info: pb.AgentInfo) -> str:
    """Where others can read what is in sandboxes."""
    return f"http://{Address(info.ip or info.hostname, info.http_port)}/files"


def _backoff(flags: AgentFlags) -> Backoff:
    first_s, cap_s = flags.registration_backoff_s, rpc.LINK_TIMEOUTS.backoff_cap_s
    return Backoff(first_s, max(first_s, cap_s), random.random)


def _told_ip(flags: AgentFlags) -> str | None:
    """The address that the master is told; None: it goes by the host name.

    Raises InvalidValue naming the flag.
    """
    for name, text in (("ip", flags.ip), ("advertise-ip", flags.advertise_ip)):
        try:
            address = ipaddress.ip_address(text) if text is not None else None
        except ValueError:
            raise InvalidValue(name, text, "is no IP address") from None
        if name == "advertise-ip" and address is not None and address.is_unspecified:
            raise InvalidValue(name, text, "is no address that others could reach")
    if flags.advertise_ip is not None:
        return flags.advertise_ip
    return None if ipaddress.ip_address(flags.ip).is_unspecified else flags.ip


async def serve(flags: AgentFlags) -> None:
    """Run an agent until SIGTERM, SIGINT or SIGUSR1, or until it may not go on (MesosPyError)."""
    if flags.recover in ("cleanup", "forget"):
        all_flags = dataclasses.asdict(flags)
        await cleanup.clean_up(
            flags.work_dir.absolute(),
            flags.isolation,
            all_flags,
            keep_reserved=flags.recover == "cleanup",
        )
        return
    daemon = AgentDaemon(flags)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, daemon.end)
    for number in (signal.SIGINT, signal.SIGUSR1):
        loop.add_signal_handler(number, daemon.stop)
    try:
        await daemon.start()
        await daemon.ended
    finally:
        await daemon.close()
    log.info("agent ended", pid=os.getpid())
