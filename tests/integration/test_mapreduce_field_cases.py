"""What other MapReduces were reported to do wrong (and Hadoop's users know), on a cluster."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from frameworks.mapreduce import api
from frameworks.mapreduce.job import JobSpec, Program
from mesos_py.errors import Conflict, NotFound
from tests.kit.local import MESOS_PY, environment
from tests.kit.mapreduce_cluster import MapReduce, Tracker
from tests.kit.mapreduce_processes import found
from tests.kit.waiting import until

PY = sys.executable
# Attempts are that small, so that many run at once.
SMALL = {
    "mapreduce.map.memory.mb": "64",
    "mapreduce.reduce.memory.mb": "64",
    "mapreduce.map.cpu.vcores": "0.2",
    "mapreduce.reduce.cpu.vcores": "0.2",
}


class Shared:
    """A cluster with a tracker, for many jobs."""

    def __init__(self, cluster: MapReduce, tracker: Tracker) -> None:
        self.cluster = cluster
        self.tracker = tracker
        self.url = f"http://127.0.0.1:{tracker.port}"
        self._number = 0

    def directory(self) -> Path:
        """Of a job's own."""
        self._number += 1
        made = self.cluster.directory / f"job-{self._number}"
        made.mkdir()
        return made

    def run(self, inputs: str | Path, output: Path, **asked):
        """By the Python interface."""
        asked.setdefault("reduces", 2)
        conf = SMALL | asked.pop("conf", {})
        return api.run(
            inputs=str(inputs),
            output=str(output),
            tracker=self.url,
            conf=conf,
            timeout_s=120,
            **asked,
        )

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*MESOS_PY, "mapreduce", "run", "--tracker", self.url, *words],
            cwd=self.cluster.directory,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Shared]:
    """Four agents, each with a seed of Python's hashes of its own."""
    with MapReduce(tmp_path_factory.mktemp("shared")) as cluster:
        before = os.environ.get("PYTHONHASHSEED")
        try:
            for number, name in enumerate("abcd", 1):
                os.environ["PYTHONHASHSEED"] = str(number)
                cluster.agent(name).launch()
            for agent in cluster.agents:
                agent.ready()
        finally:
            os.environ.pop("PYTHONHASHSEED")
            if before is not None:
                os.environ["PYTHONHASHSEED"] = before
        tracker = cluster.active(cluster.tracker(idle="1h"))
        start_workers(cluster, tracker)
        yield Shared(cluster, tracker)


def start_workers(cluster: MapReduce, tracker: Tracker) -> None:
    """On each agent: they stay, and are none that a test has left behind."""
    large = {"mapreduce.map.cpu.vcores": "3.5", "mapreduce.map.speculative": "false"}
    spec = cluster.wordcount(*"abcd", reduces=0, gated="map", conf=large)
    tracker.client.submit(spec)
    cluster.wait_for(tracker, lambda view: view.maps.running == 4)
    cluster.open()
    cluster.end_of(tracker)


def lines_of(output: Path) -> list[str]:
    names = sorted(path.name for path in output.iterdir())
    assert names[0] == "_SUCCESS"
    assert all(name.startswith("part-") for name in names[1:]), names
    return [line for name in names[1:] for line in (output / name).read_text().splitlines()]


def total(key, values):
    yield key, sum(values)


# ---- Data ---------------------------------------------------------------------------------------


def test_one_key_with_nine_tenths_of_the_data(shared):
    here = shared.directory()
    (here / "in").mkdir()
    for number in range(4):
        block = "same\n" * 90 + "".join(f"other-{number}-{each}\n" for each in range(10))
        (here / "in" / str(number)).write_text(block * 1000)
    # More than a map or a reduce may sort in memory.
    conf = {"mapreduce.task.io.sort.mb": "1"}
    shared.run(here / "in", here / "out", mapper="cat", reducer="uniq -c", reduces=4, conf=conf)
    counts = {word: int(count) for count, word in map(str.split, lines_of(here / "out"))}
    assert counts.pop("same") == 4 * 90_000
    assert len(counts) == 40
    assert set(counts.values()) == {1000}


def test_a_reducer_that_never_reads(shared):
    here = shared.directory()
    (here / "in").write_text("some text\n" * 200_000)
    shared.run(here / "in", here / "out", mapper="cat", reducer="echo done")
    assert lines_of(here / "out") == ["done", "done"]


