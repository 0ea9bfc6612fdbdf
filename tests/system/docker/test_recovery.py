"""The docker launcher when the agent or dockerd goes away, and comes back."""

import asyncio
import contextlib
import threading

import pytest

from agent.containers.docker.launcher import GONE, NOT_MADE
from agent.core.effects import Signal
from agent.core.records import Exit
from mesos_py.resources import Resources
from tests.kit.agent_master import eventually
from tests.kit.docker_tasks import Rig, container_spec, rig, saved_container
from tests.kit.dockerd import NEEDS, PrivateDockerd

pytestmark = pytest.mark.needs(*NEEDS)

# Until there is a file "stop" in its sandbox.
COUNT = "i=0; while [ ! -e $MESOS_SANDBOX/stop ]; do echo $i; i=$((i+1)); sleep 0.01; done"


def stop(here: Rig, container_id: str) -> None:
    (here.work_dir / "agents/A1/runs" / container_id / "stop").touch()


def counted_all(output: str) -> bool:
    """Whether nothing is missing, twice or out of order."""
    lines = output.splitlines()
    return bool(lines) and lines == [str(number) for number in range(len(lines))]


@pytest.fixture
async def first(dockerd, tmp_path):
    """The launcher of an agent that will be killed, or is closed at the end."""
    made = Rig(dockerd, tmp_path / "agent")
    await made.launcher.start()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(made.close_unless_crashed)
        yield made


@pytest.fixture
def own_dockerd(tmp_path_factory):
    with PrivateDockerd(tmp_path_factory.mktemp("own")) as made:
        yield made


@contextlib.asynccontextmanager
async def rig_that_leaves(dockerd, work_dir):
    made = Rig(dockerd, work_dir)
    await made.launcher.start()
    try:
        yield made
    finally:
        await made.launcher.leave()


async def started(here: Rig, script: str, container_id: str) -> None:
    here.launcher.launch(container_spec(script, container_id=container_id))
    await here.heard.until("started", container_id)


# ---- The agent --------------------------------------------------------------------------


async def test_after_a_restart_what_runs_goes_on_and_what_has_ended_is_told_once(
    first, dockerd, tmp_path
):
    await started(first, COUNT, "runs")
    await started(first, "sleep 0.5; echo late; exit 7", "ends")
    await eventually(lambda: first.output("runs").count("\n") > 10)
    pid = dockerd.inspect(container_id="runs")["State"]["Pid"]
    await first.crash()
    (ends,) = dockerd.ids(container_id="ends")
    await eventually(lambda: not dockerd.running(ends))
    async with rig(dockerd, tmp_path / "agent") as second:
        await second.launcher.recover(
            "A1", [saved_container("runs", 1), saved_container("ends", 2)]
        )
        assert (await second.heard.until("ended", "ends"))[2] == Exit(7 << 8)
        assert dockerd.inspect(container_id="runs")["State"]["Pid"] == pid
        stop(second, "runs")
        assert (await second.heard.until("ended", "runs"))[2] == Exit(0)
        assert [event[:2] for event in second.heard.events] == [
            ("ended", "ends"),
            ("ended", "runs"),
        ]
        # Output of the time without an agent is there, and nothing is there twice.
        assert counted_all(second.output("runs"))
        assert second.output("ends") == "late\n"
        await eventually(lambda: not dockerd.ids())


async def test_what_was_taken_up_can_be_killed_and_measured(first, dockerd, tmp_path):
    await started(first, "sleep 1000", "c1")
    await first.crash()
    async with rig(dockerd, tmp_path / "agent") as second:
        await second.launcher.recover("A1", [saved_container("c1", None)])
        await second.heard.until("started")  # it was not known to have
        assert (await second.launcher.usage("c1"))["memory_limit_bytes"] == 64 << 20
        second.launcher.update("c1", Resources.of(cpus=2, mem=64))
        await eventually(lambda: dockerd.inspect()["HostConfig"]["CpuShares"] == 2048)
        second.launcher.kill("c1", Signal.TERM)
        assert (await second.heard.until("ended"))[2] == Exit(15)


