"""Workers and agents: how many, for how long, and which are left alone."""

import pytest

from frameworks.mapreduce.core.options import Options
from frameworks.mapreduce.core.orders import Failed, Launch, Room
from frameworks.mapreduce.messages import Forget, Forgotten, Progress
from frameworks.mapreduce.work import Failure
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from tests.kit.mapreduce_brain import WORKER_NEEDS, Shell, job_id, options, spec, splits


def attempt(kind: str, task: int, number: int = 0) -> str:
    return f"attempt_1_0001_{kind}_{task:06}_{number}"


def test_a_worker_stays_for_several_tasks_and_is_released_when_idle():
    shell = Shell(options(idle_s=10.0))
    shell.agent("a0", cpus=1.1)
    shell.submit(spec(reduces=0), splits(3))
    shell.run()
    assert shell.brain.view(job_id()).state == "succeeded"
    assert len(shell.launched) == 3
    assert shell.agents["a0"].workers == {"worker-1"}
    shell.brain.said("a0", Forgotten(job_id()), shell.now_s)
    shell.tick(8)
    assert shell.released == []
    shell.tick(1)
    shell.tick(1)
    assert shell.released == ["worker-1"]
    assert shell.tick(1) is None


def test_without_jobs_nothing_is_launched_and_no_offers_are_asked_for():
    shell = Shell(options())
    shell.agent("a0")
    for _ in range(300):
        shell.tick(1)
        shell.offer()
    assert (shell.launched, shell.revived) == ([], 0)


def test_a_worker_whose_room_is_there_twice_over_is_counted_once():
    shell = Shell(options())
    shell.agent("a0", cpus=2.1)
    shell.submit(spec(reduces=0), splits(2))
    shell.offer()
    # 2.1 cores: 0.1 for the worker, once, and two tasks.
    assert len(shell.running()) == 2


def test_an_offer_without_room_for_a_worker_is_declined():
    shell = Shell(options())
    shell.agent("a0", cpus=1.05)
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    assert shell.running() == []


def test_where_a_worker_ended_unheard_there_must_be_room_for_another_one():
    shell = Shell(options())
    agent = shell.agent("a0", cpus=2.1)
    shell.submit(spec(reduces=0), splits(3))
    shell.offer()
    shell.started(*shell.running())
    shell.finish(*shell.running())
    shell.commit()
    agent.workers.clear()
    room = Room("o", "a0", "a0.example", "", Resources.of(cpus=1, mem=1024))
    shell.brain.offers([room], shell.now_s)
    [last] = [o for o in shell.brain.take_orders() if isinstance(o, Launch)]
    # The master refuses it: there is no such worker, and no room for one.
    refused = Failure(blame="place", message="resources.cpus: 1.1 wanted, the offers have 1 left")
    shell.brain.ended(last.starts[0].attempt, Failed(refused), shell.now_s)
    shell.sleep(20)
    shell.brain.offers([room], shell.now_s)
    assert not any(isinstance(order, Launch) for order in shell.brain.take_orders())
    enough = Room("p", "a0", "a0.example", "", Resources.of(cpus=1.1, mem=1088))
    shell.brain.offers([enough], shell.now_s)
    assert any(isinstance(order, Launch) for order in shell.brain.take_orders())
    assert shell.brain.view(job_id()).state == "running"


def test_no_more_agents_are_used_than_is_allowed():
    shell = Shell(options(max_workers=2))
    for n in range(4):
        shell.agent(f"a{n}", cpus=1.1)
    shell.submit(spec(reduces=0), splits(4))
    shell.offer()
    assert len({shell.agent_of[name] for name in shell.running()}) == 2
    said = shell.brain.view(job_id()).waiting_for
    assert said == "room on the 2 agents that may be used at a time"
    shell.run()
    assert len(set(shell.agent_of.values())) == 2


def test_workers_are_told_to_forget_a_job_until_they_answer():
    shell = Shell(options(idle_s=5.0))
    shell.agent("a0")
    shell.submit(spec(reduces=1), splits(1))
    shell.run()
    for _ in range(6):
        shell.tick(1)
    told = [message for message in shell.messages() if message == Forget(job_id())]
    assert len(told) == 4
    # Until then it is not released.
    assert shell.released == []
    shell.brain.said("a0", Forgotten(job_id()), shell.now_s)
    shell.tick(1)
    assert shell.released == ["worker-1"]


def test_a_worker_that_never_answers_is_released_all_the_same():
    shell = Shell(options(idle_s=5.0))
    shell.agent("a0")
    shell.submit(spec(reduces=1), splits(1))
    shell.run()
    for _ in range(30):
        shell.tick(1)
    assert shell.released == ["worker-1"]