@pytest.mark.parametrize("reduces", [0, 3])
def test_input_that_is_empty(shared, reduces):
    here = shared.directory()
    (here / "in").write_text("")
    asked = {"reducer": "cat", "reduces": reduces} if reduces else {"reducer": None, "reduces": 0}
    view = shared.run(here / "in", here / "out", mapper="cat", **asked)
    assert lines_of(here / "out") == []
    assert len(list((here / "out").glob("part-*"))) == (reduces or view.maps.total)


def test_a_hundred_thousand_files(shared):
    here = shared.directory()
    for group in range(100):
        directory = here / "in" / f"{group:02}"
        directory.mkdir(parents=True)
        for number in range(1000):
            with (directory / str(number)).open("w") as file:
                file.write(f"{group}\n")
    view = shared.run(here / "in/*", here / "out", mapper="cat", reducer="uniq -c", reduces=2)
    assert sorted(map(str.split, lines_of(here / "out"))) == sorted(
        ["1000", str(group)] for group in range(100)
    )
    # Many of them share a map.
    assert view.maps.total < 1000


# ---- Keys ---------------------------------------------------------------------------------------


def keys_and_seed(line):
    """All kinds of keys; and what this process thinks of hashes."""
    yield ("seed", hash("a") % 1_000_003), 1
    for key in ("a", b"a", None, 1, 1.0, True, 0, False, 0.5, ("a", 1), ("a", True), ("b", ("c",))):
        yield key, 1


def test_each_key_is_there_once_whatever_the_seeds_of_hashes(shared):
    """Maps run on four agents, of which each has hashes of its own."""
    here = shared.directory()
    (here / "in").mkdir()
    for number in range(32):
        (here / "in" / f"{number:02}").write_text("x\n")

    def shown(key, values):
        yield repr(key), sum(values)

    # Only as many fit on one agent as are a quarter of all.
    conf = {"mapreduce.map.cpu.vcores": "0.9"}
    shared.run(here / "in", here / "out", mapper=keys_and_seed, reducer=shown, conf=conf, reduces=4)
    counts = dict(line.rsplit("\t", 1) for line in lines_of(here / "out"))
    assert len(counts) == len(lines_of(here / "out"))
    seeds = [key for key in counts if key.startswith("('seed'")]
    assert len(seeds) > 1, "the agents have one and the same seed: this test shows nothing"
    assert sum(int(counts.pop(key)) for key in seeds) == 32
    assert counts == {
        "'a'": "32",
        "b'a'": "32",
        "None": "32",
        "1": "96",
        "0": "64",
        "0.5": "32",
        "('a', 1)": "64",
        "('b', ('c',))": "32",
    }


@pytest.mark.parametrize("kind", ["frozenset", "object", "list", "nan"])
def test_a_key_that_is_not_the_same_everywhere_is_refused(shared, kind):
    here = shared.directory()
    (here / "in").write_text("x\n")
    keys = {"frozenset": frozenset("ab"), "object": object(), "list": [1], "nan": float("nan")}
    said = {"frozenset": "frozenset", "object": "object", "list": "list", "nan": "NaN"}[kind]

    def mapper(line):
        made = object() if kind == "object" else keys[kind]
        yield made, 1

    keys.pop("object")
    with pytest.raises(api.JobFailed) as caught:
        shared.run(here / "in", here / "out", mapper=mapper, reducer=total)
    assert said in caught.value.message
    assert caught.value.failure is not None
    assert "key" in caught.value.failure.message
    assert not (here / "out").exists()


# ---- What users are told -------------------------------------------------------------------------


