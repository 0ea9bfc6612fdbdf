"""Whose a process is: what can be told of it, and when it is too early to tell."""

import os
import subprocess
import sys

import pytest

from agent.containers import processes
from tests.kit.waiting import until

SLEEP = ["/bin/sleep", "600"]

# A warden whose one container starts two processes, one by each way, and is killed.
WARDEN = """
import os, resource, signal, sys
from agent.containers.processes import Processes, become_subreaper, children
from agent.containers.spawn import Spawner, StartRequest

become_subreaper()
reading, writing = os.pipe()
executor = os.fork()
if executor == 0:
    os.setsid()
    spawner = Spawner(sys.argv[1], sessions=False)
    for name, rlimits in (("spawned", []), ("forked", [(resource.RLIMIT_CORE, 0, 0)])):
        spawner.start(StartRequest(
            id=name, exe="/bin/sleep", argv=["sleep", "600"], env={}, sandbox=[name],
            owner=(os.getuid(), os.getgid()), user=None, enter=[], namespaces=[], rlimits=rlimits,
        ))
    os.write(writing, b"!")
    signal.pause()
os.close(writing)
assert os.read(reading, 1)
mine = Processes()
mine.add("c-1", executor)
os.kill(executor, signal.SIGKILL)
while not (told := mine.reap()):
    pass
print(told[0].container_id, "left:", children())
mine.kill_all()
"""


@pytest.fixture
def start():
    started = []

    def start(
        argv: list[str], env: dict[str, str], group: int | None = None
    ) -> subprocess.Popen[bytes]:
        """`group`: that which it joins in our session, 0 for one of its own."""
        process = subprocess.Popen(
            argv, env=env, start_new_session=group is None, process_group=group
        )
        started.append(process)
        if argv == SLEEP:
            # Popen returns in the middle of the exec, when nothing can be told yet.
            until(lambda: processes._stat(process.pid)[48] != b"0")
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for its end, and leave it to be reaped."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    return process.pid


def told_by(mine: processes.Processes) -> list[processes.Gone]:
    """The next that are told to be gone."""
    told: list[processes.Gone] = []

    def look() -> bool:
        told.extend(mine.reap())
        return bool(told)

    until(look)
    return told


def test_a_process_is_known_by_the_container_in_its_environment(start):
    process = start(SLEEP, {"A": "x", "MESOS_CONTAINER_ID": "c-1", "B": "y"})
    assert processes.marked_container(process.pid) == "c-1"


def test_a_process_of_nobody_belongs_to_no_container(start):
    assert processes.marked_container(start(SLEEP, {"A": "x"}).pid) == ""


def test_of_a_process_that_has_ended_it_cannot_be_told_and_never_will(start):
    pid = ended(start(["/bin/true"], {"MESOS_CONTAINER_ID": "c-1"}))
    assert processes.container_of(pid) is None
    assert processes._patience_s(pid) == 0


def test_of_a_process_without_environment_it_cannot_be_told_and_hardly_ever_will(start):
    pid = start(SLEEP, {}).pid
    assert processes.container_of(pid) is None
    assert 0 < processes._patience_s(pid) < 1


def test_a_container_is_not_empty_while_it_is_not_clear_whose_a_child_is(start):
    """The child may be about to leave its own children to us: one more look is due."""
    first = start(["/bin/true"], {"MESOS_CONTAINER_ID": "c-1"})
    stranger = start(["/bin/true"], {"A": "x"})
    mine = processes.Processes(shared=True)
    mine.add("c-1", first.pid)
    ended(first)
    ended(stranger)
    assert mine.reap() == []
    assert mine.unsure
    assert [gone.container_id for gone in mine.reap()] == ["c-1"]
    first.returncode = 0  # it was reaped past Popen