async def test_leftovers_of_this_agent_go_and_look_alikes_stay(first, dockerd, tmp_path):
    """Field case: containers of others were killed since their names began like ours."""
    await started(first, "sleep 1000", "mine")
    strangers = [
        dockerd.run_stranger({"mesos_py.agent_id": "A11", "mesos_py.container_id": "x"}),
        dockerd.run_stranger({"mesos_py.agent_id": "A", "mesos_py.container_id": "mine"}),
        dockerd.run_stranger({"mesos_py.agent_idx": "A1"}, name="mesos-mine-2"),
        dockerd.run_stranger({"agent_id": "A1", "mesos_py.framework_id": "F1"}),
    ]
    await first.crash()
    for _ in range(3):
        async with rig(dockerd, tmp_path / "agent") as second:
            await second.launcher.recover("A1", ())
            await eventually(lambda: not dockerd.ids(agent_id="A1"))
        assert all(map(dockerd.running, strangers))
    dockerd.remove_all()


async def test_an_agent_with_a_new_id_removes_what_its_old_one_left(first, dockerd, tmp_path):
    await started(first, "sleep 1000", "c1")
    await first.crash()
    async with rig(dockerd, tmp_path / "agent") as second:
        await second.launcher.recover("A2", ())
        await eventually(lambda: not dockerd.ids(agent_id="A1"))


async def test_an_end_that_the_agent_has_not_written_down_is_told_again(first, dockerd, tmp_path):
    first.heard.forget = lambda _: None
    await started(first, "exit 7", "c1")
    assert (await first.heard.until("ended"))[2] == Exit(7 << 8)
    await first.crash()
    for _ in range(2):
        async with rig_that_leaves(dockerd, tmp_path / "agent") as second:
            second.heard.forget = lambda _: None
            second.launcher.recover("A1", [saved_container("c1", 5)])
            assert (await second.heard.until("ended"))[2] == Exit(7 << 8)
    async with rig(dockerd, tmp_path / "agent") as third:
        third.launcher.recover("A1", [saved_container("c1", 5)])
        await third.heard.until("ended")
        await eventually(lambda: not dockerd.ids())


async def test_what_is_forgotten_as_the_agent_is_closed_is_removed(dockerd, tmp_path):
    """The removal had not made its first step when it was cancelled, and nobody knew of it."""
    async with rig(dockerd, tmp_path / "agent") as here:
        here.heard.forget = lambda _: None
        await started(here, "exit 7", "c1")
        await here.heard.until("ended")
        here.launcher.forget("c1")
    assert not dockerd.ids()


async def test_a_kill_that_comes_before_a_container_is_found_again_is_not_lost(
    first, dockerd, tmp_path
):
    await started(first, "sleep 1000", "c1")
    await first.crash()
    async with rig(dockerd, tmp_path / "agent") as second:
        second.launcher.recover("A1", [saved_container("c1", 5)])
        second.launcher.kill("c1", Signal.KILL)
        assert (await second.heard.until("ended"))[2] == Exit(9)


async def test_an_agent_that_comes_back_before_dockerd_waits_for_it(own_dockerd, tmp_path):
    own_dockerd.stop()
    own_dockerd.start("--live-restore")
    first = Rig(own_dockerd, tmp_path / "agent")
    await first.launcher.start()
    await started(first, "sleep 1000", "c1")
    await first.launcher.leave()
    own_dockerd.kill()
    second = Rig(own_dockerd, tmp_path / "agent")
    await second.launcher.start(required=False)
    try:
        second.launcher.recover("A1", [saved_container("c1", 5)])
        second.launcher.launch(container_spec("echo new", container_id="c2"))
        own_dockerd.start("--live-restore")
        assert (await second.heard.until("ended", "c2"))[2] == Exit(0)
        second.launcher.kill("c1", Signal.KILL)
        assert (await second.heard.until("ended"))[2] == Exit(9)
    finally:
        await second.launcher.close()


