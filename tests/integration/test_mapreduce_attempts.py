"""Attempts as processes: started, killed, lost, and nothing of them left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from frameworks.mapreduce import records
from frameworks.mapreduce.job import JobSpec, Piece, Program, Split
from frameworks.mapreduce.work import Failure, MapDone, Work
from frameworks.mapreduce.worker.host import Event, Finished, Host, Reported
from frameworks.mapreduce.worker.place import Place
from frameworks.mapreduce.worker.reports import TASKS
from mesos_py.errors import Unavailable
from tests.kit.waiting import LIMIT_S, until

JOB = "job_20261128141500_0001"
ATTEMPT = "attempt_20261128141500_0001_m_000000_0"
# A program of a session of its own, one that ignores signals, and a child of each.
STUBBORN = (
    'bash -c \'trap "" TERM HUP INT; setsid sleep 1000 & (setsid setsid sleep 1000 &); '
    "echo started >&2; sleep 1000'"
)


class Attempts:
    def __init__(self, directory: Path, **options: float) -> None:
        self.directory = directory
        self.mark = uuid.uuid4().hex
        self.place = Place(directory / "place")
        self.place.root.mkdir()
        self.host = Host(self.place, **options)
        self.events: list[Event] = []

    def start(self, mapper: str, attempt: str = ATTEMPT, text: str = "a\n") -> None:
        data = self.directory / "in.txt"
        data.write_text(text)
        spec = JobSpec(
            job_id=JOB,
            name="test",
            user="tester",
            inputs=(str(data),),
            output=str(self.directory / "out"),
            mapper=Program(command=mapper),
            reducer=Program(command="cat"),
            env={"MARK": self.mark},
        )
        job = self.directory / "job.json"
        job.write_bytes(records.encode(spec))
        size = data.stat().st_size
        split = Split((Piece(data.as_uri(), 0, size),), size)
        self.host.start(Work(attempt=attempt, job_url=str(job), split=split, maps=1))

    def forget(self) -> None:
        """The next attempt is of another job, with the same id."""
        self.host.forget(JOB)

    def until(self, kind):
        end_s = time.monotonic() + LIMIT_S
        while time.monotonic() < end_s:
            self.events += self.host.poll(0.2)
            while self.events:
                if isinstance(event := self.events.pop(0), kind):
                    return event
        pytest.fail(f"no {kind.__name__}")

    def until_log(self, text: str) -> None:
        log = self.place.attempt(ATTEMPT).log
        end_s = time.monotonic() + LIMIT_S
        while time.monotonic() < end_s:
            self.events += self.host.poll(0.02)
            if log.exists() and text in log.read_text():
                return
        pytest.fail(f"{text!r} is not in the log")

    def programs(self) -> list[psutil.Process]:
        return marked(self.mark)


def marked(mark: str) -> list[psutil.Process]:
    """Those that have the mark of a test in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("MARK") == mark:
                found.append(process)
    return found


@pytest.fixture
def attempts(tmp_path):
    made = Attempts(tmp_path)
    yield made
    made.host.close()


def test_a_map_leaves_its_output_and_its_log_and_nothing_else(attempts):
    attempts.start("sh -c 'cat; echo hello >&2'", text="b\na\n")
    outcome = attempts.until(Finished).outcome
    assert isinstance(outcome, MapDone)
    assert Path(outcome.path).read_bytes() == b"a\nb\n"
    assert outcome.url == outcome.path
    assert outcome.segments[0].length == 4
    place = attempts.place.attempt(ATTEMPT)
    assert place.log.read_text() == "hello\n"
    assert not place.root.exists()
    attempts.host.forget(JOB)
    assert not Path(outcome.path).exists()
    attempts.host.forget(JOB)


def test_a_killed_attempt_leaves_no_process_and_no_file(attempts):
    attempts.start(STUBBORN)
    attempts.until_log("started")
    until(lambda: len(attempts.programs()) >= 3)
    attempts.host.kill(ATTEMPT)
    assert attempts.until(Finished) == Finished(ATTEMPT, None)
    assert attempts.programs() == []
    assert not attempts.place.attempt(ATTEMPT).root.exists()
    attempts.host.kill(ATTEMPT)
    assert attempts.host.poll(0) == []


def test_what_a_program_has_left_ends_with_its_attempt(attempts):
    attempts.start("bash -c 'cat; (setsid sleep 1000 </dev/null >/dev/null 2>&1 &)'")
    assert isinstance(attempts.until(Finished).outcome, MapDone)
    assert attempts.programs() == []


def test_a_kill_at_once_is_a_kill_too(attempts):
    for number in range(5):
        name = f"{ATTEMPT[:-1]}{number}"
        attempts.start("sleep 1000", name)
        attempts.host.kill(name)
        assert attempts.until(Finished) == Finished(name, None)
    assert attempts.programs() == []


def test_others_are_not_hurt_by_a_kill(attempts):
    work = "case $mapreduce_task_attempt_id in *_0) (setsid sleep 1000 &); sleep 1000;; esac"
    both = f"bash -c 'echo started >&2; {work}; (sleep 0.3 &); cat'"
    attempts.start(both)
    attempts.until_log("started")
    attempts.start(both, ATTEMPT[:-1] + "1")
    attempts.host.kill(ATTEMPT)
    ends = {event.attempt: event.outcome for event in (attempts.until(Finished) for _ in "12")}
    assert ends[ATTEMPT] is None
    assert isinstance(ends[ATTEMPT[:-1] + "1"], MapDone)


