"""The master daemon: flags, wiring, start and end."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc.aio

from master.allocator.base import Allocator, AllocatorOptions
from master.api.agents import AgentChannels, UsageRelay
from master.api.exporter import families
from master.api.files import LogRelay
from master.api.links import Links
from master.api.operator import OperatorService
from master.api.shell import Shell
from master.api.streams import add_services
from master.core.cluster import Options
from master.core.master import Master
from mesos_py import config, garbage, logs, plugins, rpc
from mesos_py.clock import SystemClock
from mesos_py.config import at_least, flag
from mesos_py.election.standalone import StandaloneContender
from mesos_py.errors import InvalidValue
from mesos_py.files import DirectoryLock, write_atomically
from mesos_py.ids import MasterIds
from mesos_py.metrics import rendered
from mesos_py.v1 import operator_pb2_grpc
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import VERSION

if TYPE_CHECKING:
    from mesos_py.exposition import MetricsServer

log = logs.get("master")

ENV_PREFIX: Final = "MESOS_PY_MASTER_"
ALLOCATORS: Final = {"drf": "master.allocator.drf:DrfAllocator"}


@dataclass(frozen=True)
class MasterFlags:
    """What `mesos-py master` can be told."""

    ip: str = flag(
        "127.0.0.1",
        kind=config.text,
        check=config.not_empty,
        help="Address to listen on; agents and schedulers must be able to reach it",
    )
    port: int = flag(5050, kind=config.port_number, help="Port to listen on; 0 picks one")
    hostname: str | None = flag(
        None, kind=config.text, help="Name that others are shown (default: this machine's)"
    )
    work_dir: Path | None = flag(
        None,
        kind=config.path,
        help="Directory of this master, which no second one may use; it keeps its lock there",
    )
    port_file: Path | None = flag(
        None, kind=config.path, help="File that gets the port in it once the master is ready"
    )
    metrics_port: int | None = flag(
        None,
        kind=config.port_number,
        help="Port to serve /metrics for Prometheus on; 0 picks one (default: not served)",
    )
    allocator: str = flag(
        "drf", kind=config.text, help="Who decides which framework is offered what"
    )
    allocation_window_s: float = flag(
        0.01,
        kind=config.duration_s,
        check=at_least(0),
        help="Changes within this time after the first are allocated together",
    )
    offer_timeout_s: float = flag(
        30.0,
        kind=config.duration_s,
        check=at_least(0),
        help="Offers that are not answered within this time are rescinded; 0: never",
    )
    weights: tuple[str, ...] = flag(
        (), kind=config.text_list, help="Weights of roles, as role=2.0,other=0.5 (default 1)"
    )
    heartbeat_s: float = flag(
        rpc.LINK_TIMEOUTS.heartbeat_s,
        kind=config.duration_s,
        check=at_least(0.05),
        help="Schedulers hear from the master at least this often",
    )
    agent_ping_s: float = flag(
        rpc.LINK_TIMEOUTS.agent_ping_s,
        kind=config.duration_s,
        check=at_least(0.05),
        name="agent-ping-interval",
        help="Time between two pings of an agent",
    )
    max_agent_ping_timeouts: int = flag(
        rpc.LINK_TIMEOUTS.max_agent_ping_timeouts,
        kind=config.integer,
        check=at_least(1),
        help="An agent that misses so many pings in a row is unreachable",
    )
    agent_reregister_timeout_s: float = flag(
        75.0,
        kind=config.duration_s,
        check=at_least(0),
        help="An agent whose link broke is unreachable if it is not back by then",
    )
    max_completed_frameworks: int = flag(
        50, kind=config.integer, check=at_least(0), help="How many ended frameworks to remember"
    )
    max_completed_tasks_per_framework: int = flag(
        1000, kind=config.integer, check=at_least(0), help="How many ended tasks of each"
    )
    max_unreachable_tasks_per_framework: int = flag(
        1000, kind=config.integer, check=at_least(0), help="How many tasks on unreachable agents"
    )
    max_peer_queue_bytes: int = flag(
        64 * 1024 * 1024,
        kind=config.size_bytes,
        check=at_least(1024),
        help="A peer that lets more than this queue up is cut off",
    )
    log_level: str = flag(
        "info", kind=config.choice("debug", "info", "warning", "error"), help="What to log"
    )
    log_format: str = flag("text", kind=config.choice("text", "json"), help="How to log")


def parse_weights(items: tuple[str, ...]) -> dict[str, float]:
    """`("a=2", "b=0.5")` as numbers.  Raises InvalidValue."""
    weights: dict[str, float] = {}
    for item in items:
        role, equals, text = item.partition("=")
        try:
            weights[role.strip()] = float(text)
        except ValueError:
            equals = ""
        if not equals:
            raise InvalidValue("--weights", item, "must be ROLE=NUMBER")
    return weights


def options_of(flags: MasterFlags) -> Options:
    return Options(
        offer_timeout_s=flags.offer_timeout_s,
        heartbeat_s=flags.heartbeat_s,
        agent_ping_s=flags.agent_ping_s,
        agent_max_missed_pings=flags.max_agent_ping_timeouts,
        agent_timeout_s=flags.agent_reregister_timeout_s,
        max_completed_frameworks=flags.max_completed_frameworks,
        max_completed_tasks=flags.max_completed_tasks_per_framework,
        max_unreachable_tasks=flags.max_unreachable_tasks_per_framework,
        allocation_window_s=flags.allocation_window_s,
        protocol_version=rpc.PROTOCOL_VERSION,
    )


def master_info(master_id: str, hostname: str, ip: str, port: int) -> pb.MasterInfo:
    address = ipaddress.ip_address(ip)
    return pb.MasterInfo(
        id=master_id,
        # As Mesos writes it: the bytes in network order, read as a little-endian number.
        ip=int.from_bytes(address.packed, "little") if address.version == 4 else 0,
        port=port,
        hostname=hostname,
        version=VERSION,
        address=pb.Address(hostname=hostname, ip=ip, port=port),
    )


class MasterDaemon:
    """One master, from start to stop."""

    def __init__(self, flags: MasterFlags) -> None:
        self.flags = flags
        self._server: grpc.aio.Server | None = None
        self._links = Links(max_items=200_000, max_bytes=flags.max_peer_queue_bytes)
        self._channels = AgentChannels()
        self._metrics: MetricsServer | None = None
        self._shell: Shell | None = None
        self._lock: DirectoryLock | None = None
        self.port = 0

    async def start(self) -> None:
        """Bind, wire and serve.  Raises PortInUse, Conflict and InvalidValue before serving."""
        flags = self.flags
        if flags.work_dir is not None:
            self._lock = DirectoryLock(flags.work_dir)
        weights = parse_weights(flags.weights)
        factory = plugins.resolve("mesos_py.allocators", ALLOCATORS, flags.allocator, "allocator")
        allocator: Allocator = factory(AllocatorOptions(weights=weights))
        try:
            ipaddress.ip_address(flags.ip)
        except ValueError:
            raise InvalidValue("--ip", flags.ip, "is no IP address") from None
        server = self._server = rpc.new_server()
        self.port = rpc.bind(server, flags.ip, flags.port)
        clock = SystemClock()
        hostname = flags.hostname or socket.gethostname()
        master_id = str(uuid.uuid4())
        core = Master(
            options_of(flags),
            master_info(master_id, hostname, flags.ip, self.port),
            MasterIds(master_id, lambda: uuid.uuid4().bytes),
            self._links,
            allocator,
        )
        shell = self._shell = Shell(core, clock)
        for role, weight in weights.items():
            core.set_weight(role, weight, clock.now())
        operator = OperatorService(
            shell,
            LogRelay(self._channels),
            UsageRelay(self._channels),
            config.as_texts(flags),
            clock.now().wall_s,
        )
        add_services(server, shell, self._links, StandaloneContender.EPOCH)
        operator_pb2_grpc.add_OperatorServiceServicer_to_server(operator, server)
        await self._serve_metrics(shell)
        await server.start()
        log.info("master ready", id=master_id, ip=flags.ip, port=self.port, version=VERSION)
        if flags.port_file is not None:
            write_atomically(flags.port_file, f"{self.port}\n")

    async def _serve_metrics(self, shell: Shell) -> None:
        """For Prometheus, if a port was given.  Raises PortInUse."""
        if self.flags.metrics_port is None:
            return
        from mesos_py.exposition import MetricsServer

        async def render() -> bytes:
            return rendered(families(shell.core.cluster, shell.failures))

        server = MetricsServer(render)
        await server.start(self.flags.ip, self.flags.metrics_port)
        self._metrics = server

    async def stop(self) -> None:
        """Stop serving: peers are told by the end of their streams, and come back."""
        if self._shell is not None:
            self._shell.stop()
        self._links.close_all("the master is stopping")
        if self._server is not None:
            await self._server.stop(rpc.LINK_TIMEOUTS.grace_s)
        await self._channels.close()
        if self._metrics is not None:
            await self._metrics.close()
        if self.flags.port_file is not None and self.port:
            self.flags.port_file.unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.release()


async def serve(flags: MasterFlags) -> None:
    """Run a master until SIGTERM or SIGINT."""
    daemon = MasterDaemon(flags)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        await daemon.start()
        garbage.settle()
        await ended.wait()
        log.info("master stopping", pid=os.getpid())
    finally:
        await daemon.stop()
