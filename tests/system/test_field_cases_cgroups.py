"""Field cases of isolation: what the kernel killed, what tasks leave, who owns what.

With real agents; each has its groups beneath one that is this test run's own.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit import cgroup_host
from tests.kit.agent_core import command
from tests.kit.agent_master import (
    AgentProcess,
    FakeMaster,
    children_of,
    eventually,
    running_agent,
    until_gone,
)
from tests.kit.waiting import gone

MEMORY = pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
ISOLATED = ("--isolation", "cgroups", "--cgroups-root", cgroup_host.ROOT)
HOG = "python3 -c 'b = bytearray(200 * 1048576)'"


@pytest.fixture(autouse=True)
async def host(lacking) -> AsyncIterator[None]:
    if (what := cgroup_host.lacks()) is not None:
        lacking(what)
    yield
    assert cgroup_host.remove_all() == []


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent", *ISOLATED) as made:
        yield made


def task(name: str, script: str, *, mem: float = 64, cpus: float = 0.1, **more) -> pb.TaskInfo:
    made = command(name, script, **more)
    del made.resources[:]
    made.resources.extend(Resources.of(cpus=cpus, mem=mem).to_proto())
    return made


def containers(agent_id: str = "A1") -> set[str]:
    """The containers that there are groups of."""
    names = (Path(each).parts for each in cgroup_host.groups_named(agent_id))
    return {parts[-1] for parts in names if parts[-2] == agent_id} - {"shared"}


# ---- Out of memory ------------------------------------------------------------------------


@pytest.mark.parametrize("script", [f"exec {HOG}", f"{HOG}; exit $?", f"{HOG} || exit 3"])
async def test_a_task_over_its_memory_fails_with_limit_and_peak(master, agent, script):
    master.run(task("t", script))
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.reason == MEMORY
    assert failed.message == (
        "Memory limit exceeded: limit 64 MB, peak 64 MB; the kernel killed 1 process"
    )
    assert failed.limitation.resources[0].name == "mem"
    assert failed.limitation.resources[0].scalar.value == 64
    assert failed.HasField("exit_status")
    assert failed.source == pb.TaskStatus.SOURCE_AGENT


async def test_a_kill_after_the_grace_is_killed_and_not_out_of_memory(master, agent):
    master.run(task("t", "trap '' TERM; touch deaf; while :; do sleep 1; done"))
    await master.status("t", pb.TASK_RUNNING)
    await eventually((agent.sandbox("t") / "deaf").exists)
    master.kill("t", grace_s=0.1)
    killed = await master.status("t", pb.TASK_KILLED)
    assert not killed.HasField("reason")
    assert killed.exit_status.signal == signal.SIGKILL


async def test_a_killed_child_is_told_while_the_task_goes_on(master, agent):
    master.run(task("t", f"{HOG}; until [ -e go ]; do sleep 0.02; done"))
    told = await master.until(
        lambda: next((s for s in master.updates("t") if s.reason == MEMORY), None)
    )
    assert told.state == pb.TASK_RUNNING
    assert told.message.endswith("the kernel killed 1 process of the task, which goes on")
    (agent.sandbox("t") / "go").touch()
    finished = await master.status("t", pb.TASK_FINISHED)
    assert not finished.HasField("reason")
    assert master.states("t") == ["STARTING", "RUNNING", "RUNNING", "FINISHED"]


async def test_a_later_failure_says_what_had_been_killed_before(master, agent):
    master.run(task("t", f"{HOG}; until [ -e go ]; do sleep 0.02; done; exit 4"))
    await master.until(lambda: any(s.reason == MEMORY for s in master.updates("t")))
    (agent.sandbox("t") / "go").touch()
    failed = await master.status("t", pb.TASK_FAILED)
    assert not failed.HasField("reason")
    assert failed.message.startswith("Command exited with status 4. Before that: Memory limit")


async def test_a_task_that_copes_with_a_killed_child_at_once_has_finished(master, agent):
    master.run(task("t", f"{HOG}; exit 0"))
    finished = await master.status("t", pb.TASK_FINISHED)
    assert finished.exit_status.exit_code == 0


@pytest.mark.parametrize("script", ["exit 137", "kill -9 $$"])
async def test_exit_code_137_by_hand_is_an_ordinary_failure(master, agent, script):
    master.run(task("t", script))
    failed = await master.status("t", pb.TASK_FAILED)
    assert not failed.HasField("reason")
    assert not failed.HasField("limitation")


# ---- The complete kill ----------------------------------------------------------------------

# A child that has left session, parent and environment; it says its pid.
STRAY = "(setsid env -i sh -c 'echo $$ > stray; exec sleep 1000' &)"


async def stray_of(agent: AgentProcess, name: str) -> int:
    def said() -> str:
        try:
            return (agent.sandbox(name) / "stray").read_text().strip()
        except FileNotFoundError:
            return ""

    await eventually(said)
    return int(said())


async def test_a_kill_reaches_a_child_that_has_left_its_session(master, agent):
    master.run(task("t", f"{STRAY}; sleep 1000"))
    stray = await stray_of(agent, "t")
    master.kill("t", grace_s=0)
    await master.status("t", pb.TASK_KILLED)
    assert gone(stray)


async def test_the_end_of_a_task_is_told_when_its_stray_children_are_gone(master, agent):
    master.run(task("t", f"{STRAY}; until [ -s stray ]; do sleep 0.01; done"))
    await master.status("t", pb.TASK_FINISHED)
    assert gone(await stray_of(agent, "t"))
    await eventually(lambda: not containers())


async def test_an_agent_that_stops_takes_all_groups_with_it(master, tmp_path):
    async with running_agent(master, tmp_path / "agent", *ISOLATED) as agent:
        master.run(task("t", f"{STRAY}; sleep 1000"))
        stray = await stray_of(agent, "t")
        assert len(containers()) == 1
    assert gone(stray)
    assert cgroup_host.all_groups() == []


# ---- Who owns what ----------------------------------------------------------------------------


class Restarted:
    """An agent that is killed and started again in the same directory; its tasks go on."""

    def __init__(self, master: FakeMaster, work_dir: Path) -> None:
        self.master = master
        self.work_dir = work_dir
        self.agent: AgentProcess | None = None

    async def start(self, tasks_on_exit: str = "keep") -> AgentProcess:
        times = len(self.master.registrations)
        flags = (*ISOLATED, "--tasks-on-exit", tasks_on_exit)
        self.agent = AgentProcess(self.master.address, self.work_dir, *flags)
        await self.master.registered(times + 1)
        return self.agent

    async def kill(self) -> None:
        assert self.agent is not None
        self.agent.process.kill()
        await self.agent.ended()

    async def __aenter__(self) -> Restarted:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.agent is not None and self.agent.process.poll() is not None:
            await self.start()
        if self.agent is not None:
            self.agent.process.send_signal(signal.SIGINT)  # ends its tasks too
            assert await self.agent.ended() == 0, self.agent.log.read_text()


async def three_tasks(master: FakeMaster, letter: str) -> list[int]:
    """Their pids."""
    names = [f"{letter}{number}" for number in range(3)]
    master.run(*(task(name, "sleep 1000") for name in names))
    running = [await master.status(name, pb.TASK_RUNNING) for name in names]
    return [each.container_status.executor_pid for each in running]


async def test_two_agents_on_one_machine_leave_each_others_tasks_alone(tmp_path):
    async with FakeMaster(agent_id="A1") as mine, FakeMaster(agent_id="A10") as theirs:
        async with running_agent(theirs, tmp_path / "b", *ISOLATED):
            others = await three_tasks(theirs, "b")
            async with Restarted(mine, tmp_path / "a") as host:
                await host.start()
                own = await three_tasks(mine, "a")
                kept = containers("A1"), containers("A10")
                for _ in range(10):
                    await host.kill()
                    await host.start()
                assert not any(gone(pid) for pid in own + others)
                assert (containers("A1"), containers("A10")) == kept
            assert not any(gone(pid) for pid in others)
            assert all(gone(pid) for pid in own)
            assert containers("A10") == kept[1]
        assert {"FAILED", "LOST"}.isdisjoint(theirs.states("b0"))


async def test_groups_of_tasks_that_ended_without_their_agent_are_removed(master, tmp_path):
    async with Restarted(master, tmp_path / "a") as host:
        await host.start("end")
        pids = await three_tasks(master, "a")
        await host.kill()
        for pid in pids:
            await until_gone(pid)
        assert len(containers()) == 3
        await host.start()
        await eventually(lambda: not containers())


async def test_why_a_task_ended_while_its_agent_was_away_is_told(master, tmp_path):
    async with Restarted(master, tmp_path / "a") as host:
        agent = await host.start()
        master.run(task("t", f"until [ -e go ]; do sleep 0.02; done; {HOG}; exit $?"))
        running = await master.status("t", pb.TASK_RUNNING)
        sandbox = agent.sandbox("t")
        await host.kill()
        (sandbox / "go").touch()
        await until_gone(running.container_status.executor_pid)
        await host.start()
        failed = await master.status("t", pb.TASK_FAILED)
        assert failed.reason == MEMORY
        assert failed.message.startswith("Memory limit exceeded: limit 64 MB, peak 64 MB")


async def test_a_task_that_an_agent_takes_up_again_is_still_limited_and_watched(master, tmp_path):
    async with Restarted(master, tmp_path / "a") as host:
        agent = await host.start()
        master.run(task("t", f"until [ -e go ]; do sleep 0.02; done; {HOG}; sleep 1000"))
        await master.status("t", pb.TASK_RUNNING)
        sandbox = agent.sandbox("t")
        await host.kill()
        await host.start()
        (sandbox / "go").touch()
        await master.until(lambda: any(s.reason == MEMORY for s in master.updates("t")))
        assert len(containers()) == 1


# ---- Two thousand short tasks --------------------------------------------------------------------

SHORT = 2000
AT_ONCE = 200
# Connections of the moment; and threads of pools, which take a further one, up to their bound,
# whenever two pieces of work happen to meet. What every task or stray left would be hundreds.
ALLOWED = {"descriptors": 2, "threads": 40}
MOMENTS = 300


def traces(agent: AgentProcess) -> dict[str, int]:
    pids = [agent.pid, *children_of(agent.pid)]
    return {
        "groups": len(cgroup_host.groups_named("A1")),
        "descriptors": sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids),
        "children": sum(len(children_of(pid)) for pid in pids),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "threads": sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in pids),
    }


async def test_after_2000_short_tasks_with_stray_children_nothing_is_left(master, agent):
    async def run(first: int, count: int) -> None:
        names = [f"t{number}" for number in range(first, first + count)]
        # Every second one leaves a child in a session of its own, half of these without
        # the environment by which it could be known.
        kinds = ("true", "(setsid sleep 1000 &)", "true", "(setsid env -i sleep 1000 &)")
        master.run(*(task(name, kinds[n % 4], cpus=0.01) for n, name in enumerate(names)))
        for name in names:
            await master.status(name, pb.TASK_FINISHED)

    await run(0, 20)
    await eventually(lambda: not containers())
    before = await asyncio.to_thread(traces, agent)
    for first in range(20, 20 + SHORT, AT_ONCE):
        await run(first, AT_ONCE)
    await eventually(lambda: not containers())
    left: dict[str, int] = {}
    # Of the last ones something may be on its way out, for a moment.
    for _ in range(MOMENTS):
        after = await asyncio.to_thread(traces, agent)
        more = {name: after[name] - before[name] for name in before}
        left = {name: count for name, count in more.items() if count > ALLOWED.get(name, 0)}
        if not left:
            break
        await asyncio.sleep(0.1)
    assert left == {}