def test_of_eight_maps_the_traceback_of_the_one_that_raised_comes_first(shared):
    here = shared.directory()
    (here / "in").mkdir()
    for number in range(8):
        (here / "in" / f"{number}.txt").write_text(f"{number}\n")
    gates = here / "gates"
    gates.mkdir()
    script = here / "words.py"
    # Those that are well say so, and wait until they are stopped.
    text = (
        "import os, sys, time\n"
        "gates = sys.argv[1]\n"
        "line = sys.stdin.readline()\n"
        "if line != '3\\n':\n"
        "    open(gates + '/' + line.strip(), 'w').close()\n"
        "while line != '3\\n' or len(os.listdir(gates)) < 7:\n"
        "    time.sleep(0.05)\n"
    )
    script.write_text(text + "\n" * 29 + "int('x' + line)\n")
    assert "int('x'" in script.read_text().splitlines()[36]
    conf = [word for name, text in SMALL.items() for word in ("-D", f"{name}={text}")]
    conf += ["-D", "mapreduce.map.speculative=false", "-D", "mapreduce.job.reduces=1"]
    said = shared.cli(
        *conf,
        *("-input", str(here / "in"), "-output", str(here / "out"), "-file", str(script)),
        *("-mapper", f"{PY} words.py {gates}", "-reducer", "cat"),
    )
    assert said.returncode == 1
    lines = said.stderr.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("Traceback"))
    rest = lines[first:]
    assert 'words.py", line 37, in <module>' in rest[1]
    error = next(line for line in rest if not line.startswith((" ", "Traceback")))
    assert error.startswith("ValueError: invalid literal for int()")
    text = "\n".join(rest)
    assert "ended with exit code 1: ValueError" in text
    assert f"  input:   file://{here}/in/3.txt bytes 0 to 2" in text
    assert "  attempt: attempt_" in text
    assert "_m_000003_" in text.split("  attempt: ")[1].splitlines()[0]
    assert "_m_000003_" in text.split("  log:     ")[1].splitlines()[0]
    stopped = text.split("  stopped because of it: ")[1].splitlines()[0].split(", ")
    assert sorted(each.split("_")[4] for each in stopped) == [
        f"{number:06}" for number in range(8) if number != 3
    ]
    assert not (here / "out").exists()


def test_a_syntax_error_is_said_once_and_nothing_is_tried_again(shared):
    here = shared.directory()
    (here / "in").write_text("a\n")
    script = here / "broken.py"
    script.write_text("import sys\nfor line in sys.stdin\n    print(line)\n")
    with pytest.raises(api.JobFailed) as caught:
        shared.run(
            here / "in",
            here / "out",
            mapper=f"{PY} broken.py",
            reducer="cat",
            files=[str(script)],
        )
    assert caught.value.failure is not None
    assert caught.value.failure.blame == "job"
    assert caught.value.message.count("^") == 1
    assert 'broken.py", line 2' in caught.value.message
    (task, *_) = shared.tracker.client.tasks(caught.value.view.job_id)
    assert [each.state for each in task.attempts] == ["failed"]
    said = shared.cli(
        *("-input", str(here / "in"), "-output", str(here / "out"), "-file", str(script)),
        *("-mapper", f"{PY} broken.py", "-reducer", "cat"),
    )
    assert said.returncode == 1
    assert said.stderr.count('broken.py", line 2') == 1


# ---- Rooms --------------------------------------------------------------------------------------


def test_maps_of_one_job_do_not_keep_another_one_s_reduces_from_room(tmp_path):
    """Two cpus; a job without reduces fills them, then one with maps and early reduces comes."""
    with MapReduce(tmp_path) as cluster:
        cluster.start_agent("a", resources="cpus:2.1;mem:4096")
        tracker = cluster.active(cluster.tracker())
        one_cpu = {"mapreduce.map.cpu.vcores": "1", "mapreduce.reduce.cpu.vcores": "1"}
        early = {"mapreduce.job.reduce.slowstart.completedmaps": "0"}
        first = cluster.wordcount("a", "b", "c", "d", reduces=0, gated="map", conf=one_cpu)
        tracker.client.submit(first)
        cluster.wait_for(tracker, lambda view: view.maps.running == 2)
        job = first.job_id[:-1] + "2"
        second = cluster.wordcount("a b", "b", "b", reduces=2, job_id=job, conf=one_cpu | early)
        tracker.client.submit(second)
        cluster.wait_for(tracker, lambda view: view.state == "waiting", job)
        cluster.open()
        assert cluster.end_of(tracker, job).state == "succeeded"
        assert cluster.end_of(tracker).state == "succeeded"
        for spec in (first, second):
            cluster.settled(spec.job_id)


