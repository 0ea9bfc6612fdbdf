"""Twins of stragglers."""

from typing import Any

from frameworks.mapreduce.messages import Progress, Running
from tests.kit.mapreduce_brain import Shell, job_id, options, spec, splits


def attempt(kind: str, task: int, number: int = 0) -> str:
    return f"attempt_1_0001_{kind}_{task:06}_{number}"


def straggling(maps: int = 4, reduces: int = 1, **conf: str) -> Shell:
    """All maps but the first are done after 10 s; it has come to 10 % after 12."""
    shell = Shell(options())
    for n in range(4):
        shell.agent(f"a{n}", cpus=1.1)
    shell.submit(spec(1, reduces, **conf), splits(maps))
    shell.offer()
    shell.started(*shell.running())
    shell.sleep(10)
    shell.finish(*[attempt("m", n) for n in range(1, maps)])
    shell.sleep(2)
    said(shell, attempt("m", 0), 0.1)
    shell.tick()
    return shell


def said(shell: Shell, name: str, progress: float, counted: int = 1) -> None:
    counters = {"g": {"maps": counted}}
    message = Progress(attempts={name: Running(progress, "map", "line 7", counters)})
    shell.brain.said(shell.agent_of[name], message, shell.now_s)
    shell.drain()


def test_a_straggler_gets_a_twin_on_another_agent_and_the_first_is_the_one():
    shell = straggling()
    assert shell.asks
    shell.offer_all()
    first, twin = attempt("m", 0), attempt("m", 0, 1)
    assert twin in shell.running()
    assert shell.agent_of[twin] != shell.agent_of[first]
    # One twin, however long it takes.
    shell.tick(50)
    shell.offer_all()
    assert len(shell.running()) == 2
    shell.finish(twin)
    assert shell.killed == [first]
    # The first ends well before its kill gets there: that changes nothing.
    shell.finish(first)
    [task] = [task for task in shell.brain.tasks(job_id(), "map") if task.number == 0]
    assert [(one.state, one.twin, one.why) for one in task.attempts] == [
        ("killed", False, f"{twin} was first"),
        ("done", True, ""),
    ]
    shell.run()
    view = shell.brain.view(job_id())
    assert (view.state, view.maps.twins, view.maps.attempts_failed) == ("succeeded", 1, 0)
    assert view.counters["g"]["maps"] == 4


def all_read(counted: int = 1, **conf: Any) -> tuple[Shell, str]:
    """Maps take 10 s; the first has read all in its first second, and then no more is heard."""
    shell = Shell(options())
    for n in range(4):
        shell.agent(f"a{n}", cpus=1.1)
    shell.submit(spec(1, **conf), splits(4))
    shell.offer()
    shell.started(*shell.running())
    shell.sleep(1)
    said(shell, attempt("m", 0), 0.9)
    shell.sleep(9)
    shell.finish(*[attempt("m", n) for n in range(1, 4)])
    return shell, attempt("m", 0)


def twin_after_s(shell: Shell, name: str, counts: bool = False) -> int | None:
    """When a second attempt is launched, after the first was; nothing for a minute: None.
    Every second the first says again what it has said, or (counts) that it has done more."""
    for second in range(11, 70):
        shell.sleep(1)
        said(shell, name, 0.9, second if counts else 1)
        shell.tick()
        shell.offer_all()
        if name.removesuffix("0") + "1" in shell.launched:
            return second
    return None


def test_one_that_has_read_all_and_hangs_gets_a_twin_after_twice_the_usual_time():
    assert twin_after_s(*all_read()) == 20


def test_one_that_counts_on_is_not_stuck_and_judged_by_its_rate():
    assert twin_after_s(*all_read(), counts=True) is None


def test_one_that_hangs_gets_no_twin_where_they_are_not_wanted():
    assert twin_after_s(*all_read(mapreduce__map__speculative="false")) is None


def test_what_could_not_be_heard_is_not_stuck():
    shell, name = all_read()
    shell.brain.link(False, shell.now_s)
    shell.tick(30)
    shell.brain.link(True, shell.now_s)
    shell.tick(1)
    shell.offer_all()
    assert shell.running() == [name]
    # Heard again, and nothing new is said for 10 s, as long as usual: 1 above, 9 here.
    assert twin_after_s(shell, name) == 10 + 9


def test_of_many_that_hang_few_get_twins_at_a_time():
    shell = Shell(options())
    for n in range(60):
        shell.agent(f"a{n}", cpus=1.1)
    shell.submit(spec(), splits(50))
    shell.offer()
    shell.started(*shell.running())
    shell.sleep(10)
    shell.finish(*[attempt("m", n) for n in range(20)])
    shell.tick(30)
    shell.offer_all()
    twins = [name for name in shell.running() if name.endswith("_1")]
    # A tenth of 30.
    assert len(twins) == 3


