"""MapReduce on a cluster where processes die, disks are full and agents are cut off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.kit.gated_files import Gates
from tests.kit.mapreduce_cluster import JOB, MapReduce, output
from tests.kit.mapreduce_processes import fill_disk, found, killed
from tests.kit.proxy import Proxy
from tests.kit.waiting import until

TEXTS = ("a b c", "a b", "a", "d d d d")
COUNTS = {"a": 3, "b": 2, "c": 1, "d": 4}
# Attempts that wait for the test would get twins.
NO_TWINS = {"mapreduce.map.speculative": "false", "mapreduce.reduce.speculative": "false"}
# Seconds are long enough for an agent to be cut off; one that a busy machine lets wait is not.
IMPATIENT = {
    "agent_ping_interval": "1s",
    "max_agent_ping_timeouts": "3",
    "agent_reregister_timeout": "1s",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MapReduce]:
    with MapReduce(tmp_path) as cluster:
        cluster.start_agents("a", "b")
        yield cluster


@pytest.fixture
def patient_cluster(tmp_path: Path) -> Iterator[MapReduce]:
    """Tasks outlive agents that are killed."""
    with MapReduce(tmp_path) as cluster:
        cluster.start_agents("a", "b", tasks_on_exit="keep")
        yield cluster


def attempts(cluster, tracker, kind, job=JOB):
    return [each for task in cluster.tasks(tracker, kind, job) for each in task.attempts]


def all_run(cluster, tracker, kind, count, job=JOB):
    """The attempts that run, once there are so many."""
    cluster.wait_for(tracker, lambda view: getattr(view, f"{kind}s").running == count, job)

    def running():
        return [each for each in attempts(cluster, tracker, kind, job) if each.state == "running"]

    until(lambda: len(running()) == count)
    return running()


def all_failed(cluster, tracker, kind, count=1):
    """The attempts that have failed, once there are so many."""

    def failed():
        return [each for each in attempts(cluster, tracker, kind) if each.state == "failed"]

    until(lambda: len(failed()) >= count)
    return failed()


# ---- Each process, in each phase -------------------------------------------------------------


@pytest.mark.parametrize("role", ["attempt", "zygote", "worker"])
def test_what_is_killed_with_a_worker_is_done_again(cluster, role):
    """Once while maps run, once while reduces do."""
    spec = cluster.wordcount(*TEXTS, gated="map reduce", conf=NO_TWINS)
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    for phase, count in ("map", 4), ("reduce", 2):
        running = all_run(cluster, tracker, phase, count)
        killed(cluster, role)
        failed = all_failed(cluster, tracker, phase)
        assert {each.failure.blame for each in failed} == {"place"}
        if role == "attempt":
            assert len(failed) == 1
            assert "killed by SIGKILL" in failed[0].failure.message
        else:
            # All that it had, and only that; the tracker hears of one after the other.
            there = [each for each in running if each.worker_id == failed[0].worker_id]
            failed = all_failed(cluster, tracker, phase, len(there))
            assert len({each.worker_id for each in failed}) == 1
            assert {each.attempt for each in failed} == {each.attempt for each in there}
            said = {each.failure.message for each in failed}
            how = "signal SIGKILL" if role == "worker" else "(zygote) was killed by SIGKILL"
            assert all(how in text for text in said), said
        for each in all_run(cluster, tracker, phase, count):
            cluster.open(each.attempt)
    assert cluster.end_of(tracker).state == "succeeded"
    assert output(spec) == COUNTS
    # Outputs of maps are still there when what made them is dead.
    maps = attempts(cluster, tracker, "map")
    assert sum(each.state == "done" for each in maps) == 4
    # Nor of what the dead has left, that nobody had heard of.
    cluster.settled()


@pytest.mark.parametrize("who", ["agent", "master"])
def test_a_daemon_that_is_killed_and_comes_back_costs_no_attempt(patient_cluster, who):
    """Once while maps run, once while reduces do; what ends meanwhile is told later."""
    cluster = patient_cluster
    spec = cluster.wordcount(*TEXTS, gated="map reduce", conf=NO_TWINS)
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    daemon = cluster.agents[0] if who == "agent" else cluster.master
    for phase, count in ("map", 4), ("reduce", 2):
        running = all_run(cluster, tracker, phase, count)
        daemon.kill()
        for each in running:
            cluster.open(each.attempt)
        daemon.start()
    assert cluster.end_of(tracker).state == "succeeded"
    assert output(spec) == COUNTS
    for kind in ("map", "reduce"):
        assert {each.state for each in attempts(cluster, tracker, kind)} == {"done"}
    cluster.settled()


def test_a_tracker_that_is_killed_in_mid_commit_has_committed_each_part_once(tmp_path, monkeypatch):
    """First when it has written down which attempt it is, and nothing is moved, while a twin
    runs that cannot be told; its follower, when the part was moved and that is not written down."""
    gates = Gates(tmp_path, monkeypatch)
    with MapReduce(tmp_path) as cluster:
        agents = cluster.start_agents("a", "b")
        made = cluster.wordcount(*TEXTS, gated="map", reduces=0)
        spec = msgspec.structs.replace(made, output=f"gated://{made.output}")
        tracker = cluster.active(cluster.tracker())
        for number in range(3):
            cluster.open(f"attempt_20261128141500_0001_m_{number:06}_0")
        tracker.client.submit(spec)
        cluster.wait_for(tracker, lambda view: view.maps.twins == 1 and view.maps.done == 3)
        until(lambda: len(found(cluster, "attempt")) == 2)
        first, twin = cluster.tasks(tracker, "map")[3].attempts
        agents["ab".index(twin.hostname)].pause()
        gates.close("before")
        cluster.open(first.attempt)
        gates.wait("before", tracker.process.pid)
        tracker.kill()
        directory = Path(made.output)
        whole = directory / "_temporary" / first.attempt / "part-00003"
        assert (written(cluster, "CommitChosen", first), whole.exists()) == (True, True)
        assert not (directory / "part-00003").exists()
        # The twin comes to its end, too, and that is what the followers hear of.
        cluster.open(twin.attempt)
        until((directory / "_temporary" / twin.attempt / "part-00003").exists)
        gates.open("before")
        gates.close("after")
        second = cluster.resumed()
        gates.wait("after", second.process.pid)
        second.kill()
        assert (written(cluster, "Committed", first), whole.exists()) == (False, False)
        assert (directory / "part-00003").exists()
        assert not (directory / "_SUCCESS").exists()
        gates.open("after")
        agents["ab".index(twin.hostname)].resume()
        assert cluster.resumed().wait() == 0
        names = sorted(path.name for path in directory.iterdir())
        assert names == ["_SUCCESS", *(f"part-{number:05}" for number in range(4))]
        lines = Counter(line for part in names[1:] for line in lines_of(made, part))
        assert lines == {f"{word}\t1": count for word, count in COUNTS.items()}
        cluster.settled()


def written(cluster, kind, attempt):
    """Whether such a record of the attempt is in the journal."""
    files = (cluster.directory / "state" / "journal").glob("*/*")
    lines = [line for file in files for line in file.read_text().splitlines()]
    return any(f'"{kind}"' in line and attempt.attempt in line for line in lines)


# ---- Twins, and agents that are cut off --------------------------------------------------------


@pytest.mark.parametrize("reduces", [0, 2])
def test_of_twin_maps_each_part_is_there_once(cluster, reduces):
    """The last map reads nothing until it has a twin; then both go on at once."""
    # More than fits into a pipe.
    texts = (*TEXTS[:3], "d " * 300_000)
    spec = cluster.wordcount(*texts, gated="map", reduces=reduces)
    tracker = cluster.active(cluster.tracker())
    for number in range(3):
        cluster.open(f"attempt_20261128141500_0001_m_{number:06}_0")
    tracker.client.submit(spec)
    cluster.wait_for(tracker, lambda view: view.maps.twins == 1)
    until(lambda: len(found(cluster, "attempt")) == 2)
    cluster.open()
    assert cluster.end_of(tracker).state == "succeeded"
    twins = cluster.tasks(tracker, "map")[3].attempts
    assert sorted(each.state for each in twins) == ["done", "killed"]
    counts = COUNTS | {"d": 300_000}
    if reduces:
        assert output(spec) == counts
    else:
        names = sorted(path.name for path in Path(spec.output).iterdir())
        assert names == ["_SUCCESS", *(f"part-{number:05}" for number in range(4))]
        lines = Counter(line for part in names[1:] for line in lines_of(spec, part))
        assert lines == {f"{word}\t1": count for word, count in counts.items()}
    cluster.settled()


def lines_of(spec, part):
    return (Path(spec.output) / part).read_text().splitlines()


@pytest.mark.parametrize("reduces", [0, 2])
def test_an_agent_that_was_cut_off_changes_nothing_when_it_is_back(tmp_path, reduces):
    """What ran there is done elsewhere and committed; then its attempts go on."""
    phase = "reduce" if reduces else "map"
    with MapReduce(tmp_path, **IMPATIENT) as cluster, Proxy(cluster.address) as way:
        cut_off = cluster.start_agent("a", master=way.address)
        spec = cluster.wordcount(*TEXTS, gated=phase, reduces=reduces, conf=NO_TWINS)
        tracker = cluster.active(cluster.tracker())
        tracker.client.submit(spec)
        first = all_run(cluster, tracker, phase, reduces or 4)
        until(lambda: len(found(cluster, "attempt", cut_off)) >= len(first))
        cluster.start_agent("b")
        way.block()
        again = all_run(cluster, tracker, phase, reduces or 4) if reduces else []
        while not again or {each.hostname for each in again} != {"b"}:
            again = all_run(cluster, tracker, phase, reduces or 4)
        for each in again:
            cluster.open(each.attempt)
        assert cluster.end_of(tracker).state == "succeeded"
        done = {path.name: path.read_bytes() for path in Path(spec.output).glob("part-*")}
        # They are still there, and know of nothing.
        assert len(found(cluster, "attempt", cut_off)) >= len(first)
        # They write, or are ended, whichever comes first.
        for each in first:
            cluster.open(each.attempt)
        way.restore()
        cluster.wait_for_agent("a", "connected")
        until(lambda: not found(cluster, "attempt", cut_off))
        cluster.settled()
        assert not (Path(spec.output) / "_temporary").exists()
        parts = {path.name: path.read_bytes() for path in Path(spec.output).glob("part-*")}
        assert parts == done
        assert len(parts) == (reduces or 4)
        if reduces:
            assert output(spec) == COUNTS


def test_outputs_of_an_agent_that_is_lost_are_made_again_and_no_others(tmp_path):
    """All maps are done, and no reduce has found room, when it is lost."""
    with MapReduce(tmp_path, **IMPATIENT) as cluster:
        small = "cpus:4;mem:900"
        cluster.start_agents("a", "b", resources=small)
        conf = NO_TWINS | {"mapreduce.reduce.memory.mb": "1500", "mapreduce.map.memory.mb": "300"}
        spec = cluster.wordcount(*TEXTS, gated="map", conf=conf)
        tracker = cluster.active(cluster.tracker())
        tracker.client.submit(spec)
        at_first = all_run(cluster, tracker, "map", 4)
        assert {each.hostname for each in at_first} == {"a", "b"}
        cluster.open()
        cluster.wait_for(tracker, lambda view: view.maps.done == 4)
        cluster.lose(cluster.agents[0])
        cluster.wait_for(tracker, lambda view: view.maps.lost_outputs)
        cluster.start_agent("c")
        assert cluster.end_of(tracker).state == "succeeded"
        assert output(spec) == COUNTS
        for task in cluster.tasks(tracker, "map"):
            lost = task.attempts[0].hostname == "a"
            assert len(task.attempts) == (2 if lost else 1)


# ---- A disk that is full ------------------------------------------------------------------------


def test_where_the_disk_is_full_nothing_more_is_tried(cluster):
    """Another job has left the workers there; then one disk is full."""
    tracker = cluster.active(cluster.tracker())
    warm = cluster.wordcount(*TEXTS, gated="map")
    tracker.client.submit(warm)
    running = all_run(cluster, tracker, "map", 4)
    assert {each.hostname for each in running} == {"a", "b"}
    cluster.open()
    cluster.end_of(tracker)
    fill_disk(cluster, cluster.agents[0], 50_000)
    texts = tuple(f"{number} " * 20_000 for number in range(8))
    job = JOB[:-1] + "2"
    spec = cluster.wordcount(*texts, job_id=job)
    tracker.client.submit(spec)
    view = cluster.end_of(tracker, job)
    assert view.state == "succeeded", view
    assert output(spec) == {str(number): 20_000 for number in range(8)}
    for kind in ("map", "reduce"):
        for each in attempts(cluster, tracker, kind, job):
            if each.state == "failed":
                assert each.hostname == "a"
                assert each.failure.blame == "place"
                assert "File too large" in each.failure.message
    assert view.maps.attempts_failed + view.reduces.attempts_failed >= 1
    cluster.settled(job)
