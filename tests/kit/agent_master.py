"""A small master for agents' tests, and the agent daemon as a process.

async with FakeMaster() as master, running_agent(master, tmp_path) as agent:
    master.run(command("t", "exit 3"))
    status = await master.status("t", pb.TASK_FAILED)
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import grpc.aio

from mesos_py import rpc
from mesos_py.states import short_name
from mesos_py.v1 import agent_pb2, agent_pb2_grpc
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, framework_info
from tests.kit.waiting import gone

LIMIT_S: Final = 90.0
Call = agent_pb2.Call
Event = agent_pb2.Event


class FakeMaster(agent_pb2_grpc.AgentServiceServicer):
    """Takes one agent at a time; keeps what it says; acknowledges by itself if `acks`."""

    def __init__(
        self,
        *,
        acks: bool = True,
        epoch: int = 1,
        ping_timeout_s: float = 30,
        agent_id: str = "A1",
    ) -> None:
        self.agent_id = agent_id
        self.acks = acks
        self.epoch = epoch
        self.ping_timeout_s = ping_timeout_s
        self.port = 0
        self.framework = framework_info()
        # Answers to REGISTER that are not REGISTERED, and errors that end the stream.
        self.refusal: Event.Refused | None = None
        self.error: Exception | None = None
        # What is said right behind REGISTERED.
        self.greeting: Event | None = None
        self.registrations: list[Call.Register] = []
        self.calls: list[Call] = []
        self._server: grpc.aio.Server | None = None
        self._stream: asyncio.Queue[agent_pb2.Events | None] | None = None
        self._news = asyncio.Condition()
        self._pings = itertools.count(1000)

    async def __aenter__(self) -> FakeMaster:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = rpc.new_server()
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self, self._server)
        self.port = rpc.bind(self._server, "127.0.0.1", self.port)
        await self._server.start()

    async def stop(self) -> None:
        """Go away; `start` comes back on the same port."""
        self.hang_up()
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def hang_up(self) -> None:
        if self._stream is not None:
            self._stream.put_nowait(None)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    # ---- Serving ---------------------------------------------------------------------

    async def Connect(self, requests: Any, context: Any) -> AsyncIterator[agent_pb2.Events]:
        if self.error is not None:
            await rpc.abort(context, self.error)
        stream: asyncio.Queue[agent_pb2.Events | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read(requests, stream))
        try:
            ended = False
            while not ended:
                waiting = [await stream.get()]
                while not stream.empty():
                    waiting.append(stream.get_nowait())
                ended = None in waiting
                told = itertools.takewhile(lambda each: each is not None, waiting)
                # As a master does: what has come together goes out together.
                for epoch, group in itertools.groupby(filter(None, told), lambda each: each.epoch):
                    events = [event for each in group for event in each.events]
                    yield agent_pb2.Events(events=events, epoch=epoch)
        finally:
            reading.cancel()
            if self._stream is stream:
                self._stream = None

    async def _read(self, requests: Any, stream: asyncio.Queue[Any]) -> None:
        async for message in requests:
            for call in message.calls:
                if call.type == Call.REGISTER:
                    self._register(call.register, stream)
                else:
                    self._take(call)
            async with self._news:
                self._news.notify_all()
        stream.put_nowait(None)

    def _register(self, call: Call.Register, stream: asyncio.Queue[Any]) -> None:
        self.registrations.append(call)
        if self.refusal is not None:
            answer = Event(type=Event.REFUSED, refused=self.refusal)
            stream.put_nowait(agent_pb2.Events(events=[answer], epoch=self.epoch))
            stream.put_nowait(None)
            return
        self._stream = stream
        registered = Event.Registered(
            agent_id=pb.AgentID(value=call.agent_info.id.value or self.agent_id),
            ping_timeout_seconds=self.ping_timeout_s,
        )
        self.send(Event(type=Event.REGISTERED, registered=registered))
        if self.greeting is not None:
            self.send(self.greeting)

    def _take(self, call: Call) -> None:
        self.calls.append(call)
        if call.type == Call.UPDATE and self.acks and call.update.status.uuid:
            self.acknowledge(call.update.status)
        if call.type == Call.UNREGISTER:
            self.hang_up()

    # ---- Orders ----------------------------------------------------------------------

    def send(self, *events: Event) -> None:
        assert self._stream is not None, "no agent is registered"
        self._stream.put_nowait(agent_pb2.Events(events=events, epoch=self.epoch))

    def run(self, *tasks: pb.TaskInfo) -> None:
        self.send(self.run_order(*tasks))

    def run_order(self, *tasks: pb.TaskInfo) -> Event:
        order = Event.RunTasks(framework_info=self.framework, tasks=tasks)
        return Event(type=Event.RUN_TASKS, run_tasks=order)

    def run_group(self, *tasks: pb.TaskInfo, new: str = "ex") -> None:
        order = Event.RunTasks(framework_info=self.framework, tasks=tasks, group=True)
        order.new_executors.add(value=new)
        self.send(Event(type=Event.RUN_TASKS, run_tasks=order))

    def kill(self, task_id: str, grace_s: float | None = None) -> None:
        order = Event.KillTask(framework_id=self.framework.id, task_id=pb.TaskID(value=task_id))
        if grace_s is not None:
            order.kill_policy.grace_period.nanoseconds = int(grace_s * 1e9)
        self.send(Event(type=Event.KILL_TASK, kill_task=order))

    def acknowledge(self, status: pb.TaskStatus) -> None:
        order = Event.Acknowledge(
            framework_id=self.framework.id, task_id=status.task_id, uuid=status.uuid
        )
        if self._stream is not None:
            self.send(Event(type=Event.ACKNOWLEDGE, acknowledge=order))

    def ping(self, sequence: int = 1) -> None:
        self.send(Event(type=Event.PING, ping=Event.Ping(sequence=sequence)))

    async def heard(self) -> None:
        """Wait until the agent has all that was sent to it: acknowledgements, orders."""
        sequence = next(self._pings)
        self.ping(sequence)
        await self.until(
            lambda: any(
                call.type == Call.PONG and call.pong.sequence == sequence for call in self.calls
            )
        )

    # ---- What was said ---------------------------------------------------------------

    async def until(self, done: Callable[[], Any], limit_s: float = LIMIT_S) -> Any:
        """Wait for something among what agents said to be so; its value."""
        async with asyncio.timeout(limit_s), self._news:
            while not (value := done()):
                await self._news.wait()
            return value

    def updates(self, task_id: str) -> list[pb.TaskStatus]:
        return [
            call.update.status
            for call in self.calls
            if call.type == Call.UPDATE and call.update.status.task_id.value == task_id
        ]

    def states(self, task_id: str) -> list[str]:
        return [short_name(status.state) for status in self.updates(task_id)]

    async def status(self, task_id: str, state: int) -> pb.TaskStatus:
        """Wait for the task to be reported in `state`."""

        def found() -> pb.TaskStatus | None:
            return next((s for s in self.updates(task_id) if s.state == state), None)

        try:
            status: pb.TaskStatus = await self.until(found)
        except TimeoutError:
            raise AssertionError(f"{task_id}: {self.states(task_id)}") from None
        return status

    async def call(self, kind: int) -> Call:
        """Wait for a call of this type."""
        found: Call = await self.until(
            lambda: next((call for call in self.calls if call.type == kind), None)
        )
        return found

    async def registered(self, times: int = 1) -> Call.Register:
        """Wait for so many registrations; the last of them."""
        await self.until(lambda: len(self.registrations) >= times)
        return self.registrations[times - 1]


class AgentProcess:
    """`mesos-py agent` as a process of its own."""

    # Of all agents so far.
    work_dirs: ClassVar[set[Path]] = set()

    def __init__(
        self, master: str, work_dir: Path, *flags: str, wrapper: Sequence[str] = ()
    ) -> None:
        """`wrapper`: words before the agent's own, which lead to it by exec."""
        self.work_dirs.add(work_dir)
        self.work_dir = work_dir
        self.port_file = work_dir.with_name(f"{work_dir.name}.port")
        self.log = work_dir.with_name(f"{work_dir.name}.log")
        argv = [sys.executable, "-m", "mesos_py.cli", "agent", "--master", master]
        argv += ["--work-dir", str(work_dir), "--port-file", str(self.port_file), "--port", "0"]
        argv += ["--http-port", "0"]
        argv += ["--resources", "cpus:8;mem:1024;disk:1024", "--registration-backoff", "50ms"]
        # What a test starts ends with it, however the agent does.
        argv += ["--tasks-on-exit", "end"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*wrapper, *argv, *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return int(self.port_file.read_text())

    async def ended(self, limit_s: float = LIMIT_S) -> int:
        """Wait for its end; its exit code."""
        return await asyncio.to_thread(self.process.wait, limit_s)

    async def stop(self) -> None:
        """Ask it to end, and see that it leaves nothing."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            code = await self.ended()
            assert code == 0, self.log.read_text()
        assert "Traceback" not in self.log.read_text(), self.log.read_text()

    def sandbox(self, task_id: str) -> Path:
        """Of the newest container of a task."""
        runs = self.work_dir / f"agents/A1/frameworks/{FRAMEWORK}/executors/{task_id}/runs"
        return runs / (runs / "latest").readlink()

    def output(self, task_id: str) -> str:
        try:
            return (self.sandbox(task_id) / "stdout").read_text()
        except FileNotFoundError:
            return ""  # not yet


@contextlib.asynccontextmanager
async def running_agent(
    master: FakeMaster, work_dir: Path, *flags: str, wrapper: Sequence[str] = ()
) -> AsyncIterator[AgentProcess]:
    """An agent that has registered; ended at the end."""
    times = len(master.registrations)
    agent = AgentProcess(master.address, work_dir, *flags, wrapper=wrapper)
    try:
        try:
            await master.registered(times + 1)
        except TimeoutError:
            raise AssertionError(agent.log.read_text()) from None
        yield agent
        await agent.stop()
    finally:
        if agent.process.poll() is None:
            agent.process.kill()
            agent.process.wait()


async def until_gone(pid: int) -> None:
    await eventually(lambda: gone(pid))


async def eventually(done: Callable[[], Any], limit_s: float = LIMIT_S) -> None:
    """For what has no event: files, processes."""
    async with asyncio.timeout(limit_s):
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def processes_of(task_id: str) -> list[int]:
    """All processes that were started in the environment of the task or executor, by an
    agent of these tests: there may be others on the machine."""
    ours = [f"MESOS_DIRECTORY={each}/".encode() for each in AgentProcess.work_dirs]
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                environment = (entry / "environ").read_bytes()
                named = f"MESOS_EXECUTOR_ID={task_id}\0".encode() in environment
                if named and any(each in environment for each in ours):
                    found.append(int(entry.name))
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def descriptors_of(pid: int) -> int:
    """How many files a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for thread in os.scandir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            found.extend(map(int, Path(thread.path, "children").read_text().split()))
    return found
