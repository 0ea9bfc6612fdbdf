"""Field cases about tasks: ends that are lost or told twice, leftovers, logs."""

import shutil
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py.errors import NotFound, Unavailable
from mesos_py.states import (
    TASK_ERROR,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_KILLING,
    TASK_RUNNING,
    TASK_STARTING,
)
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of
from tests.kit.jobs import Jobs
from tests.kit.proxy import Proxy
from tests.kit.raw import RawAgent
from tests.kit.recorder import PATIENCE_S
from tests.kit.waiting import gone, until

SIZE = "cpus:4;mem:4096;disk:0;ports:[21700-21701]"


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("tasks"), offer_timeout="0s") as cluster:
        cluster.start_agent("a", SIZE)
        cluster.operator.version()
        yield cluster


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    with running.undisturbed():
        yield running


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address, reports_killing=True) as framework:
        yield framework


# --- ends -----------------------------------------------------------------------------------


def test_no_end_is_lost_though_the_agent_is_cut_off_in_between(tmp_path):
    """Short tasks, while their agent's link breaks again and again: each end counts once."""
    with Cluster(tmp_path) as cluster, Proxy(cluster.address) as way:
        cluster.start_agent("a", SIZE, master=way.address, registration_backoff="20ms")
        with Jobs(cluster.address, ["true"] * 300) as jobs:
            for ended in (30, 100, 200):
                jobs.wait_for_ends(ended)
                way.cut()
                way.restore()
            jobs.wait_for_all()
            cluster.wait_for_history(jobs.id, 300 - jobs.late)
            # Those whose launch was on the way when the link broke have run nowhere.
            assert set(jobs.states_at_end) <= {"FINISHED", "DROPPED"}
            assert set(jobs.ends.values()) == {1}


def test_an_end_that_is_told_three_times_counts_once(cluster):
    """By an agent that takes no acknowledgement for one."""
    with RawAgent(cluster.address) as agent, Framework(cluster.address) as framework:
        agent.register("raw")
        task_id = framework.launch("true", host="raw")
        agent.event(agent.Event.RUN_TASKS)
        end = uuid.uuid4().bytes
        for count in (1, 2, 3):
            agent.update(framework.id, task_id, TASK_FINISHED, end)
            acknowledged = agent.event(agent.Event.ACKNOWLEDGE, count=count).acknowledge
            assert acknowledged.uuid == end
        assert framework.states(task_id) == ["FINISHED"]
        assert len(framework.statuses(task_id)) == 1
        assert len(cluster.history(framework.id)) == 1
        leave(agent)


def test_no_state_goes_back_after_the_end(cluster):
    """RUNNING after FINISHED, as a new update: acknowledged, and not believed."""
    with RawAgent(cluster.address) as agent, Framework(cluster.address) as framework:
        agent.register("raw")
        task_id = framework.launch("true", host="raw")
        agent.event(agent.Event.RUN_TASKS)
        for count, state in enumerate((TASK_STARTING, TASK_FINISHED, TASK_RUNNING), 1):
            agent.update(framework.id, task_id, state, uuid.uuid4().bytes)
            agent.event(agent.Event.ACKNOWLEDGE, count=count)
        (task,) = cluster.history(framework.id)
        assert task.state == TASK_FINISHED
        assert not cluster.agent_row("raw").allocated_resources
        leave(agent)


def test_an_update_of_a_task_that_nobody_knows_is_acknowledged(cluster):
    """So that the agent stops repeating it."""
    with RawAgent(cluster.address) as agent, Framework(cluster.address) as framework:
        agent.register("raw")
        end = uuid.uuid4().bytes
        agent.update(framework.id, "unheard-of", TASK_FINISHED, end)
        assert framework.status("unheard-of", TASK_FINISHED).uuid == end
        assert agent.event(agent.Event.ACKNOWLEDGE).acknowledge.uuid == end
        agent.update("no-such-framework", "unheard-of", TASK_FINISHED, end)
        agent.update(framework.id, "another", TASK_FINISHED, uuid.uuid4().bytes)
        framework.status("another", TASK_FINISHED)
        leave(agent)


def leave(agent: RawAgent) -> None:
    agent.send(agent.Call(type=agent.Call.UNREGISTER))
    agent.ended()


def test_acknowledgements_that_are_wrong_or_come_twice_do_no_harm(cluster):
    """Each update comes once all the same, and in order."""
    explicit = {"implicit_acknowledgements": False}
    with Framework(cluster.address, driver=explicit) as framework:
        task_id = framework.launch("true")
        for count, state in enumerate((TASK_STARTING, TASK_RUNNING, TASK_FINISHED), 1):
            status = framework.status(task_id, state)
            # The next one comes when this one is acknowledged, and not before.
            assert len(framework.statuses(task_id)) == count
            wrong = type(status)()
            wrong.CopyFrom(status)
            wrong.uuid = uuid.uuid4().bytes
            framework.driver.acknowledge([wrong, status, status, wrong])
        cluster.wait_for_history(framework.id)
        assert len(framework.statuses(task_id)) == count


# --- killing ----------------------------------------------------------------------------------


SERVER = """
import signal, sys, time
def told(*_):
    open(sys.argv[1], "w").write("told")
signal.signal(signal.SIGTERM, told)
open(sys.argv[2], "w")
while True:
    time.sleep(60)
"""


