"""Jobs on real daemons as their users start and see them: the command line, the Python API and
mrjob, with a tracker of their own and with one that is served."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from frameworks import mapreduce
from frameworks.mapreduce.hadoop import home as homes
from mesos_py.errors import AlreadyExists, NotFound
from tests.kit import mrjob_runs
from tests.kit.local import MESOS_PY, Local, environment
from tests.kit.waiting import until

TEXT = "the cat and the dog\nand the bird\n" * 50
COUNTS = {"the": 150, "and": 100, "cat": 50, "dog": 50, "bird": 50}
WORDS = ["-mapper", "tr ' ' '\\n'", "-reducer", "uniq -c"]
JOB = re.compile(r"job_\d+_\d{4}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Local]:
    directory = tmp_path_factory.mktemp("mapreduce")
    (directory / "in").mkdir()
    (directory / "in" / "text").write_text(TEXT)
    with Local(directory, "--agents", "2", "--resources", "cpus:3;mem:2048") as cluster:
        yield cluster
        assert cluster.json("tasks") == []


class Served:
    """`mesos-py mapreduce tracker` as a child process."""

    def __init__(self, cluster: Local, state: Path) -> None:
        self.cluster = cluster
        self.state = state
        port_file = state.with_suffix(".port")
        flags = ["--master", cluster.master, "--state", str(state), "--port-file", str(port_file)]
        self.process = cluster.start("mapreduce", "tracker", *flags, "--idle", "0s")
        until(lambda: port_file.exists() and self.process.poll() is None)
        self.url = f"http://127.0.0.1:{port_file.read_text().rpartition(':')[2].strip()}"

    def end(self) -> None:
        self.process.terminate()
        out, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, (out, err)


@pytest.fixture(scope="module")
def tracker(cluster, tmp_path_factory) -> Iterator[Served]:
    tracker = Served(cluster, tmp_path_factory.mktemp("state") / "state")
    yield tracker
    tracker.end()


@pytest.fixture
def served(cluster, tracker) -> Iterator[Served]:
    yield tracker
    # Its workers have nothing to do, and end.
    until(lambda: workers(cluster) == [])


def workers(cluster):
    """Ids of processes in sandboxes."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(cluster.work_dir):
                found.append(process.pid)
    return found


def run(cluster, *words, **options):
    return cluster.cli("mapreduce", "run", *map(str, words), **options)


def counted(output):
    """What `uniq -c` has written, of all parts."""
    assert (output / "_SUCCESS").exists()
    lines = [
        line.split() for part in output.glob("part-*") for line in part.read_text().splitlines()
    ]
    return {word: int(count) for count, word in lines}


def hidden(directory):
    return [path.name for path in directory.iterdir() if path.name.startswith(".")]


# ---- A tracker of one's own ----------------------------------------------------------------


def test_a_job_runs_and_nothing_is_left_beside_its_output(cluster, tmp_path):
    done = run(cluster, "-input", "in", "-output", tmp_path / "out", *WORDS, "-numReduceTasks", 2)
    assert done.code == 0, done.err
    assert counted(tmp_path / "out") == COUNTS
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "_SUCCESS",
        "part-00000",
        "part-00001",
    ]
    assert "MAP_INPUT_RECORDS=100" in done.err
    assert "succeeded after" in done.err
    assert hidden(tmp_path) == []


def test_a_failing_program_is_shown_first_and_the_output_is_gone(cluster, tmp_path):
    (tmp_path / "m.py").write_text(
        "import sys\nfor line in sys.stdin:\n    raise KeyError('spam')\n"
    )
    words = ["-mapper", "python3 m.py", "-file", tmp_path / "m.py"]
    words += ["-D", "mapreduce.map.maxattempts=1", "--quiet"]
    done = run(cluster, "-input", "in", "-output", tmp_path / "out", *words)
    assert done.code == 1
    first, *rest = done.err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert "KeyError: 'spam'" in rest
    for word in ("input:", "attempt:", "host:", "log:"):
        assert any(line.strip().startswith(word) for line in rest), done.err
    assert not (tmp_path / "out").exists()
    assert hidden(tmp_path) == []