def test_a_worker_is_not_kept_for_its_outputs_while_no_other_may_come():
    shell = Shell(options(idle_s=5.0, max_workers=1))
    shell.agent("a0", cpus=1.1)
    shell.submit(spec(reduces=1), splits(1))
    shell.offer()
    shell.finish(*shell.running())
    # Others have taken its room, and there is some elsewhere.
    shell.agents["a0"].total = WORKER_NEEDS
    shell.agent("a1", cpus=1.1)
    for _ in range(10):
        shell.tick(1)
        shell.offer_all()
    assert shell.agent_of[attempt("r", 0)] == "a1"


def test_of_a_worker_of_a_predecessor_that_is_gone_nothing_is_kept():
    shell = Shell(options(idle_s=5.0))
    shell.agent("a0", cpus=1.1)
    shell.submit(spec(reduces=1, mapreduce__reduce__memory__mb="9000"), splits(1))
    shell.offer()
    shell.finish(*shell.running())
    shell.restart()
    for _ in range(8):
        shell.tick(1)
    assert shell.released == ["worker-1"]


def test_a_worker_with_outputs_that_are_to_be_removed_is_kept_as_long():
    shell = Shell(options(idle_s=5.0))
    shell.agent("a0", cpus=1.1)
    shell.submit(spec(reduces=1, mapreduce__reduce__memory__mb="9000"), splits(1))
    shell.offer()
    shell.finish(*shell.running())
    for _ in range(20):
        shell.tick(1)
    assert shell.released == []
    shell.brain.kill(job_id(), "", shell.now_s)
    shell.drain()
    shell.complete()
    for _ in range(30):
        shell.tick(1)
    assert shell.released == ["worker-1"]


def test_what_runs_in_a_worker_that_ends_has_failed_there():
    shell = Shell(options())
    shell.agent("a0")
    shell.submit(spec(reduces=0, mapreduce__map__maxattempts="2"), splits(1))
    for number in (0, 1):
        shell.offer_all()
        [name] = shell.running()
        shell.agents["a0"].running.clear()
        shell.agents["a0"].workers.clear()
        worker_id = shell.brain.agents()[0].worker_id
        assert worker_id == f"worker-{number + 1}"
        shell.brain.worker_lost("a0", worker_id, "signal 9", shell.now_s)
        shell.drain()
        # The status that follows says nothing new.
        shell.end(name, Failed(Failure(blame="place", message="executor terminated")))
        shell.brain.worker_lost("a0", worker_id, "signal 9", shell.now_s)
    failure = shell.brain.view(job_id()).failure
    assert failure is not None
    assert failure.message == "its worker has ended: signal 9"


def test_a_worker_that_says_nothing_any_more_is_given_up():
    shell = Shell(options(silence_s=100.0))
    shell.agent("a0")
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    [name] = shell.running()
    shell.tick(99)
    shell.brain.said("a0", Progress(attempts={}), shell.now_s)
    shell.tick(99)
    # While there is no link nobody can be heard.
    shell.brain.link(False, shell.now_s)
    shell.tick(1000)
    shell.brain.link(True, shell.now_s)
    shell.tick(100)
    assert shell.released == []
    shell.tick(1)
    assert shell.released == ["worker-1"]
    [task] = shell.brain.tasks(job_id())
    assert (task.attempts[0].attempt, task.failures) == (name, 1)
    shell.offer_all()
    assert shell.brain.agents()[0].worker_id == "worker-2"


def test_a_worker_that_had_nothing_to_say_is_not_taken_to_hang():
    shell = Shell(options(silence_s=100.0, idle_s=1000.0))
    shell.agent("a0")
    shell.submit(spec(1, 0), splits(1))
    shell.run()
    for _ in range(20):
        shell.tick(10)
    shell.submit(spec(2, 0), splits(1))
    shell.offer_all()
    shell.tick(1)
    assert len(shell.running()) == 1
    assert shell.brain.agents()[0].running == 1


# ---- Offers for short tasks ----------------------------------------------------------------


def short(shell: Shell, seconds: float) -> bool:
    """Whether an offer for tasks of so many seconds is used."""
    agent = shell.agents["a0"]
    room = Room("short", "a0", agent.hostname, "", Resources.of(cpus=1, mem=256), seconds)
    shell.brain.offers([room], shell.now_s)
    return any(isinstance(order, Launch) for order in shell.brain.take_orders())


def test_offers_for_short_tasks_are_used_once_it_is_known_that_tasks_are_short():
    shell = Shell(options())
    shell.agent("a0", cpus=1.1)
    shell.submit(spec(reduces=0), splits(9))
    assert not short(shell, 60.0)
    for _ in range(3):
        shell.offer_all()
        assert not short(shell, 60.0)
        shell.tick(10)
        shell.finish(*shell.running())
    assert not short(shell, 14.0)
    assert short(shell, 15.0)


# ---- Agents that are left alone ------------------------------------------------------------