def test_without_jobs_workers_are_released_and_nothing_is_launched(tmp_path):
    with MapReduce(tmp_path) as cluster:
        cluster.start_agents("a", "b")
        tracker = cluster.active(cluster.tracker(idle="1s"))
        tracker.client.submit(cluster.wordcount("a", "b", "c", "d"))
        cluster.end_of(tracker)
        until(lambda: not found(cluster, "worker"))
        until(lambda: not cluster.used())
        until(lambda: not cluster.strays())
        launched = launches(cluster)
        # Room that is new is offered to whoever may want it.
        cluster.start_agent("c")
        until(lambda: not cluster.used())
        assert launches(cluster) == launched
        assert not found(cluster, "worker")


def launches(cluster):
    return len(list(cluster.directory.glob("?/agents/*/frameworks/*/executors/*")))


# ---- Many ---------------------------------------------------------------------------------------

JOBS = 60
CLIENTS = 5
STALL_S = 60.0


def test_jobs_that_come_and_are_killed_all_come_to_an_end(shared):
    """By several clients at once; half of them are killed at some moment."""
    seed = random.randrange(1 << 30)
    sys.stderr.write(f"seed {seed}\n")
    here = shared.directory()
    (here / "in").mkdir()
    for number in range(3):
        (here / "in" / str(number)).write_text(f"a {number}\n" * 10)
    specs = [job_of(here, number) for number in range(JOBS)]
    to_kill = set(random.Random(seed).sample(range(JOBS), JOBS // 2))
    errors: list[BaseException] = []

    def client(number: int) -> None:
        chance = random.Random(seed + number)
        try:
            for at in range(number, JOBS, CLIENTS):
                shared.tracker.client.submit(specs[at])
                if at in to_kill:
                    wait_a_while(shared, specs[at].job_id, chance)
                    shared.tracker.client.kill(specs[at].job_id, "by chance")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    views = all_end(shared, specs, threads, errors)
    for thread in threads:
        thread.join()
    assert not errors, errors
    states = Counter(view.state for view in views.values())
    for number, spec in enumerate(specs):
        state = views[spec.job_id].state
        assert state == "succeeded" or (number in to_kill and state == "killed")
        if state == "succeeded":
            assert sorted(lines_of(Path(spec.output))) == sorted(
                ["30 a", *(f"10 {each}" for each in range(3))]
            )
        else:
            assert not (Path(spec.output) / "_SUCCESS").exists()
            assert not (Path(spec.output) / "_temporary").exists()
        shared.cluster.settled(spec.job_id)
    assert states["killed"] > 0


def job_of(here: Path, number: int) -> JobSpec:
    return JobSpec(
        job_id=f"job_20270101000000_{number:04}",
        name=f"job {number}",
        user="tester",
        inputs=(str(here / "in"),),
        output=str(here / f"out-{number}"),
        mapper=Program(command="tr ' ' '\\n'"),
        reducer=Program(command="sh -c \"uniq -c | sed 's/^ *//'\""),
        reduces=2,
        conf=SMALL,
    )


def wait_a_while(shared: Shared, job_id: str, chance: random.Random) -> None:
    """Not at all, or until it has come to some point."""
    point = chance.choice(["now", "running", "maps", "reduces"])

    def reached() -> bool:
        view = shared.tracker.client.view(job_id)
        return (
            view.ended_s > 0
            or {
                "now": True,
                "running": view.maps.running > 0,
                "maps": view.maps.done == view.maps.total,
                "reduces": view.reduces.running > 0,
            }[point]
        )

    until(reached, 120)


def all_end(shared, specs, threads, errors):
    """How they have ended; complains when nothing moves for long."""
    ids = {spec.job_id for spec in specs}
    seen: object = None
    moved_s = time.monotonic()
    while True:
        views = {view.job_id: view for view in shared.tracker.client.views() if view.job_id in ids}
        for job_id in ids - views.keys():
            try:
                views[job_id] = shared.tracker.client.view(job_id)
            except (NotFound, Conflict):
                continue
        ended = len(views) == len(ids) and all(view.ended_s for view in views.values())
        if ended or errors:
            return views
        state = sorted(
            (view.job_id, view.state, view.maps.done, view.maps.running, view.reduces.done)
            for view in views.values()
        )
        if state != seen:
            seen, moved_s = state, time.monotonic()
        stuck = [each for each in state if each[1] not in ("succeeded", "killed", "failed")]
        assert time.monotonic() - moved_s < STALL_S, f"nothing moves: {stuck}"
        time.sleep(0.2)
