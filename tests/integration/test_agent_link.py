"""The agent daemon and its master: found, lost, found again; and how the agent refuses to start."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence

import pytest

from agent.api.master_link import MasterLink
from mesos_py.address import Address
from mesos_py.election import Backoff, StandaloneDetector
from mesos_py.errors import NotLeader
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_master import AgentProcess, FakeMaster, processes_of, running_agent
from tests.kit.election import until
from tests.kit.waiting import gone

Event = agent_pb2.Event


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


async def test_after_a_break_it_registers_again_with_its_running_tasks(master, tmp_path):
    async with running_agent(master, tmp_path / "agent"):
        master.run(command("runs", "sleep 1000"), command("ends", "read x < /dev/null; exit 5"))
        pid = (await master.status("runs", pb.TASK_RUNNING)).container_status.executor_pid
        await master.status("ends", pb.TASK_FAILED)
        # Once it answers, it has the acknowledgement that was sent before.
        master.ping(1)
        await master.call(agent_pb2.Call.PONG)
        await master.stop()
        await master.start()
        again = await master.registered(2)
        assert again.agent_info.id.value == "A1"
        assert [task.task_id.value for task in again.tasks] == ["runs"]
        assert again.tasks[0].state == pb.TASK_RUNNING
        assert [info.id.value for info in again.frameworks] == ["F1"]
        assert not gone(pid)
        # And it takes orders again.
        master.kill("runs")
        await master.status("runs", pb.TASK_KILLED)


async def test_what_ended_while_there_was_no_master_is_told_to_the_next(master, tmp_path):
    master.acks = False
    async with running_agent(master, tmp_path / "agent"):
        master.run(command("t", "exit 4"))
        await master.status("t", pb.TASK_STARTING)
        await master.stop()
        master.calls.clear()
        master.acks = True
        await master.start()
        again = await master.registered(2)
        (task,) = again.tasks
        assert task.status_update_state == pb.TASK_STARTING
        await master.status("t", pb.TASK_FAILED)
        assert master.states("t") == ["STARTING", "RUNNING", "FAILED"]


async def test_a_lost_run_order_is_answered_when_the_master_asks(master, tmp_path):
    async with running_agent(master, tmp_path / "agent"):
        expected = Event.Reconcile.Expected(
            framework_id=pb.FrameworkID(value="F1"), task_id=pb.TaskID(value="lost")
        )
        master.send(Event(type=Event.RECONCILE, reconcile=Event.Reconcile(tasks=[expected])))
        lost = await master.status("lost", pb.TASK_LOST)
        assert lost.reason == pb.TaskStatus.REASON_RECONCILIATION


async def test_a_ping_is_answered(master, tmp_path):
    async with running_agent(master, tmp_path / "agent"):
        master.ping(7)
        assert (await master.call(agent_pb2.Call.PONG)).pong.sequence == 7


async def test_a_master_that_falls_silent_is_left_and_asked_again(tmp_path):
    async with (
        FakeMaster(ping_timeout_s=0.3) as master,
        running_agent(master, tmp_path / "agent"),
    ):
        await master.registered(3)
        assert {each.agent_info.id.value for each in master.registrations[1:]} == {"A1"}
        assert len({each.instance for each in master.registrations}) == 1
        attempts = [each.attempt for each in master.registrations]
        assert attempts == sorted(set(attempts))


async def test_orders_of_an_older_leadership_are_refused(master, tmp_path):
    master.epoch = 5
    async with running_agent(master, tmp_path / "agent"):
        master.epoch = 4
        master.run(command("t"))
        await master.registered(2)
        master.epoch = 6
        await master.registered(len(master.registrations) + 1)
        master.run(command("u"))
        await master.status("u", pb.TASK_FINISHED)
        assert not master.updates("t")


async def test_it_follows_a_master_that_names_the_leader(master, tmp_path):
    async with FakeMaster() as standby:
        standby.error = NotLeader(master.address)
        agent = AgentProcess(standby.address, tmp_path / "agent")
        try:
            await master.registered()
        finally:
            agent.process.send_signal(signal.SIGTERM)
            assert await agent.ended() == 0


class Elected(StandaloneDetector):
    """Nobody is where the leader is said to be, until another one is elected."""

    def __init__(self, dead: Address, then: Address) -> None:
        super().__init__([dead])
        self._dead, self._then = dead, then
        self.failures = 0
        self.elected = asyncio.Event()

    def failed(self, address: Address) -> None:
        self.failures += address == self._dead

    async def news(self, left: Address) -> None:
        await self.elected.wait()
        self.hint(self._then)


class Registering:
    """What a link needs of an agent."""

    async def may_register(self) -> None: ...

    def register_call(self) -> agent_pb2.Call:
        info = pb.AgentInfo(hostname="host-1")
        register = agent_pb2.Call.Register(agent_info=info)
        return agent_pb2.Call(type=agent_pb2.Call.REGISTER, register=register)

    def master_said(self, events: Sequence[Event], epoch: int) -> None: ...

    def link_lost(self) -> None: ...

    def refused_for_good(self, reason: str, *, shut_down: bool) -> None: ...


async def test_a_new_leader_is_not_kept_waiting_by_a_pause_for_the_old_one(master):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        dead = Address("127.0.0.1", nobody.getsockname()[1])
    detector = Elected(dead, Address("127.0.0.1", master.port))
    backoff = Backoff(600, 1000, lambda: 0.0)
    link = MasterLink(detector, Registering(), backoff, "instance")
    running = asyncio.create_task(link.run())
    await until(lambda: detector.failures)
    detector.elected.set()
    await master.registered(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class Waiting(StandaloneDetector):
    """The addresses of masters of which the leader is none; how often there was a pause."""

    pauses = 0

    async def news(self, left: Address) -> None:
        self.pauses += 1
        await super().news(left)


async def test_masters_that_named_a_dead_leader_for_long_are_believed_afterwards(master):
    async with FakeMaster() as standby:
        # It knows no better before the dead one's session has expired.
        standby.error = NotLeader(None)
        detector = Waiting([Address("127.0.0.1", standby.port)])
        backoff = Backoff(0.01, 0.02, lambda: 0.0)
        link = MasterLink(detector, Registering(), backoff, "instance")
        running = asyncio.create_task(link.run())
        await until(lambda: detector.pauses > 4)
        standby.error = NotLeader(master.address)
        await master.registered(1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class Late(FakeMaster):
    """Answers REGISTER when it is told to."""

    def _register(self, call, stream):
        self.registrations.append(call)
        self._held = (call, stream)

    def answer(self) -> None:
        super()._register(*self._held)


async def test_what_ends_between_register_and_its_answer_is_told_after_the_answer():
    master = Late()
    async with master:
        detector = StandaloneDetector([Address("127.0.0.1", master.port)])
        backoff = Backoff(600, 1000, lambda: 0.0)
        link = MasterLink(detector, Registering(), backoff, "instance")
        running = asyncio.create_task(link.run())
        await master.registered(1)
        exited = agent_pb2.Call.ExecutorExited(executor_id=pb.ExecutorID(value="ex"))
        assert not link.send(agent_pb2.Call(type=agent_pb2.Call.EXECUTOR_MESSAGE))
        assert link.send(
            agent_pb2.Call(type=agent_pb2.Call.EXECUTOR_EXITED, executor_exited=exited)
        )
        master.answer()
        told = await master.call(agent_pb2.Call.EXECUTOR_EXITED)
        assert told.executor_exited == exited
        assert [call.type for call in master.calls] == [agent_pb2.Call.EXECUTOR_EXITED]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_an_agent_that_is_refused_for_good_ends_with_the_reason(master, tmp_path):
    master.refusal = Event.Refused(code="gone", message="marked gone by Ann", final=True)
    agent = AgentProcess(master.address, tmp_path / "agent")
    assert await agent.ended() == 1
    assert "marked gone by Ann" in agent.log.read_text()
    assert not agent.port_file.exists()


async def test_a_refusal_that_may_pass_is_tried_again(master, tmp_path):
    master.refusal = Event.Refused(code="busy", message="not now")
    agent = AgentProcess(master.address, tmp_path / "agent")
    try:
        await master.registered(2)
        master.refusal = None
        times = len(master.registrations)
        await master.registered(times + 1)
    finally:
        agent.process.send_signal(signal.SIGTERM)
        assert await agent.ended() == 0


async def test_an_agent_refused_for_good_later_ends_its_tasks_first(master, tmp_path):
    agent = AgentProcess(master.address, tmp_path / "agent")
    await master.registered()
    master.run(command("t", "sleep 1000"))
    await master.status("t", pb.TASK_RUNNING)
    master.refusal = Event.Refused(code="gone", message="gone", final=True)
    master.hang_up()
    assert await agent.ended() == 1
    assert not processes_of("t")


# ---- It does not start ---------------------------------------------------------------


async def test_a_second_agent_on_a_work_directory_is_refused_naming_the_first(master, tmp_path):
    async with running_agent(master, tmp_path / "agent") as agent:
        done = run_agent("--master", master.address, "--work-dir", str(agent.work_dir))
        assert done.returncode == 1
        assert f"in use by process {agent.pid}" in done.stderr
        # The first one is as it was.
        master.run(command("t"))
        await master.status("t", pb.TASK_FINISHED)


def test_a_port_in_use_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_agent("--master", "127.0.0.1:1", "--work-dir", str(tmp_path), "--port", port)
    assert done.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in done.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--resources", "cpus:-1"], "cpus"),
        (["--resources", "nonsense"], "NAME:VALUE"),
        (["--attributes", "a:1;a:2"], "twice"),
        (["--isolation", "posix,nonesuch"], "nonesuch"),
        (["--isolation", "posix,posix"], "twice"),
        (["--ip", "not-an-ip"], "no IP address"),
        (["--port", "x"], "port"),
        (["--master", "zk://me:hunter2@h"], "must end with a path"),
        (["--executor-shutdown-grace-period", "-1s"], "executor-shutdown-grace-period"),
    ],
)
def test_a_bad_flag_is_a_clear_error_and_leaves_nothing(flags, words, tmp_path):
    work_dir = tmp_path / "agent"
    given = ["--master", "127.0.0.1:1", "--work-dir", str(work_dir), "--port", "0", *flags]
    done = run_agent(*given)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not work_dir.exists() or [p.name for p in work_dir.iterdir()] == ["lock"]


def run_agent(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mesos_py.cli", "agent", *flags],
        capture_output=True,
        text=True,
        timeout=60,
    )