def test_a_task_that_has_failed_is_tried_on_another_agent():
    shell = Shell(options())
    shell.agent("a0", cpus=1.1)
    shell.agent("a1", cpus=1.1)
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    assert shell.agent_of[attempt("m", 0)] == "a0"
    shell.fail(attempt("m", 0))
    shell.offer(*shell.rooms(["a0"]))
    assert shell.running() == []
    assert "another agent" in shell.brain.view(job_id()).waiting_for
    shell.offer_all()
    assert shell.agent_of[attempt("m", 0, 1)] == "a1"


def test_rather_than_wait_for_ever_it_is_tried_there_again():
    shell = Shell(options())
    shell.agent("a0", cpus=1.1)
    shell.agent("a1", cpus=1.1)
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    shell.fail(attempt("m", 0))
    shell.sleep(10)
    shell.offer(*shell.rooms(["a0"]))
    assert shell.agent_of[attempt("m", 0, 1)] == "a0"


def test_an_agent_on_which_much_has_failed_is_not_used_for_the_job_for_a_while():
    shell = Shell(options(exclude_s=100.0, agent_failures=99))
    shell.agent("a0", cpus=2.1)
    shell.agent("a1", cpus=2.1)
    made = spec(reduces=0, mapreduce__job__maxtaskfailures__per__tracker="2")
    shell.submit(made, splits(20))
    shell.offer()
    for name in [name for name in shell.running() if shell.agent_of[name] == "a0"]:
        shell.fail(name)
        shell.sleep(1)
    assert shell.brain.view(job_id()).excluded == ("a0.example",)
    shell.offer_all()
    assert shell.agents["a0"].running == {}
    # Other jobs use it.
    shell.submit(spec(2, 0), splits(1))
    shell.offer_all()
    assert len(shell.agents["a0"].running) == 1
    for _ in range(11):
        shell.tick(10)
    assert shell.brain.view(job_id()).excluded == ()
    shell.offer_all()
    assert len(shell.agents["a0"].running) == 2


def test_an_agent_that_is_at_fault_is_not_used_for_any_job():
    shell = Shell(options(exclude_s=100.0, agent_failures=2))
    shell.agent("a0", cpus=2.1)
    shell.agent("a1", cpus=2.1)
    shell.submit(spec(1, 0), splits(2))
    shell.submit(spec(2, 0), splits(2))
    shell.offer()
    for name in list(shell.agents["a0"].running):
        shell.sleep(1)
        shell.fail(name, blame="place", message="no space left")
    shell.finish(*shell.running())
    shell.offer_all()
    assert shell.agents["a0"].running == {}
    [agent] = [agent for agent in shell.brain.agents() if agent.agent_id == "a0"]
    assert agent.excluded_until_s == shell.now_s + 100


def test_what_is_wrong_with_data_is_no_fault_of_the_agent():
    shell = Shell(options())
    shell.agent("a0", cpus=2.1)
    shell.agent("a1", cpus=2.1)
    made = spec(reduces=0, mapreduce__job__maxtaskfailures__per__tracker="1")
    shell.submit(made, splits(2))
    shell.offer()
    shell.fail(shell.running()[0], blame="data", message="not in gzip format")
    assert shell.brain.view(job_id()).excluded == ()


def test_if_all_agents_are_left_alone_they_are_used_rather_than_none():
    shell = Shell(options())
    shell.agent("a0", cpus=1.1)
    made = spec(
        reduces=0,
        mapreduce__job__maxtaskfailures__per__tracker="1",
        mapreduce__map__maxattempts="9",
    )
    shell.submit(made, splits(1))
    for _ in range(7):
        shell.offer_all()
        [name] = shell.running()
        shell.started(name)
        shell.fail(name, blame="place")
    shell.run()
    assert shell.brain.view(job_id()).state == "succeeded"


# ---- What is shown -------------------------------------------------------------------------


def test_what_fits_nowhere_is_told():
    shell = Shell(options())
    shell.agent("a0", cpus=4.1, mem=4096)
    shell.submit(spec(mapreduce__map__memory__mb="8192"), splits(1))
    assert shell.brain.view(job_id()).waiting_for == "no offers yet"
    shell.offer()
    expected = "needs 8256 MB, largest offer seen 4096 MB"
    assert shell.brain.view(job_id()).waiting_for == expected
    shell.tick(61)
    assert shell.brain.view(job_id()).waiting_for == "no offers for a minute"
    [waiting] = shell.brain.waiting()
    # A worker comes with it.
    assert (waiting.count, waiting.resources) == (1, Resources.of(cpus=1.1, mem=8192 + 64))


def test_options_are_checked():
    with pytest.raises(InvalidValue, match="order"):
        options(order="random")
    with pytest.raises(InvalidValue, match="max_workers"):
        Options(worker_needs=WORKER_NEEDS, extension=lambda conf: "", max_workers=0)
