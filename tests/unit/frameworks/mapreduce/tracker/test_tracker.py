"""A whole tracker against a pretended cluster: jobs from their submission to their history."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from frameworks.mapreduce.core.views import JobView
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.messages import Progress
from frameworks.mapreduce.names import Kind
from frameworks.mapreduce.records import encode
from frameworks.mapreduce.tracker import sweep
from frameworks.mapreduce.tracker.committing import Output
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.tracker import Tracker
from frameworks.mapreduce.work import Failure, Work
from mesos_py import Resources
from mesos_py.errors import AlreadyExists, InvalidValue, NotFound, Superseded, Unavailable
from mesos_py.v1.scheduler_pb2 import Call
from tests.kit.mapreduce_workers import JOB, FakeWorkers, Result, fail, job, succeed, written
from tests.kit.waiting import until

AGENTS = {"a1": Resources.of(cpus=4, mem=4096)}


@pytest.fixture
def cluster() -> Iterator[FakeWorkers]:
    with FakeWorkers(AGENTS) as cluster:
        yield cluster


@contextmanager
def running(cluster: FakeWorkers, tmp_path: Path, end: bool = True) -> Iterator[Tracker]:
    tracker = started(cluster, tmp_path)
    try:
        yield tracker
    finally:
        tracker.stop(end=end)


def started(cluster: FakeWorkers, tmp_path: Path, **more: object) -> Tracker:
    state = str(tmp_path / "state")
    tracker = Tracker(TrackerOptions(master=cluster.address, state=state, **more))  # type: ignore[arg-type]
    tracker.start()
    assert tracker.wait_active(30)
    return tracker


def ended(tracker: Tracker, job_id: str = JOB) -> JobView:
    until(lambda: tracker.view(job_id).state in ("succeeded", "failed", "killed"))
    return tracker.view(job_id)


def resting(tracker: Tracker) -> None:
    until(lambda: tracker.is_idle)


def states(tracker: Tracker, kind: Kind) -> list[str]:
    """Of attempts: they run once their workers say so."""
    return [one.state for task in tracker.tasks(JOB, kind) for one in task.attempts]


def test_a_job_runs_to_its_end_and_leaves_its_output_and_its_history(cluster, tmp_path):
    spec = job(tmp_path, maps=3, reduces=2)
    with running(cluster, tmp_path) as tracker:
        tracker.submit(spec)
        assert ended(tracker).state == "succeeded"
        out = written(spec)
        assert sorted(out) == ["_SUCCESS", "part-00000", "part-00001"]
        assert [task.state for task in tracker.tasks(JOB)] == ["done"] * 5
        resting(tracker)
        # Nothing but the history is left, and it says the same.
        assert not (tmp_path / "state" / "jobs" / JOB).exists()
        assert tracker.view(JOB).state == "succeeded"
        assert len(tracker.tasks(JOB)) == 5
        assert [each.job_id for each in tracker.views()] == [JOB]
        assert {each[2] for each in cluster.forgotten} == {JOB}


def test_a_job_without_reduces(cluster, tmp_path):
    spec = job(tmp_path, maps=3, reduces=0)
    with running(cluster, tmp_path) as tracker:
        tracker.submit(spec)
        assert ended(tracker).state == "succeeded"
    assert sorted(written(spec)) == ["_SUCCESS", "part-00000", "part-00001", "part-00002"]


def test_a_job_without_input_files(cluster, tmp_path):
    spec = job(tmp_path, maps=0, reduces=1)
    with running(cluster, tmp_path) as tracker:
        tracker.submit(spec)
        assert ended(tracker).state == "succeeded"
    assert sorted(written(spec)) == ["_SUCCESS", "part-00000"]


def test_a_job_that_fails_says_why_and_leaves_no_success(tmp_path):
    with FakeWorkers(AGENTS, fail) as cluster, running(cluster, tmp_path) as tracker:
        tracker.submit(job(tmp_path))
        view = ended(tracker)
        assert view.state == "failed"
        assert view.failure is not None
        assert view.failure.message == "it raised ValueError"
        assert not Path(job(tmp_path).output).exists()
        resting(tracker)
        # So it can be run again.
        assert tracker.summaries()[0].view.state == "failed"


def test_a_job_is_killed(tmp_path):
    with FakeWorkers(AGENTS, lambda _: None) as cluster, running(cluster, tmp_path) as tracker:
        tracker.submit(job(tmp_path))
        until(lambda: tracker.view(JOB).maps.running == 2)
        tracker.kill(JOB, "not needed any more")
        view = ended(tracker)
        assert (view.state, view.why) == ("killed", "not needed any more")
        resting(tracker)
        tracker.kill(JOB, "again")
        with pytest.raises(NotFound):
            tracker.kill("job_1_0001", "unknown")


def test_what_cannot_be_begun_is_refused_and_leaves_nothing(cluster, tmp_path):
    spec = job(tmp_path)
    with running(cluster, tmp_path) as tracker:
        with pytest.raises(NotFound):
            tracker.submit(job(tmp_path, inputs=("/nowhere/at/all",)))
        with pytest.raises(InvalidValue):
            tracker.submit(job(tmp_path, conf={"mapreduce.map.maxattempts": "many"}))
        assert not Path(spec.output).exists()
        with pytest.raises(InvalidValue):
            tracker.submit(job(tmp_path, job_id="job1", output=spec.output))
        Path(spec.output).mkdir()
        with pytest.raises(AlreadyExists):
            tracker.submit(spec)
        assert list((tmp_path / "state" / "jobs").rglob("*.json")) == []
        Path(spec.output).rmdir()
        tracker.submit(spec)
        assert ended(tracker).state == "succeeded"


def test_a_job_that_is_submitted_again_is_the_same_job(cluster, tmp_path):
    spec = job(tmp_path)
    with running(cluster, tmp_path) as tracker:
        refused: list[BaseException] = []

        def submit() -> None:
            try:
                tracker.submit(spec)
            except BaseException as error:
                refused.append(error)

        threads = [threading.Thread(target=submit) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused == []
        with pytest.raises(AlreadyExists):
            tracker.submit(job(tmp_path, name="another"))
        assert ended(tracker).state == "succeeded"
        resting(tracker)
        tracker.submit(spec)
        assert len(cluster.launched) == 3


def test_a_tracker_goes_on_where_another_has_left(tmp_path):
    """Maps are done, the reduce runs: it is taken over, and not launched again."""

    def does(work: Work) -> Result | None:
        return succeed(work) if work.split is not None else None

    spec = job(tmp_path)
    with FakeWorkers(AGENTS, does) as cluster:
        with running(cluster, tmp_path, end=False) as first:
            first.submit(spec)
            until(lambda: first.view(JOB).reduces.running == 1)
        before = list(cluster.launched)
        with running(cluster, tmp_path) as second:
            until(lambda: second.view(JOB).reduces.running == 1)
            assert second.view(JOB).maps.done == 2
            assert cluster.launched == before
            second.kill(JOB, "seen enough")
            ended(second)


def test_a_tracker_that_was_replaced_ends_and_changes_nothing(tmp_path):
    with FakeWorkers(AGENTS, lambda _: None) as cluster:
        first = started(cluster, tmp_path)
        first.submit(job(tmp_path))
        until(lambda: first.view(JOB).maps.running == 2)
        with running(cluster, tmp_path) as second:
            with pytest.raises(Unavailable):
                first.kill(JOB, "too late")
            with pytest.raises(Superseded):
                first.join(30)
            with pytest.raises(Unavailable):
                first.view(JOB)
            assert second.view(JOB).maps.running == 2
            second.kill(JOB, "seen enough")
            assert ended(second).why == "seen enough"
        first.stop(end=False)


def test_an_end_is_gone_through_again_by_the_next_tracker(cluster, tmp_path):
    """The first one ends while agents have not answered yet."""
    cluster.answers_forget = False
    spec = job(tmp_path)
    with running(cluster, tmp_path, end=False) as first:
        first.submit(spec)
        ended(first)
    assert (tmp_path / "state" / "jobs" / JOB / "job.json").exists()
    cluster.answers_forget = True
    with running(cluster, tmp_path) as second:
        resting(second)
        assert second.view(JOB).state == "succeeded"
    assert not (tmp_path / "state" / "jobs" / JOB).exists()
    assert sorted(written(spec)) == ["_SUCCESS", "part-00000"]


def test_a_lost_worker_fails_what_ran_in_it_and_its_files_are_removed_by_a_command(tmp_path):
    lost = threading.Event()

    def does(work: Work) -> Result | None:
        return succeed(work) if work.split is not None or lost.is_set() else None

    spec = job(tmp_path)
    with FakeWorkers(AGENTS, does) as cluster, running(cluster, tmp_path) as tracker:
        tracker.submit(spec)
        until(lambda: states(tracker, "reduce") == ["running"])
        lost.set()
        worker = tracker.tasks(JOB, "reduce")[0].attempts[0].worker_id
        cluster.lose_worker("a1", worker, "memory limit exceeded: 300 MB")
        view = ended(tracker)
        assert view.state == "succeeded"
        assert view.reduces.attempts_failed == 1
        failure = tracker.tasks(JOB, "reduce")[0].attempts[0].failure
        assert failure is not None
        # What the agent knew of it, not that the worker has ended.
        assert failure.message.startswith("memory limit exceeded: 300 MB")
        resting(tracker)
        commands = [list(one.command.arguments) for one in cluster.commands]
        assert [sweep.command(commands[0][4], worker, JOB)] == commands


def test_what_is_asked_back_is_given_and_costs_no_failure(tmp_path):
    taken = threading.Event()

    def does(work: Work) -> Result | None:
        return succeed(work) if taken.is_set() else None

    with FakeWorkers(AGENTS, does) as cluster, running(cluster, tmp_path) as tracker:
        tracker.submit(job(tmp_path, maps=3))
        until(lambda: len(cluster.works) == 3)
        taken.set()
        cluster.ask_back("a1", Resources.of(cpus=1.5))
        until(lambda: tracker.view(JOB).maps.done == 2)
        assert tracker.view(JOB).maps.attempts_failed == 0
        states = {a.attempt: a.state for t in tracker.tasks(JOB, "map") for a in t.attempts}
        first = [states[attempt] for attempt, _ in cluster.launched[:3]]
        assert first == ["running", "preempted", "preempted"]
        tracker.kill(JOB, "seen enough")
        ended(tracker)


def test_a_part_whose_commit_was_cut_off_is_committed_by_the_next_tracker(cluster, tmp_path):
    """The choice is written down; the first tracker ends before it has moved the part."""
    spec = job(tmp_path, maps=2, reduces=0)
    stuck = threading.Event()

    def commit(self: Output, part_url: str) -> None:
        stuck.set()
        raise OSError(5, "Input/output error")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Output, "commit", commit)
        with running(cluster, tmp_path, end=False) as first:
            first.submit(spec)
            assert stuck.wait(30)
            until(lambda: first.view(JOB).maps.committing == 2)
    assert "_SUCCESS" not in written(spec)
    with running(cluster, tmp_path) as second:
        assert ended(second).state == "succeeded"
    assert sorted(written(spec)) == ["_SUCCESS", "part-00000", "part-00001"]
    assert len(cluster.launched) == 2


def test_an_output_that_was_made_for_a_job_and_the_job_not_begun_is_used(cluster, tmp_path):
    """The tracker has died between the two; then its job comes again, or another one with that
    output."""
    again, other = job(tmp_path), job(tmp_path, "job_20261128141500_0002")
    mine = msgspec.structs.replace(other, output=str(tmp_path / "out-2"))
    with running(cluster, tmp_path) as tracker:
        for made in (again, msgspec.structs.replace(mine, job_id="job_20261128141500_0003")):
            spec = msgspec.structs.replace(made, staging=tracker.staging(made.job_id))
            tracker.store.put_job(spec)
            Output(spec).prepare(state=tracker.store.place.url)
        tracker.submit(again)
        tracker.submit(mine)
        assert ended(tracker).state == "succeeded"
        assert ended(tracker, mine.job_id).state == "succeeded"
        with pytest.raises(AlreadyExists):
            tracker.submit(msgspec.structs.replace(mine, job_id="job_20261128141500_0004"))
    for spec in (again, mine):
        assert sorted(written(spec)) == ["_SUCCESS", "part-00000"]


def test_an_output_that_a_job_of_ours_is_writing_is_refused(tmp_path):
    with FakeWorkers(AGENTS, lambda _: None) as cluster, running(cluster, tmp_path) as tracker:
        first = job(tmp_path)
        tracker.submit(first)
        second = job(tmp_path, "job_20261128141500_0002", output=first.output)
        with pytest.raises(AlreadyExists, match=f"{JOB} is writing it"):
            tracker.submit(second)
        tracker.kill(JOB, "seen enough")
        ended(tracker)


def in_the_way(work: Work) -> Result:
    """Where the last file of the output is to be, there is a directory."""
    place = Path(work.out.removeprefix("file://")).parents[2] / "_SUCCESS"
    place.mkdir(exist_ok=True)
    return succeed(work)


def test_an_output_that_cannot_be_completed_is_shown_until_it_can(tmp_path):
    spec = job(tmp_path, maps=1, reduces=0)
    with FakeWorkers(AGENTS, in_the_way) as cluster, running(cluster, tmp_path) as tracker:
        tracker.submit(spec)
        until(lambda: tracker.view(JOB).trouble is not None)
        view = tracker.view(JOB)
        assert view.state == "finishing"
        assert view.trouble is not None
        assert view.trouble.what == "completing it"
        assert "IsADirectoryError" in view.trouble.why
        assert view.trouble.tries >= 1
        assert view.trouble.until_s == pytest.approx(view.trouble.since_s + 600)
        (Path(spec.output) / "_SUCCESS").rmdir()
        view = ended(tracker)
        assert (view.state, view.trouble) == ("succeeded", None)
    assert sorted(written(spec)) == ["_SUCCESS", "part-00000"]


def test_a_job_whose_output_cannot_be_completed_for_long_fails_and_says_why(tmp_path):
    spec = job(tmp_path, maps=1, reduces=0, conf={"mesos.output.patience": "0.05"})
    with FakeWorkers(AGENTS, in_the_way) as cluster, running(cluster, tmp_path) as tracker:
        tracker.submit(spec)
        view = ended(tracker)
        assert view.state == "failed"
        assert view.failure is not None
        assert "completing it has failed: IsADirectoryError" in view.failure.message
        assert "(2 tries in " in view.failure.message
        resting(tracker)
        assert tracker.view(JOB).failure == view.failure
    assert sorted(written(spec)) == ["part-00000"]


def test_a_part_that_is_gone_is_made_again(tmp_path):
    """As when somebody has cleaned up in the output directory."""
    lost: list[str] = []

    def does(work: Work) -> Result:
        result = succeed(work)
        if not lost:
            lost.append(work.attempt)
            Path(work.out.removeprefix("file://")).unlink()
        return result

    spec = job(tmp_path, maps=1, reduces=0)
    with FakeWorkers(AGENTS, does) as cluster, running(cluster, tmp_path) as tracker:
        tracker.submit(spec)
        assert ended(tracker).state == "succeeded"
        [task] = tracker.tasks(JOB)
        assert [attempt.state for attempt in task.attempts] == ["failed", "done"]
    assert sorted(written(spec)) == ["_SUCCESS", "part-00000"]


def test_many_jobs_at_once_all_end(cluster, tmp_path):
    specs = [job(tmp_path, f"job_20261128141500_{number:04}", maps=1) for number in range(1, 41)]
    with running(cluster, tmp_path) as tracker:

        def submit(part: list[JobSpec]) -> None:
            for spec in part:
                tracker.submit(spec)

        parts = (specs[:10], specs[10:20], specs[20:30], specs[30:])
        threads = [threading.Thread(target=submit, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for spec in specs:
            assert ended(tracker, spec.job_id).state == "succeeded"
        resting(tracker)
        assert [view.job_id for view in tracker.views()] == [spec.job_id for spec in specs]


@pytest.mark.parametrize("make", [lambda place: place.mkdir(), lambda place: None])
def test_a_state_of_before_is_used_or_made(cluster, tmp_path, make: Callable[[Path], None]):
    make(tmp_path / "state")
    with running(cluster, tmp_path) as tracker:
        assert tracker.info.active
        assert tracker.info.epoch == 1
    with running(cluster, tmp_path) as tracker:
        assert tracker.info.epoch == 2


def test_one_that_could_not_begin_can_be_stopped(cluster, tmp_path):
    (tmp_path / "state").write_text("in the way")
    tracker = Tracker(TrackerOptions(master=cluster.address, state=str(tmp_path / "state")))
    with pytest.raises(OSError, match="state"):
        tracker.start()
    stopping = threading.Thread(target=lambda: tracker.stop(end=tracker.is_idle), daemon=True)
    stopping.start()
    stopping.join(10)
    assert not stopping.is_alive()


def test_a_failure_of_a_place_says_what_the_agent_said(tmp_path):
    def does(work: Work) -> Result | None:
        return Failure(blame="job", message="no such program")

    with FakeWorkers(AGENTS, does) as cluster, running(cluster, tmp_path) as tracker:
        tracker.submit(job(tmp_path))
        view = ended(tracker)
        assert view.failure is not None
        assert view.failure.message == "no such program"
        # Said at once, and not tried again.
        assert len(cluster.launched) == 2


def test_a_worker_that_nobody_counts_on_is_told_to_end(cluster, tmp_path):
    with running(cluster, tmp_path):
        cluster.message("a1", "worker-7-1", encode(Progress(attempts={})))
        until(lambda: "worker-7-1" in shut_down(cluster))


def shut_down(cluster: FakeWorkers) -> list[str]:
    return [call.shutdown.executor_id.value for call in cluster.calls if call.type == Call.SHUTDOWN]
