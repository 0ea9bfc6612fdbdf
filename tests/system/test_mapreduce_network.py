"""MapReduce jobs while hosts of the cluster are cut off from others, and healed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from frameworks.mapreduce.core.views import TaskView
from frameworks.mapreduce.job import JobSpec
from tests.kit.mapreduce_cluster import output
from tests.kit.mapreduce_hosts import HostMapReduce, HostTracker, on_hosts
from tests.kit.waiting import until

pytestmark = pytest.mark.needs("root", "nft")

TEXTS = ("one two", "two three", "three four", "four five", "five six", "six one")
COUNTS = dict.fromkeys(("one", "two", "three", "four", "five", "six"), 2)
# An attempt of these is done again because its agent is gone, not because it is slow.
ALONE = {"mapreduce.map.speculative": "false", "mapreduce.reduce.speculative": "false"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[HostMapReduce]:
    """Two agents with room for a worker and three maps each, one with room for two."""
    directory = tmp_path_factory.mktemp("hosts")
    large, small = "cpus:1.5;mem:1024", "cpus:1;mem:1024"
    with on_hosts(directory, a=large, b=large, c=small) as made:
        yield made


@pytest.fixture
def tracker(cluster) -> Iterator[HostTracker]:
    """It ends with the test, and leaves no worker."""
    cluster.gates.joinpath("all").unlink(missing_ok=True)
    made = cluster.tracker()
    yield made
    assert made.stop() == 0
    cluster.trackers.remove(made)


def job_id(number: int) -> str:
    return f"job_20261128141500_{number:04}"


def attempt(number: int, kind: str, task: int, tried: int = 0) -> str:
    return f"attempt_20261128141500_{number:04}_{kind}_{task:06}_{tried}"


def runs(attempt: str) -> bool:
    """Whether its program does."""
    wanted = f"mapreduce_task_attempt_id={attempt}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in process.joinpath("environ").read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def hosts_of(tasks: list[TaskView]) -> list[str]:
    """Where the first attempt of each is."""
    return [task.attempts[0].hostname for task in tasks]


def assert_complete(spec: JobSpec) -> None:
    """Each part once and whole, and the mark of success after all of them."""
    assert output(spec) == COUNTS
    directory = Path(spec.output)
    parts = [path.stat().st_mtime_ns for path in directory.glob("part-*")]
    assert directory.joinpath("_SUCCESS").stat().st_mtime_ns >= max(parts)


def test_an_agent_cut_off_after_its_maps_costs_exactly_their_outputs(cluster, tracker):
    """One of its maps goes on behind the cut, and has ended when the agent is heard of again."""
    job = job_id(1)
    spec = cluster.wordcount(*TEXTS, gated="map reduce", conf=ALONE, job_id=job)

    def play() -> None:
        cluster.active(tracker).client.submit(spec)
        cluster.wait_running(tracker, "map", 6, job)
        hosts = hosts_of(cluster.tasks(tracker, "map", job))
        lost = max(hosts, key=hosts.count)
        mine = [number for number, host in enumerate(hosts) if host == lost]
        for number in range(6):
            if number != mine[0]:
                cluster.open(attempt(1, "m", number))
        cluster.wait_for(tracker, lambda view: view.maps.done == 5, job)
        cluster.wires.add(cluster.cut(lost))
        gone = len(mine) - 1
        view = cluster.wait_for(tracker, lambda view: view.maps.lost_outputs == gone, job)
        assert view.maps.attempts_lost == 1
        cluster.open()
        until(lambda: len(cluster.outputs_on(lost, job)) == len(mine))
        assert cluster.end_of(tracker, job).state == "succeeded"
        assert_complete(spec)
        cluster.wires.remove(cluster.cut(lost))
        cluster.settled(job)
        tried = [len(task.attempts) for task in cluster.tasks(tracker, "map", job)]
        assert tried == [2 if host == lost else 1 for host in hosts]
        assert_complete(spec)

    cluster.on_tracker(play)


def test_a_twin_that_has_committed_stands_when_the_agent_of_the_other_one_is_back(cluster, tracker):
    """Which goes on behind the cut, and writes its part when the job is done already."""
    job = job_id(2)
    interim = cluster.directory / f"out-{job}" / "_temporary"
    spec = cluster.wordcount(*TEXTS, reduces=3, gated="reduce", conf=ALONE, job_id=job)

    def play() -> None:
        cluster.active(tracker).client.submit(spec)
        cluster.wait_running(tracker, "reduce", 3, job)
        # They have all that they read, and their programs wait.
        until(lambda: len(list(interim.glob("attempt_*"))) == 3)
        hosts = hosts_of(cluster.tasks(tracker, "reduce", job))
        lost = hosts[0]
        behind = [number for number, host in enumerate(hosts) if host == lost]
        cluster.wires.add(cluster.cut(lost))
        for number in range(3):
            cluster.open(attempt(2, "r", number, 1 if number in behind else 0))
        cluster.wait_for(tracker, lambda view: view.reduces.attempts_lost == len(behind), job)
        assert cluster.end_of(tracker, job).state == "succeeded"
        assert_complete(spec)
        for number in behind:
            assert runs(attempt(2, "r", number))
            cluster.open(attempt(2, "r", number))
        until(lambda: not any(runs(attempt(2, "r", number)) for number in behind))
        cluster.wires.remove(cluster.cut(lost))
        cluster.settled(job)
        assert_complete(spec)

    cluster.on_tracker(play)


def test_a_link_cut_between_two_agents_costs_what_cannot_be_fetched(cluster, tracker):
    """Master and tracker see both of them all the time."""
    job = job_id(3)
    early = {
        "mapreduce.job.reduce.slowstart.completedmaps": "0",
        "mapreduce.reduce.shuffle.read.timeout": "1000",
    }
    texts = ("one two three", "three four five", "five six one", "two four six")
    spec = cluster.wordcount(*texts, reduces=1, gated="map", conf=ALONE | early, job_id=job)

    def play() -> None:
        cluster.active(tracker).client.submit(spec)
        cluster.wait_running(tracker, "map", 4, job)
        cluster.wait_running(tracker, "reduce", 1, job)
        (reduce,) = hosts_of(cluster.tasks(tracker, "reduce", job))
        hosts = hosts_of(cluster.tasks(tracker, "map", job))
        other = next(host for host in hosts if host != reduce)
        # Made again at the same place, they could not be fetched either: the reduce would be
        # done elsewhere, and miss what this one has.
        assert cluster.cli("deactivate", other).code == 0
        cluster.wires.add(cluster.cut(other, reduce))
        cluster.open()
        view = cluster.end_of(tracker, job)
        assert view.state == "succeeded", view
        assert_complete(spec)
        assert (view.maps.attempts_lost, view.reduces.attempts_lost) == (0, 0)
        assert view.maps.lost_outputs == hosts.count(other)
        tried = [len(task.attempts) for task in cluster.tasks(tracker, "map", job)]
        assert tried == [2 if host == other else 1 for host in hosts]
        cluster.wires.remove(cluster.cut(other, reduce))
        assert cluster.cli("reactivate", other).code == 0
        cluster.settled(job)

    cluster.on_tracker(play)
