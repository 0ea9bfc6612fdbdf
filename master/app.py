"""The master daemon: wiring, start and end."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
import uuid
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
from master.core.master import Master
from master.flags import MasterFlags, options_of, parse_weights
from mesos_py import config, garbage, logs, plugins, rpc
from mesos_py.clock import SystemClock
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

ALLOCATORS: Final = {"drf": "master.allocator.drf:DrfAllocator"}


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