def test_the_cause_comes_first_and_siblings_are_listed_as_stopped_because_of_it(cluster, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(8):
        (tmp_path / "in" / f"{number}").write_text("poison\n" if number == 0 else "good\n")
    begun = tmp_path / "begun"
    begun.mkdir()
    begun.chmod(0o777)
    (tmp_path / "m.py").write_text(
        f"""\
import os, sys, time
line = sys.stdin.readline()
if "poison" in line:
    while not os.listdir({str(begun)!r}):
        time.sleep(0.05)
{"#" * 3}{chr(10) * 31}    raise ValueError(line)
open({str(begun)!r} + "/" + os.environ["mapreduce_task_id"], "w").close()
time.sleep(600)
"""
    )
    words = ["-mapper", "python3 m.py", "-file", tmp_path / "m.py", "--quiet"]
    words += ["-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.map.cpu.vcores=0.5"]
    done = run(cluster, "-input", tmp_path / "in", "-output", tmp_path / "out", *words)
    assert done.code == 1
    lines = done.err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert 'm.py", line 37' in lines[1]
    assert "ValueError: poison" in lines
    (cause,) = [line.split()[1] for line in lines if line.strip().startswith("attempt:")]
    (where,) = [line for line in lines if line.strip().startswith("input:")]
    assert f"{tmp_path}/in/0 " in where
    (stopped,) = [line for line in lines if "stopped because of it:" in line]
    assert cause not in stopped
    assert "attempt_" in stopped


def test_a_syntax_error_is_said_once_before_any_retry(cluster, tmp_path):
    (tmp_path / "m.py").write_text("def broken(:\n")
    words = ["-mapper", "python3 m.py", "-file", tmp_path / "m.py"]
    done = run(cluster, "-input", "in", "-output", tmp_path / "out", *words)
    assert done.code == 1
    assert "SyntaxError" in done.err
    assert len(set(re.findall(r"attempt_\w+", done.err))) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-input", "nowhere", "-mapper", "cat"], "nowhere"),
        (["-input", "in", "-mapper", "cat", "-file", "absent.py"], "absent.py"),
        (["-input", "in", "-mapper", "cat", "-D", "mapreduce.map.memory.mb=x"], "memory.mb"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line_and_leaves_nothing(cluster, tmp_path, words, text):
    done = run(cluster, *words, "-output", tmp_path / "out")
    assert done.code in (1, 2)
    assert text in done.err
    assert len(done.err.splitlines()) == 1, done.err
    assert list(tmp_path.iterdir()) == []


def test_without_a_master_nothing_is_begun(tmp_path):
    (tmp_path / "in").write_text(TEXT)
    argv = [*MESOS_PY, "mapreduce", "run", "--master", "127.0.0.1:1"]
    argv += ["-input", "in", "-output", "out", "-mapper", "cat"]
    done = subprocess.run(argv, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 3
    assert "127.0.0.1:1" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_output_that_is_there_is_refused(cluster, tmp_path):
    (tmp_path / "out").mkdir()
    done = run(cluster, "-input", "in", "-output", tmp_path / "out", "-mapper", "cat")
    assert done.code == 1
    assert "exists already" in done.err
    assert hidden(tmp_path) == []


def test_control_c_kills_the_job_says_so_and_leaves_nothing(cluster, tmp_path):
    mark = tmp_path / "mark"
    words = ["-mapper", f"sh -c 'touch {mark}; sleep 600'", "-numReduceTasks", "0"]
    child = cluster.start(
        "mapreduce", "run", "-input", "in", "-output", str(tmp_path / "out"), *words
    )
    until(mark.exists)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 130, err
    assert b"SIGINT: killing job_" in err
    assert b"was killed" in err
    assert not (tmp_path / "out").exists()
    assert hidden(tmp_path) == []
    until(lambda: cluster.json("tasks") == [])


def test_a_job_goes_on_after_kill_9_of_its_tracker(cluster, tmp_path):
    go, begun = tmp_path / "go", tmp_path / "begun"
    mapper = f"sh -c 'touch {begun}; while [ ! -e {go} ]; do sleep 0.1; done; cat'"
    state = ["--state", str(tmp_path / "state")]
    words = ["-input", "in", "-output", str(tmp_path / "out"), "-mapper", mapper]
    child = cluster.start("mapreduce", "run", *state, *words, "-reducer", "wc -l")
    until(begun.exists)
    child.kill()
    child.communicate()
    go.touch()
    done = cluster.cli("mapreduce", "resume", *state)
    assert done.code == 0, done.err
    assert (tmp_path / "out" / "part-00000").read_text().split() == ["100"]
    listed = cluster.cli("mapreduce", "history", *state, "--json")
    (row,) = json.loads(listed.out)
    assert row["state"] == "succeeded"
    again = cluster.cli("mapreduce", "resume", *state)
    assert again.code == 1
    assert "none that has not ended" in again.err


# ---- A tracker that is served --------------------------------------------------------------


def test_jobs_of_a_tracker_that_is_served(cluster, served, tmp_path):
    env = {"MESOS_PY_MAPREDUCE_TRACKER": served.url}
    words = ["-input", "in", "-output", tmp_path / "out", *WORDS]
    done = run(cluster, *words, env=env)
    assert done.code == 0, done.err
    assert counted(tmp_path / "out") == COUNTS
    (job_id,) = set(JOB.findall(done.err))

    status = cluster.cli("mapreduce", "status", "--tracker", served.url, job_id)
    assert status.code == 0, status.err
    text = status.out.decode()
    assert "succeeded" in text
    assert re.search(r"map 0 +done +agent-\d", text)
    assert re.search(r"reduce 0 +done +agent-\d", text)

    (row,) = json.loads(cluster.cli("mapreduce", "status", job_id, "--json", env=env).out)
    assert row["state"] == "succeeded"
    assert [task["kind"] for task in row["tasks"]] == ["map", "reduce"]
    history = cluster.cli("mapreduce", "history", "--state", str(served.state), job_id)
    assert job_id in history.out.decode()


def test_a_job_in_the_background_is_listed_and_killed(cluster, served, tmp_path):
    env = {"MESOS_PY_MAPREDUCE_TRACKER": served.url}
    words = ["-input", "in", "-output", tmp_path / "out", "-mapper", "sleep 600", "-background"]
    done = run(cluster, *words, env=env)
    assert done.code == 0, done.err
    job_id = done.out.decode().strip()
    listed = json.loads(cluster.cli("mapreduce", "jobs", "--json", env=env).out)
    assert [row["job_id"] for row in listed] == [job_id]
    assert cluster.cli("mapreduce", "kill", job_id, env=env).code == 0

    def state():
        (row,) = json.loads(cluster.cli("mapreduce", "status", job_id, "--json", env=env).out)
        return row["state"]

    until(lambda: state() == "killed")
    assert cluster.cli("mapreduce", "jobs", env=env).err == "no jobs\n"


def test_a_job_that_there_is_not(cluster, served):
    done = cluster.cli("mapreduce", "status", "--tracker", served.url, "job_1_0001")
    assert done.code == 1
    assert done.err == "mesos-py: error: job 'job_1_0001': unknown\n"


def test_a_tracker_that_is_not_there(cluster):
    done = cluster.cli("mapreduce", "jobs", "--tracker", "http://127.0.0.1:1")
    assert done.code == 1
    assert "127.0.0.1:1 does not answer" in done.err


# ---- Python --------------------------------------------------------------------------------


def words(line):
    for word in line.split():
        mapreduce.count("words", "seen")
        yield word, 1


def total(word, counts):
    yield word, sum(counts)


def broken(line):
    raise ZeroDivisionError(line)


# Where they run there are no tests: they go along by value.
words.__module__ = total.__module__ = broken.__module__ = "__main__"


def asked(tmp_path, **more):
    given = {
        "mapper": words,
        "combiner": total,
        "reducer": total,
        "inputs": str(tmp_path / "in"),
        "output": str(tmp_path / "out"),
        "reduces": 2,
    }
    return {**given, **more}


@pytest.fixture
def here(tmp_path, monkeypatch):
    # Logs of local jobs that have failed stay.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "in").write_text(TEXT)
    return tmp_path


def tallied(output):
    text = "".join(part.read_text() for part in output.glob("part-*"))
    lines = [line.split("\t") for line in text.splitlines()]
    return {word: int(count) for word, count in lines}


def test_functions_run_without_a_cluster(here):
    done = mapreduce.run(**asked(here), local=2)
    assert tallied(here / "out") == COUNTS
    assert done.counters["words"]["seen"] == 400
    assert done.state == "succeeded"


def test_functions_run_on_a_cluster(cluster, here):
    done = mapreduce.run(**asked(here), master=cluster.master)
    assert tallied(here / "out") == COUNTS
    assert done.counters["words"]["seen"] == 400
    assert hidden(here) == []


def test_a_handle_says_how_it_is_and_ends_the_job(served, here):
    mapper = f"sh -c 'touch {here}/mark; sleep 600'"
    with mapreduce.submit(**asked(here, mapper=mapper), tracker=served.url) as job:
        until((here / "mark").exists)
        assert job.status().state == "running"
        with pytest.raises(TimeoutError):
            job.wait(0.1)
        job.kill("not wanted any more")
        with pytest.raises(mapreduce.JobFailed, match="not wanted any more"):
            job.wait(60)


def test_the_error_of_a_function_is_the_users_own(here):
    with pytest.raises(mapreduce.JobFailed) as caught:
        mapreduce.run(**asked(here, mapper=broken), local=1)
    assert "ZeroDivisionError: the cat and the dog" in str(caught.value).splitlines()
    assert caught.value.failure is not None
    assert caught.value.failure.blame == "program"


def test_what_is_wrong_with_a_job_is_raised_before_it_runs(here):
    with pytest.raises(NotFound):
        mapreduce.run(**asked(here, inputs=str(here / "absent")), local=1)
    (here / "out").mkdir()
    with pytest.raises(AlreadyExists):
        mapreduce.run(**asked(here), local=1)


@pytest.mark.parametrize("where", ["local", "cluster"])
def test_a_program_that_is_interrupted_ends_its_job(cluster, here, where):
    mark = here / "mark"
    place = {"local": 1} if where == "local" else {"master": cluster.master}

    def interrupt():
        until(mark.exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        mapreduce.run(**asked(here, mapper=f"sh -c 'touch {mark}; sleep 600'"), **place)
    thread.join()
    assert not (here / "out").exists()
    assert hidden(here) == []


# ---- mrjob ---------------------------------------------------------------------------------


def test_an_unmodified_mrjob_program_runs_on_the_cluster(cluster, tmp_path):
    (tmp_path / "text").write_text(TEXT)
    homes.make(tmp_path / "hadoop", master=cluster.master)
    home = tmp_path / "hadoop"
    args = ["--jobconf", "mapreduce.job.reduces=2", "text"]
    found = mrjob_runs.run("most_used_word", "hadoop", *args, directory=tmp_path, home=home)
    inline = mrjob_runs.run("most_used_word", "inline", "text", directory=tmp_path)
    assert mrjob_runs.lines(found) == mrjob_runs.lines(inline) == ['150\t"the"']


def test_a_failing_mrjob_program_shows_its_traceback_from_the_cluster(cluster, served, tmp_path):
    (tmp_path / "text").write_text("good\npoison\n")
    homes.make(tmp_path / "hadoop", tracker=served.url)
    args = ["--jobconf", "mapreduce.map.maxattempts=1", "text"]
    found = mrjob_runs.run("failing", "hadoop", *args, directory=tmp_path, home=tmp_path / "hadoop")
    assert found.returncode != 0
    cause = found.stderr.partition("Probable cause of failure:")[2]
    assert "ValueError: cannot digest 'poison'" in cause


def test_the_hadoop_command_is_installed():
    done = subprocess.run(
        [Path(sys.executable).parent / "mesos-py-hadoop", "version"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("Hadoop 3.")
