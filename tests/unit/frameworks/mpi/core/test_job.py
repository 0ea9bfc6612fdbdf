"""When a job has ended, and how."""

import pytest

from frameworks.mpi.core.job import LAST_WORDS_S, VANISHED, Host, Job
from frameworks.mpi.core.streams import Report
from mesos_py import (
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_LOST,
    TASK_UNREACHABLE,
    TaskID,
    TaskState,
    TaskStatus,
)


def job(**more) -> Job:
    hosts = [Host("A", "a", "t0", 1), Host("B", "b", "t1", 1)]
    made = Job(hosts, start_timeout_s=30.0, now_s=0.0, **more)
    for rank in (0, 1):
        made.reported(Report(rank), 1.0)
    return made


def verdict_at(made: Job, now_s: float) -> tuple[int, str] | None:
    made.look(now_s)
    return None if made.verdict is None else (made.verdict.code, made.verdict.why)


def test_all_ranks_ended_well_and_the_launcher_too():
    made = job()
    for rank in (0, 1):
        made.reported(Report(rank, 0), 2.0)
    made.launcher_ended(0, 3.0)
    assert verdict_at(made, 3.0) == (0, "")


def test_the_first_rank_that_fails_counts():
    made = job()
    made.reported(Report(1, 137), 2.0)
    made.reported(Report(0, 15), 2.1)
    assert verdict_at(made, 3.0) == (137, "rank 1 on b was ended by SIGKILL")


def test_a_rank_that_left_before_mpi_init_ends_the_job_after_the_start_timeout():
    made = job()
    made.reported(Report(1, 0), 2.0)
    made.reported(Report(1, finished=False), 3.0)
    assert verdict_at(made, 31.9) is None
    made.look(32.0)
    code, why = verdict_at(made, 33.0) or (0, "")
    assert (code, "rank 1 on b has ended (exit code 0) without MPI_Finalize" in why) == (1, True)


def test_a_rank_that_has_finalized_may_end_long_before_the_others():
    made = job()
    made.reported(Report(1, 0), 2.0)
    made.reported(Report(1, finished=True), 2.1)
    assert verdict_at(made, 9999.0) is None


def test_where_the_launcher_tells_who_has_entered_that_is_what_counts():
    made = job(told=True)
    made.entered(1)
    made.reported(Report(1, 0), 2.0)
    assert verdict_at(made, 9999.0) is None


def test_the_end_of_an_agent_explains_that_of_the_launcher():
    made = job()
    made.launcher_ended(255, 2.0)
    assert made.unexplained
    made.agent_lost("B", "does not answer any more", 3.0)
    assert verdict_at(made, 4.5) == (4, "agent b (B) does not answer any more")


# --- what came first is what is named -----------------------------------------------------------


def status(task: str, state: TaskState.ValueType, code: int | None = None, **more) -> TaskStatus:
    made = TaskStatus(task_id=TaskID(value=task), state=state, **more)
    if code is not None:
        made.exit_status.exit_code = code
    return made


@pytest.mark.parametrize(
    ("proxy", "named"),
    [
        (status("t1", TASK_FAILED, 137, message="killed"), (4, "the proxy on b: FAILED: killed")),
        (status("t1", TASK_FAILED, 143), (4, "the proxy on b: FAILED")),
        (
            status("t1", TASK_FAILED, VANISHED),
            (4, "the proxy on b: what a rank runs under was killed there"),
        ),
        (status("t1", TASK_KILLED, message="by ops"), (4, "the proxy on b: KILLED: by ops")),
        (
            status("t1", TASK_FAILED, 1, reason=TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY),
            (4, "the proxy on b: FAILED"),
        ),
        # What a proxy does that has lost its rank.
        (status("t1", TASK_FAILED, 213), (143, "rank 0 on a was ended by SIGTERM")),
    ],
)
@pytest.mark.parametrize("rank_first", [True, False])
def test_a_killed_proxy_explains_the_ranks_elsewhere_that_miss_it(proxy, named, rank_first):
    made = job()
    if rank_first:
        made.reported(Report(0, 143), 2.0)
        made.launcher_ended(15, 2.1)
        assert verdict_at(made, 2.2) is None
        made.status(proxy, 2.5)
    else:
        made.status(proxy, 2.0)
        made.reported(Report(0, 143), 2.1)
        made.launcher_ended(15, 2.5)
    made.status(status("t0", TASK_FAILED, 1), 2.6)
    assert verdict_at(made, 2.6) == named