async def test_what_is_gone_or_was_never_started_is_settled(first, dockerd, tmp_path):
    await first.crash()
    labels = {"mesos_py.agent_id": "A1", "mesos_py.container_id": "made"}
    dockerd.client.create_container("tiny:1", ["true"], labels=labels)
    saved = [saved_container(*each) for each in (("ran", 5), ("asked", None), ("made", None))]
    async with rig(dockerd, tmp_path / "agent") as second:
        await second.launcher.recover("A1", saved)
        assert await second.heard.until("ended", "ran") == ("ended", "ran", Exit(None, GONE))
        assert (await second.heard.until("failed", "asked"))[2] == NOT_MADE
        assert (await second.heard.until("failed", "made"))[2] == NOT_MADE
        assert not dockerd.ids()


# ---- dockerd ------------------------------------------------------------------------------


async def test_no_end_is_told_while_dockerd_stands_still(dockerd, tmp_path):
    """Field case: a stop that hangs; no final state until it is verified, an orphan gauge."""
    async with rig(dockerd, tmp_path / "agent", timeout_s=0.5) as here:
        await started(here, "sleep 1000", "c1")
        dockerd.pause()
        try:
            here.launcher.kill("c1", Signal.TERM)
            here.launcher.kill("c1", Signal.KILL)
            await eventually(lambda: here.orphans == 1)
            await asyncio.sleep(1)
            assert here.heard.of("ended") is None
        finally:
            dockerd.resume()
        assert (await here.heard.until("ended"))[2].signal in (9, 15)
        await eventually(lambda: here.orphans == 0)
        await eventually(lambda: not dockerd.ids())


async def test_an_agent_that_leaves_does_not_wait_for_a_dockerd_that_stands_still(
    dockerd, tmp_path
):
    here = Rig(dockerd, tmp_path / "agent", timeout_s=60)
    await here.launcher.start()
    await started(here, "sleep 1000", "c1")
    dockerd.pause()
    try:
        here.launcher.kill("c1", Signal.KILL)
        await asyncio.sleep(0.2)
        async with asyncio.timeout(10):
            await here.launcher.leave()
        ours = [each for each in threading.enumerate() if each.name.startswith("docker_")]
        for each in ours:
            await asyncio.to_thread(each.join, 10)
        assert not any(each.is_alive() for each in ours)
    finally:
        dockerd.resume()
    dockerd.remove_all()


async def test_a_launch_waits_for_a_dockerd_that_stands_still_and_runs_once(dockerd, tmp_path):
    async with rig(dockerd, tmp_path / "agent", timeout_s=0.5) as here:
        dockerd.pause()
        try:
            here.launcher.launch(container_spec("echo once >> $MESOS_SANDBOX/runs; echo done"))
            await asyncio.sleep(1.5)
        finally:
            dockerd.resume()
        assert (await here.heard.until("ended"))[2] == Exit(0)
        assert here.output(name="runs") == "once\n"
        assert here.output() == "done\n"
        assert here.orphans == 0


async def test_tasks_that_dockerd_takes_with_it_are_told_when_it_is_back(own_dockerd, tmp_path):
    async with rig(own_dockerd, tmp_path / "agent", timeout_s=2) as here:
        await started(here, COUNT, "c1")
        await eventually(here.output)
        own_dockerd.kill()
        await asyncio.sleep(0.5)
        assert here.heard.of("ended") is None
        own_dockerd.start()
        exit = (await here.heard.until("ended"))[2]
        assert exit.status is not None
        assert exit.status != 0
        assert here.heard.of("limited") is None
        assert counted_all(here.output())


async def test_tasks_that_outlive_dockerd_go_on_with_all_their_output(own_dockerd, tmp_path):
    own_dockerd.stop()
    own_dockerd.start("--live-restore")
    async with rig(own_dockerd, tmp_path / "agent", timeout_s=2) as here:
        await started(here, COUNT, "c1")
        await eventually(here.output)
        own_dockerd.kill()
        own_dockerd.start("--live-restore")
        stop(here, "c1")
        assert (await here.heard.until("ended"))[2] == Exit(0)
        assert counted_all(here.output())