def test_an_id_that_is_given_again_costs_nobody_his_end(start):
    mine = processes.Processes(shared=True)
    first = start(SLEEP, {"MESOS_CONTAINER_ID": "c-1"})
    second = start(["/bin/true"], {"MESOS_CONTAINER_ID": "c-1"})
    for process in (first, second):
        mine.add("c-1", process.pid)
    ended(second)
    assert [each.container_id for each in mine.reap()] == ["c-1"]
    first.kill()
    ended(first)
    assert [each.container_id for each in mine.reap()] == ["c-1"]
    assert len(mine) == 0
    for process in (first, second):
        process.returncode = 0  # it was reaped past Popen


def test_a_stranger_delays_the_end_of_one_container_and_not_of_the_next(start, monkeypatch):
    """A child of nobody that shows no environment, now or ever."""
    monkeypatch.setattr(processes, "_NO_ENVIRONMENT_S", 0.0)
    start(SLEEP, {})
    mine = processes.Processes(shared=True)
    looks = []
    for name in ("c-1", "c-2"):
        process = start(["/bin/true"], {"MESOS_CONTAINER_ID": name})
        mine.add(name, process.pid)
        ended(process)
        looks.append(0)
        while not mine.reap():
            looks[-1] += 1
        process.returncode = 0  # it was reaped past Popen
    assert looks == [1, 0]


def test_in_our_session_a_container_is_known_by_its_group_without_environment(start):
    first, second = start(SLEEP, {}, 0), start(SLEEP, {}, 0)
    left = start(SLEEP, {}, first.pid)
    mine = processes.Processes(shared=True)
    mine.add("c-1", first.pid)
    mine.add("c-2", second.pid)
    first.kill()
    ended(first)
    told = told_by(mine)
    assert [each.container_id for each in told] == ["c-1"]
    assert left.pid not in processes.children()
    assert mine.running() == [("c-2", second.pid)]
    for process in (first, left):
        process.returncode = 0  # it was reaped past Popen


def test_the_end_of_a_container_is_the_end_of_the_groups_in_its_session(tmp_path):
    """As when the executor of a group of tasks is killed, and they have no environment."""
    done = subprocess.run(
        [sys.executable, "-c", WARDEN, str(tmp_path)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == [b"c-1", b"left:", b"[]"]


def test_what_a_running_container_has_left_behind_is_reaped_and_nobody_elses(start):
    """Also behind one that somebody else waits for, which the kernel names first."""
    somebodys = start(["/bin/true"], {})
    orphans = [start(["/bin/true"], {}) for _ in range(3)]
    first = start(SLEEP, {"MESOS_CONTAINER_ID": "c-1"})
    failed = start(["/bin/false"], {"MESOS_CONTAINER_ID": "c-2"})
    ours = {process.pid for process in (*orphans, first)}
    mine = processes.Processes(shared=True, others=lambda pid: pid not in ours)
    mine.add("c-1", first.pid)
    for process in (somebodys, failed, *orphans):
        ended(process)
    assert mine.reap() == []
    assert ours & set(processes.children()) == {first.pid}
    mine.add("c-2", failed.pid)
    told = told_by(mine)
    assert [(each.container_id, each.status) for each in told] == [("c-2", 256)]
    assert mine.running() == [("c-1", first.pid)]
    assert somebodys.wait() == 0
    for process in (failed, *orphans):
        process.returncode = 0  # it was reaped past Popen


def test_a_process_leads_its_session_until_it_is_reaped(start):
    leader = start(["/bin/true"], {})
    assert processes.leads_session(ended(leader))
    assert not processes.leads_session(start(SLEEP, {}, 0).pid)
    leader.wait()
    assert not processes.leads_session(leader.pid)


@pytest.mark.parametrize(
    ("inherited", "own"), [("-900\n", "0"), ("0\n", "0\n"), ("300\n", "300\n")]
)
def test_protection_from_running_out_of_memory_is_given_up_and_nothing_else(
    tmp_path, inherited, own
):
    score = tmp_path / "oom_score_adj"
    score.write_text(inherited)
    processes.lose_protection(str(score))
    assert score.read_text() == own