def test_the_grace_reaches_the_real_program_and_then_everything_is_killed(framework, tmp_path):
    """A shell in front of it, and more to do after it."""
    (tmp_path / "srv.py").write_text(SERVER)
    told, ready = tmp_path / "told", tmp_path / "ready"
    program = f"{sys.executable} {tmp_path}/srv.py {told} {ready}"
    running = framework.run(["sh", "-c", f"{program}; echo x"], kill_grace_s=3)
    until(ready.exists)
    server = child_of(pid_of(running))
    framework.driver.kill_task(running.task_id)
    framework.status(running.task_id.value, TASK_KILLING)
    until(lambda: told.exists() and told.read_text() == "told")
    framework.status(running.task_id.value, TASK_KILLED)
    assert gone(pid_of(running))
    assert gone(server)


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


# --- leftovers --------------------------------------------------------------------------------


def processes_below(pid: int) -> dict[int, str]:
    """Pid and state of all that come from this process."""
    found: dict[int, str] = {}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            try:
                found[child] = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                found.update(processes_below(child))
            except OSError:
                continue  # it has ended meanwhile
    return found


def open_files(pids: list[int]) -> int:
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)


def test_two_thousand_short_tasks_leave_nothing_though_half_of_them_fork_away(tmp_path):
    """Neither processes nor zombies nor open files, at the agent and its warden."""
    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent("a", "cpus:10;mem:4096;disk:0")
        fork_away = f"setsid sh -c 'setsid sleep 600 & echo $! >> {tmp_path}/pids' &"
        with Jobs(cluster.address, ["true", fork_away] * 20) as warm_up:
            warm_up.wait_for_all()
        cluster.wait_until(lambda: not cluster.used())
        daemons = [agent.process.pid, *processes_below(agent.process.pid)]
        files = open_files(daemons)
        with Jobs(cluster.address, ["true", fork_away] * 1000) as jobs:
            jobs.wait_for_all(limit_s=5 * PATIENCE_S)
            assert jobs.states_at_end == {"FINISHED": 2000}
            assert set(jobs.ends.values()) == {1}
        cluster.wait_until(lambda: not cluster.used())
        left = processes_below(agent.process.pid)
        assert sorted(left) == sorted(daemons[1:])
        assert "Z" not in left.values()
        assert abs(open_files(daemons) - files) <= 2
        pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
        assert all(gone(pid) for pid in pids)
        assert cluster.strays() == []


# --- logs -------------------------------------------------------------------------------------


def log(cluster: Cluster, framework: Framework, task_id: str, **options) -> bytes:
    parts = cluster.operator.read_log(framework.id, task_id, **options)
    return b"".join(part.data for part in parts)


def test_logs_are_read_through_the_master_also_of_ended_tasks_and_frameworks(cluster, framework):
    task_id = framework.launch("echo out; echo err >&2")
    framework.status(task_id, TASK_FINISHED)
    cluster.wait_for_history(framework.id)
    assert log(cluster, framework, task_id) == b"out\n"
    assert log(cluster, framework, task_id, path="stderr") == b"err\n"
    framework.end()
    assert log(cluster, framework, task_id) == b"out\n"


def test_a_log_is_followed_until_the_task_ends(cluster, framework, tmp_path):
    go = tmp_path / "go"
    task_id = framework.launch(f"echo one; while ! [ -e {go} ]; do sleep 0.02; done; echo two")
    framework.status(task_id, TASK_RUNNING)
    said = b""
    for part in cluster.operator.read_log(framework.id, task_id, follow=True):
        said += part.data
        if said == b"one\n":
            go.touch()
    assert said == b"one\ntwo\n"


def test_a_part_of_a_large_log(cluster, framework):
    task_id = framework.launch("seq 1 200000")
    framework.status(task_id, TASK_FINISHED)
    whole = b"".join(b"%d\n" % n for n in range(1, 200001))
    assert log(cluster, framework, task_id) == whole
    assert log(cluster, framework, task_id, offset=-7) == b"200000\n"
    assert log(cluster, framework, task_id, offset=4, length=6) == whole[4:10]
    assert log(cluster, framework, task_id, offset=10**9) == b""


def test_the_log_of_a_task_that_never_started_says_why(cluster, framework):
    too_large = framework.launch("true", cpus=100)
    framework.status(too_large, TASK_ERROR)
    with pytest.raises(NotFound, match=r"never started: resources\.cpus: 100 wanted"):
        log(cluster, framework, too_large)


def test_a_sandbox_that_was_removed_is_said_to_be(cluster, framework):
    task_id = framework.launch("echo x")
    framework.status(task_id, TASK_FINISHED)
    (out,) = {path.resolve() for path in cluster.directory.glob(f"a/**/{framework.id}/**/stdout")}
    shutil.rmtree(out.parent)
    with pytest.raises(NotFound, match="its sandbox was removed"):
        log(cluster, framework, task_id)
    framework.status(framework.launch("true"), TASK_FINISHED)


def test_a_file_that_is_not_there_is_named(cluster, framework):
    task_id = framework.launch("true")
    framework.status(task_id, TASK_FINISHED)
    with pytest.raises(NotFound, match="no-such-file"):
        log(cluster, framework, task_id, path="no-such-file")


def test_the_log_of_a_task_whose_agent_is_away_says_which(tmp_path):
    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent("far-away")
        with Framework(cluster.address) as framework:
            running = framework.run("echo x; exec sleep 600")
            agent.process.send_signal(signal.SIGKILL)
            agent.wait()
            cluster.wait_for_agent("far-away", "disconnected")
            with pytest.raises(Unavailable, match="far-away"):
                log(cluster, framework, running.task_id.value)
