"""The master daemon: wiring, start and end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
from pathlib import Path

from master.api.agents import AgentChannels
from master.api.front import Front, Leading, OperatorFront
from master.api.http.front import HttpFront
from master.api.http.numbers import http_families
from master.api.numbers import Numbers
from master.api.turns import Turns
from master.flags import MasterFlags, parse_weights
from master.leadership import Leadership
from master.registry.base import Storage
from master.registry.memory import MemoryStorage
from master.registry.sqlite import SqliteStorage
from master.term import Mandate, Term, make_allocator
from mesos_py import garbage, logs, mesos_flags, rpc
from mesos_py.address import Address
from mesos_py.clock import SystemClock
from mesos_py.election import Contender, Detector, StandaloneContender
from mesos_py.election.zookeeper.layout import CAPABILITIES
from mesos_py.election.zookeeper.url import ZooKeeperUrl, parse_url
from mesos_py.errors import InvalidValue
from mesos_py.files import DirectoryLock, write_atomically
from mesos_py.http.auth import Credentials, read_credentials
from mesos_py.http.server import Limits
from mesos_py.metrics import rendered
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import MESOS_VERSION, VERSION

log = logs.get("master")


def master_info(master_id: str, hostname: str, ip: str, port: int, grpc_port: int) -> pb.MasterInfo:
    """What others are told of a master; `port` is that of HTTP, as in Mesos."""
    address = ipaddress.ip_address(ip)
    return pb.MasterInfo(
        id=master_id,
        # As Mesos writes it: the bytes in network order, read as a little-endian number.
        ip=int.from_bytes(address.packed, "little") if address.version == 4 else 0,
        port=port,
        pid=f"master@{Address(ip, port)}",
        hostname=hostname,
        version=MESOS_VERSION,
        address=pb.Address(hostname=hostname, ip=ip, port=port),
        capabilities=[pb.MasterInfo.Capability(type=each) for each in CAPABILITIES],
        grpc_port=grpc_port,
    )


class MasterDaemon:
    """One master, from start to stop, whether it leads or not."""

    def __init__(self, flags: MasterFlags) -> None:
        self.flags = flags
        self.port = self.http_port = 0
        self._running: asyncio.Task[None] | None = None
        self._started_wall_s = 0.0
        self._hostname = flags.hostname or socket.gethostname()
        self.http: HttpFront | None = None
        self._zk: ZooKeeperUrl | None = None
        self._credentials: Credentials | None = None
        self._channels = AgentChannels()
        self._leading = Leading()
        self._turns: Turns | None = None
        self._leadership: Leadership | None = None
        self._clean_up = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Bind, wire and serve; without ZooKeeper, lead.

        Raises PortInUse, Conflict and InvalidValue, having left nothing behind.
        """
        flags = self.flags
        self._check()
        async with contextlib.AsyncExitStack() as stack:
            if flags.work_dir is not None:
                stack.callback(DirectoryLock(flags.work_dir).release)
            front = Front(flags.front)
            self._turns = front.turns
            self.port = front.bind(flags.ip, flags.port)
            self._leading.own = Address(self._told_ip(), flags.advertise_port or self.port)
            # Before it stands for election: what is told there holds from then on.
            http = await self._serve_http(stack)
            self._started_wall_s = SystemClock().now().wall_s
            leadership = self._leadership = Leadership(
                self._leading,
                self._info,
                self._make_contender,
                self._open_storage,
                self._make_term,
            )
            numbers, told = Numbers(leadership), mesos_flags.as_texts(flags)
            front.serve(self._leading, OperatorFront(self._leading, told, numbers.local))
            http.add_operators(told, lambda: self._rendered(numbers))
            stack.push_async_callback(self._channels.close)
            await self._serve_metrics(stack, numbers)
            stack.push_async_callback(front.server.stop, rpc.LINK_TIMEOUTS.grace_s)
            await front.server.start()
            await self._begin(stack, leadership)
            self._clean_up = stack.pop_all()
        log.info(
            "master ready", ip=flags.ip, port=self.port, http_port=self.http_port, version=VERSION
        )
        self._tell_port(flags.http_port_file, self.http_port)
        # Last: who waits for it may look at all others.
        self._tell_port(flags.port_file, self.port)

    def _tell_port(self, file: Path | None, port: int) -> None:
        if file is not None:
            write_atomically(file, f"{port}\n")
            self._clean_up.callback(file.unlink, missing_ok=True)

    def _check(self) -> None:
        """All that can be known to be wrong before anything is begun."""
        flags = self.flags
        for name, ip in (("--ip", flags.ip), ("--advertise-ip", flags.advertise_ip)):
            try:
                given = ipaddress.ip_address(ip) if ip is not None else None
            except ValueError:
                raise InvalidValue(name, ip, "is no IP address") from None
            if given is not None and given.is_unspecified and name == "--advertise-ip":
                raise InvalidValue(name, ip, "is no address that others could reach")
        if flags.zk is not None:
            self._zk = parse_url(flags.zk, "--zk")
            if ipaddress.ip_address(self._told_ip()).is_unspecified:
                reason = "is what others would be told; give --advertise-ip"
                raise InvalidValue("--ip", flags.ip, reason)
        if flags.credentials is not None:
            self._credentials = read_credentials(flags.credentials, "--credentials")
        make_allocator(flags, parse_weights(flags.weights))

    async def _begin(self, stack: contextlib.AsyncExitStack, leadership: Leadership) -> None:
        """Stand for election; alone, wait until it is won."""
        detector: Detector | None = None
        if self._zk is not None:
            from mesos_py.election.zookeeper.detector import ZooKeeperDetector

            detector = ZooKeeperDetector(self._zk, self.flags.zk_session_timeout_s)
            following = asyncio.create_task(self._follow(detector))
            stack.callback(following.cancel)
        running = self._running = asyncio.create_task(leadership.run())

        async def stop() -> None:
            await leadership.stop()
            # Together: without ZooKeeper each takes as long as it is allowed to.
            closing = [running] if detector is None else [running, detector.close()]
            await asyncio.gather(*closing, return_exceptions=True)

        stack.push_async_callback(stop)
        if self._zk is None:
            led = asyncio.create_task(leadership.has_led.wait())
            try:
                await asyncio.wait({running, led}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                led.cancel()
            if running.done():
                running.result()

    async def _follow(self, detector: Detector) -> None:
        """Know who leads, for those who come to the wrong one."""
        async for leader in detector.watch():
            self._leading.detected = leader
            log.info("leader detected", leader=str(leader) if leader is not None else "none")

    # ---- What a leadership is made of --------------------------------------------

    def _told_ip(self) -> str:
        return self.flags.advertise_ip or self.flags.ip

    def _info(self, master_id: str) -> pb.MasterInfo:
        grpc_port = self.flags.advertise_port or self.port
        port = self.flags.advertise_http_port or self.http_port
        return master_info(master_id, self._hostname, self._told_ip(), port, grpc_port)

    def _make_contender(self) -> Contender:
        if self._zk is None:
            return StandaloneContender()
        # Only who uses ZooKeeper pays for loading its client.
        from mesos_py.election.zookeeper.contender import ZooKeeperContender

        return ZooKeeperContender(self._zk, self.flags.zk_session_timeout_s)

    def _open_storage(self) -> Storage:
        if self._zk is not None:
            from master.registry.zookeeper import open_storage

            return open_storage(self._zk, self.flags.zk_session_timeout_s)
        if self.flags.work_dir is not None:
            return SqliteStorage(self.flags.work_dir)
        return MemoryStorage()

    def _make_term(self, mandate: Mandate) -> Term:
        durable = self._zk is not None or self.flags.work_dir is not None
        return Term(
            self.flags,
            mandate,
            self._channels,
            self._started_wall_s,
            durable=durable,
            turns=self._turns,
        )

    # ---- HTTP, metrics and the end -------------------------------------------------

    async def _serve_http(self, stack: contextlib.AsyncExitStack) -> HttpFront:
        """Raises PortInUse."""
        flags = self.flags
        limits = Limits(
            body_bytes=flags.http_max_body,
            connections=flags.http_max_connections,
            silence_s=flags.http_silence_timeout_s,
        )
        front = HttpFront(
            self._leading, limits, self._credentials, echoed=flags.http_heartbeat_after_event
        )
        self.http = front
        self.http_port = await front.server.start(flags.ip, flags.http_port)
        stack.push_async_callback(front.server.close)
        told = flags.advertise_http_port or self.http_port
        self._leading.own_http = Address(self._hostname, told)
        return front

    async def _serve_metrics(self, stack: contextlib.AsyncExitStack, numbers: Numbers) -> None:
        """For Prometheus, if a port was given.  Raises PortInUse."""
        if self.flags.metrics_port is None:
            return
        from mesos_py.exposition import MetricsServer

        async def render() -> bytes:
            return self._rendered(numbers)

        server = MetricsServer(render)
        await server.start(self.flags.ip, self.flags.metrics_port)
        stack.push_async_callback(server.close)

    def _rendered(self, numbers: Numbers) -> bytes:
        """The page of all numbers."""
        http = http_families(self.http.server) if self.http is not None else []
        return rendered([*numbers.families(), *http])

    async def run_until(self, ended: asyncio.Event) -> None:
        """Until `ended` is set.  Raises what makes it impossible to go on."""
        assert self._running is not None, "start() was not awaited"
        asked = asyncio.create_task(ended.wait())
        await asyncio.wait({asked, self._running}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if self._running.done():
            self._running.result()

    async def stop(self) -> None:
        """Stop serving: peers are told by the end of their streams, and come back."""
        await self._clean_up.aclose()


async def serve(flags: MasterFlags) -> None:
    """Run a master until SIGTERM or SIGINT.  Raises what makes it impossible to go on."""
    daemon = MasterDaemon(flags)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        if await _started(daemon, ended):
            garbage.settle()
            await daemon.run_until(ended)
        log.info("master stopping", pid=os.getpid())
    finally:
        await daemon.stop()


async def _started(daemon: MasterDaemon, ended: asyncio.Event) -> bool:
    """Start it; False when `ended` is set before.  A registry that does not answer is
    waited for as long as it takes."""
    starting = asyncio.create_task(daemon.start())
    asked = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait({starting, asked}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            return True
        return False
    finally:
        for each in (starting, asked):
            each.cancel()
        await asyncio.gather(starting, asked, return_exceptions=True)