def test_who_has_failed_is_known_at_once_when_all_tasks_have_ended():
    made = job()
    made.reported(Report(0, 3), 2.0)
    made.launcher_ended(3, 2.1)
    made.status(status("t0", TASK_FAILED, 3), 2.2)
    assert verdict_at(made, 2.2) is None
    made.status(status("t1", TASK_FINISHED), 2.3)
    assert verdict_at(made, 2.3) == (3, "rank 0 on a has ended with exit code 3")


def test_a_task_that_is_not_heard_of_is_not_waited_for_long():
    made = job()
    made.reported(Report(0, 3), 2.0)
    made.launcher_ended(3, 2.1)
    assert verdict_at(made, 2.1 + LAST_WORDS_S) == (3, "rank 0 on a has ended with exit code 3")


def test_what_the_launcher_tells_counts_where_a_keeper_did_not_come_to_word():
    made = job(told=True)
    made.status(status("t0", TASK_FAILED, 213), 2.0)
    made.told_failed(1, 2.1)
    made.launcher_ended(137, 2.2)
    made.status(status("t1", TASK_FINISHED), 2.3)
    assert verdict_at(made, 2.3) == (137, "rank 1 on b was ended by SIGKILL")


def test_a_keepers_word_is_better_than_the_launchers():
    made = job(told=True)
    made.told_failed(1, 2.0)
    made.reported(Report(1, 9), 2.1)
    assert verdict_at(made, 3.1) == (9, "rank 1 on b has ended with exit code 9")


def test_an_agent_that_has_gone_explains_ranks_that_failed_meanwhile():
    made = job()
    made.reported(Report(0, 15), 2.0)
    made.agent_lost("B", "does not answer any more", 2.9)
    assert verdict_at(made, 3.0) == (4, "agent b (B) does not answer any more")
    assert [host.task_id for host in made.awaited_tasks] == ["t0"]
    assert [host.task_id for host in made.live_tasks] == ["t0", "t1"]


# --- proxies that stumble when all is done ------------------------------------------------------


def stumbling() -> Job:
    made = job()
    made.status(status("t1", TASK_FAILED, 139), 2.0)
    made.reported(Report(1, 0), 2.1)
    return made


@pytest.mark.parametrize("early", [True, False])
def test_a_proxy_that_stumbles_after_its_ranks_does_no_harm(early):
    made = stumbling()
    assert not early or verdict_at(made, 3.0) is None
    made.reported(Report(0, 0), 3.1)
    made.launcher_ended(0, 3.2)
    assert verdict_at(made, 3.2 + LAST_WORDS_S) == (0, "")


@pytest.mark.parametrize("early", [True, False])
def test_it_is_named_where_the_launcher_fails_for_it(early):
    made = stumbling()
    assert not early or verdict_at(made, 3.0) is None
    made.launcher_ended(255, 3.2)
    assert verdict_at(made, 3.2 + LAST_WORDS_S) == (4, "the proxy on b: FAILED")


@pytest.mark.parametrize(
    "lost",
    [
        status("t1", TASK_UNREACHABLE, message="4 pings went unanswered"),
        status("t1", TASK_LOST, reason=TaskStatus.REASON_AGENT_REMOVED, message="4 pings"),
    ],
)
def test_an_agent_that_the_master_gives_up_is_named(lost):
    made = job()
    made.status(lost, 2.0)
    code, why = verdict_at(made, 3.0) or (0, "")
    assert (code, why.startswith("agent b (B) is lost: 4 pings")) == (4, True)
    assert [host.task_id for host in made.awaited_tasks] == ["t0"]


@pytest.mark.parametrize(
    ("code", "started", "again"), [(213, 0, True), (213, 1, False), (9, 0, False)]
)
def test_a_proxy_that_could_not_begin_is_tried_again_if_nothing_runs(code, started, again):
    hosts = [Host("A", "a", "t0", 1), Host("B", "b", "t1", 1)]
    made = Job(hosts, start_timeout_s=30.0, now_s=0.0, unbegun=(213,))
    for rank in range(started):
        made.reported(Report(rank), 1.0)
    status = TaskStatus(task_id=TaskID(value="t1"), state=TASK_FAILED, message="it ended")
    status.exit_status.exit_code = code
    made.status(status, 1.0)
    made.launcher_ended(1, 1.1)
    made.look(20.0)
    assert made.verdict is not None
    assert made.verdict.again is again
    assert made.verdict.why == "the proxy on b: FAILED: it ended"