def test_an_attempt_that_is_killed_by_others_is_a_failure_of_the_place(attempts):
    attempts.start(STUBBORN)
    attempts.until_log("started")
    (attempt,) = zygote().children()
    os.kill(attempt.pid, signal.SIGKILL)
    outcome = attempts.until(Finished).outcome
    assert isinstance(outcome, Failure)
    assert outcome.blame == "place"
    assert "was killed by SIGKILL (killed); was the machine or the worker out of memory?" in (
        outcome.message
    )
    assert attempts.programs() == []


def test_an_attempt_that_hangs_is_ended_in_the_end(tmp_path):
    (tmp_path / "patience").mkdir()
    impatient = Attempts(tmp_path / "patience", silent_s=5)
    try:
        # The zygote may take its time to load all; this is not about that.
        number = 0
        while not isinstance(impatient.until(Finished).outcome if number else None, MapDone):
            number += 1
            impatient.start("cat", f"{ATTEMPT[:-1]}{number}")
        impatient.forget()
        impatient.start("sh -c 'echo started >&2; sleep 1000'")
        impatient.until_log("started")
        impatient.until(Reported)
        (attempt,) = zygote().children()
        os.kill(attempt.pid, signal.SIGSTOP)
        outcome = impatient.until(Finished).outcome
        assert isinstance(outcome, Failure)
        assert outcome.blame == "place"
        assert "has said nothing for 5 s, and was ended" in outcome.message
        assert impatient.programs() == []
    finally:
        impatient.host.close()


def zygote() -> psutil.Process:
    (found,) = (
        child for child in psutil.Process().children() if "zygote" in " ".join(child.cmdline())
    )
    return found


def test_without_its_zygote_a_host_is_of_no_use(tmp_path):
    (tmp_path / "orphaned").mkdir()
    orphaned = Attempts(tmp_path / "orphaned")
    try:
        orphaned.start("cat")
        orphaned.until(Finished)
        zygote().kill()
        with pytest.raises(Unavailable, match=r"\(zygote\) was killed by SIGKILL .* out of memory"):
            orphaned.until(Reported)
        with pytest.raises(Unavailable, match="zygote"):
            orphaned.start("cat")
    finally:
        orphaned.host.close()


def test_what_had_happened_is_told_before_the_end_of_the_zygote(tmp_path):
    (tmp_path / "orphaned").mkdir()
    orphaned = Attempts(tmp_path / "orphaned")
    try:
        root = orphaned.place.attempt(ATTEMPT).root
        root.parent.mkdir(parents=True, exist_ok=True)
        root.write_text("in the way")
        zygote().kill()
        orphaned.start("cat")
        assert isinstance(orphaned.until(Finished).outcome, Failure)
        with pytest.raises(Unavailable, match="zygote"):
            orphaned.until(Finished)
    finally:
        orphaned.host.close()


def test_closing_ends_all(attempts):
    attempts.start(STUBBORN)
    attempts.until_log("started")
    attempts.host.close()
    assert attempts.programs() == []
    assert not attempts.place.attempt(ATTEMPT).root.exists()


def test_progress_is_said_while_it_runs(attempts):
    go = attempts.directory / "go"
    wait = f"cat; while [ ! -e {go} ]; do sleep 0.05; done"
    attempts.start(f"sh -c 'echo reporter:status:waiting >&2; {wait}'", text="a\n" * 10)
    while (running := attempts.until(Reported).running).status != "waiting":
        pass
    go.touch()
    attempts.until(Finished)
    assert running.phase == "map"
    assert 0 <= running.progress <= 1


@pytest.mark.parametrize(("count", "progress"), [(0, 0.0), (50_000, 0.45), (100_000, 0.9)])
def test_progress_is_what_the_program_has_read_and_all_of_it_is_not_the_end(
    attempts, count, progress
):
    """All of the input is handed over at once, and waits in the pipe."""
    attempts.start(
        f"sh -c 'dd iflag=fullblock bs={count or 1} count={min(count, 1)} of=/dev/null "
        "&& echo reporter:status:read >&2; exec sleep 600'",
        text=("x" * 999 + "\n") * 100,
    )
    said = attempts.until(Reported).running
    while said.status != "read" or said.counters[TASKS].get("MAP_INPUT_RECORDS") != 100:
        said = attempts.until(Reported).running
    assert said.progress == progress


def test_the_zygote_has_one_thread_though_it_has_loaded_all(attempts):
    """Else what is forked from it could hang on a lock that another thread has held."""
    attempts.start("true")
    attempts.until(Finished)
    assert zygote().num_threads() == 1
    assert any("numpy" in one.path for one in zygote().memory_maps())


def test_the_same_attempt_twice_runs_once(attempts):
    attempts.start("sh -c 'echo started >&2; cat'")
    attempts.start("sh -c 'echo started >&2; cat'")
    attempts.until(Finished)
    assert attempts.place.attempt(ATTEMPT).log.read_text() == "started\n"
    assert attempts.host.running == set()


def test_with_its_holder_killed_nothing_stays(tmp_path):
    """kill -9 of whoever runs a local job."""
    mark = uuid.uuid4().hex
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.kit.mapreduce_local import Jobs\n"
        f"Jobs(Path({str(tmp_path)!r})).run('a\\n', {STUBBORN!r}, env={{'MARK': {mark!r}}})\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as holder:
        try:
            until(lambda: len(marked(mark)) >= 3)
        finally:
            holder.kill()
    until(lambda: marked(mark) == [])