def test_reduces_that_wait_for_maps_get_no_twins():
    """Some are done when outputs are lost: the others stand still until they are made again."""
    shell = Shell(options())
    for n in range(4):
        shell.agent(f"a{n}", cpus=2.1)
    shell.submit(spec(1, 4), splits(4))
    shell.offer()
    shell.started(*shell.running())
    shell.finish(*[attempt("m", n) for n in range(4)])
    shell.offer_all()
    reduces = shell.running()
    assert len(reduces) == 4
    shell.started(*reduces)
    shell.sleep(5)
    gone = shell.agent_of[reduces[0]]
    shell.finish(*[name for name in reduces if shell.agent_of[name] == gone])
    shell.commit()
    shell.lose_agent(gone)
    shell.offer_all()
    again = [name for name in shell.running() if "_m_" in name]
    assert len(again) == 1
    shell.tick(30)
    shell.offer_all()
    twins = [name for name in shell.launched if "_r_" in name and name.endswith("_1")]
    assert twins == []
    # With the maps there, who stands still is slow indeed.
    shell.started(*again)
    shell.finish(*again)
    shell.tick(30)
    shell.offer_all()
    assert [name for name in shell.launched if "_r_" in name and name.endswith("_1")]


def test_one_that_has_ended_since_gets_no_twin():
    shell = straggling()
    shell.finish(attempt("m", 0))
    shell.offer_all()
    assert attempt("m", 0, 1) not in shell.launched
    maps = shell.brain.view(job_id()).maps
    assert (maps.done, maps.running, maps.waiting) == (4, 0, 0)


def test_no_part_is_committed_twice():
    shell = straggling(reduces=0)
    shell.commit()
    shell.offer_all()
    shell.finish(attempt("m", 0), attempt("m", 0, 1))
    assert [order.attempt for order in shell.commits] == [attempt("m", 0)]


def test_one_that_is_ended_and_says_that_it_has_failed_was_killed():
    shell = straggling()
    shell.offer_all()
    shell.finish(attempt("m", 0, 1))
    shell.fail(attempt("m", 0), message="Broken pipe")
    [task] = [task for task in shell.brain.tasks(job_id(), "map") if task.number == 0]
    assert (task.failures, task.attempts[0].state) == (0, "killed")
    assert shell.brain.view(job_id()).excluded == ()


def test_a_twin_that_fails_leaves_the_other_one_running():
    shell = straggling(mapreduce__map__maxattempts="2")
    shell.offer_all()
    shell.fail(attempt("m", 0, 1))
    assert shell.brain.view(job_id()).maps.running == 1
    shell.finish(attempt("m", 0))
    shell.run()
    assert shell.brain.view(job_id()).state == "succeeded"


def test_no_twins_where_they_are_not_wanted():
    shell = straggling(mapreduce__map__speculative="false")
    shell.offer_all()
    assert shell.running() == [attempt("m", 0)]
    assert not shell.asks


def test_no_twins_while_tasks_wait():
    shell = straggling(maps=4)
    shell.submit(spec(2, 0), splits(4))
    shell.offer_all()
    # Three are free: the other job's maps come first.
    assert [name for name in shell.running() if "_1_0001_" in name] == [attempt("m", 0)]
    assert len(shell.running()) == 4


def test_what_runs_is_shown():
    shell = straggling()
    view = shell.brain.view(job_id())
    assert view.maps.progress == 0.775
    assert view.maps.eta_s == 9.0
    assert view.counters["g"] == {"maps": 4}
    [task] = shell.brain.tasks(job_id(), state="running")
    [one] = task.attempts
    assert (one.progress, one.phase, one.status, one.state) == (0.1, "map", "line 7", "running")
    assert task.where == "/in/a:0+10"
    waiting = shell.brain.tasks(job_id(), state="waiting")
    assert [(task.kind, task.where, task.attempts) for task in waiting] == [("reduce", "", ())]


def test_pages_of_tasks():
    shell = Shell(options())
    shell.submit(spec(reduces=2), splits(3))
    brain = shell.brain
    ids = [task.task_id[-8:] for task in brain.tasks(job_id(), since=2, limit=2)]
    assert ids == ["m_000002", "r_000000"]
    assert [task.number for task in brain.tasks(job_id(), "reduce")] == [0, 1]


def test_a_failed_job_shows_where_it_failed():
    shell = Shell(options())
    shell.agent("a0")
    shell.submit(spec(), splits(1))
    shell.offer()
    shell.fail(attempt("m", 0), blame="job", message="SyntaxError")
    view = shell.brain.view(job_id())
    assert (view.failed_attempt, view.failed_host) == (attempt("m", 0), "a0.example")
    assert view.why == "SyntaxError"
