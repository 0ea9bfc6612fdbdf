"""Jobs on a real cluster: what a tracker does when it, or what it relies on, is killed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.tracker import Tracker
from mesos_py import Resources
from tests.kit import mapreduce_workers as workers
from tests.kit.mapreduce_cluster import JOB, MapReduce, output
from tests.kit.waiting import until

TEXTS = ("a b c", "a b", "a", "d d d d")
COUNTS = {"a": 3, "b": 2, "c": 1, "d": 4}
# Attempts that wait for the test, or for a busy machine, get no twins.
ALONE = {"mapreduce.map.speculative": "false", "mapreduce.reduce.speculative": "false"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MapReduce]:
    with MapReduce(tmp_path) as cluster:
        cluster.start_agents("a", "b")
        yield cluster


def test_words_are_counted(cluster):
    spec = cluster.wordcount(*TEXTS)
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    view = cluster.end_of(tracker)
    assert view.state == "succeeded", view
    assert output(spec) == COUNTS
    assert view.counters["org.apache.hadoop.mapreduce.TaskCounter"]["MAP_INPUT_RECORDS"] == 4
    cluster.settled()
    assert tracker.client.view(JOB).state == "succeeded"


@pytest.mark.parametrize("phase", ["map", "reduce"])
def test_a_tracker_that_is_killed_is_followed_by_one_that_goes_on(cluster, phase):
    """Attempts of this phase run meanwhile: they are taken over, and not run again."""
    spec = cluster.wordcount(*TEXTS, gated=phase, conf=ALONE)
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    count = 4 if phase == "map" else 2
    cluster.wait_running(tracker, phase, count)
    tracker.kill()
    tracker.start()
    cluster.wait_running(tracker, phase, count)
    assert phase == "map" or cluster.view(tracker).maps.done == 4
    cluster.open()
    assert cluster.end_of(tracker).state == "succeeded"
    assert output(spec) == COUNTS
    for task in (*cluster.tasks(tracker, "map"), *cluster.tasks(tracker, "reduce")):
        assert [attempt.state for attempt in task.attempts] == ["done"], task
    cluster.settled()


def test_attempts_that_end_while_there_is_no_tracker_count(cluster):
    spec = cluster.wordcount(*TEXTS, gated="map", conf=ALONE)
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    cluster.wait_running(tracker, "map", 4)
    tracker.kill()
    cluster.open()
    until(lambda: sum(len(list(each.glob("*_m_*.out"))) for each in cluster.published()) == 4)
    tracker.start()
    assert cluster.end_of(tracker).state == "succeeded"
    assert output(spec) == COUNTS
    tasks = cluster.tasks(tracker, "map")
    assert [len(task.attempts) for task in tasks] == [1, 1, 1, 1]


def test_files_are_removed_although_the_tracker_was_killed_when_the_job_had_ended(cluster):
    spec = cluster.wordcount(*TEXTS)
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    until((Path(spec.output) / "_SUCCESS").exists, 60)
    tracker.kill()
    tracker.start()
    cluster.active(tracker)
    cluster.settled()
    assert cluster.end_of(tracker).state == "succeeded"
    assert output(spec) == COUNTS


def test_a_standby_takes_over(cluster):
    spec = cluster.wordcount(*TEXTS, gated="reduce")
    first = cluster.active(cluster.tracker("first", standby=""))
    second = cluster.tracker("second", standby="")
    first.client.submit(spec)
    cluster.wait_running(first, "reduce", 2)
    first.kill()
    cluster.active(second)
    first.start()
    cluster.open()
    assert cluster.end_of(second).state == "succeeded"
    assert output(spec) == COUNTS
    cluster.settled()


def test_a_tracker_that_stood_still_changes_nothing_when_it_goes_on(cluster):
    """SIGSTOP; its successor does the job; then it wakes up."""
    spec = cluster.wordcount(*TEXTS, gated="reduce")
    first = cluster.active(cluster.tracker("first"))
    first.client.submit(spec)
    cluster.wait_running(first, "reduce", 2)
    first.pause()
    second = cluster.active(cluster.tracker("second"))
    cluster.open()
    assert cluster.end_of(second).state == "succeeded"
    cluster.settled()
    first.resume()
    assert first.wait() != 0
    cluster.trackers.remove(first)
    assert output(spec) == COUNTS
    assert second.client.view(JOB).state == "succeeded"


def test_an_agent_that_is_lost_after_the_maps_costs_its_outputs_only(tmp_path):
    with MapReduce(
        tmp_path,
        agent_ping_interval="1s",
        max_agent_ping_timeouts="3",
        agent_reregister_timeout="1s",
    ) as cluster:
        cluster.start_agents("a", "b", resources="cpus:2;mem:1024")
        spec = cluster.wordcount(*TEXTS, gated="map", conf=ALONE)
        tracker = cluster.active(cluster.tracker())
        tracker.client.submit(spec)
        cluster.wait_running(tracker, "map", 4)
        hosts = [task.attempts[0].hostname for task in cluster.tasks(tracker, "map")]
        lost = hosts[0]
        late = next(number for number, host in enumerate(hosts) if host != lost)
        for number in range(4):
            if number != late:
                cluster.open(f"attempt_20261128141500_0001_m_{number:06}_0")
        cluster.wait_for(tracker, lambda view: view.maps.done == 3)
        cluster.lose(next(agent for agent in cluster.agents if agent.name == lost))
        mine = hosts.count(lost)
        cluster.wait_for(tracker, lambda view: view.maps.lost_outputs == mine)
        cluster.open()
        assert cluster.end_of(tracker).state == "succeeded"
        assert output(spec) == COUNTS
        attempts = [len(task.attempts) for task in cluster.tasks(tracker, "map")]
        assert attempts == [2 if host == lost else 1 for host in hosts]


def test_of_twin_attempts_one_is_committed(cluster):
    """A reduce that waits gets a twin; then both go on at once."""
    spec = cluster.wordcount(
        *TEXTS, gated="reduce", reduces=4, conf={"mapreduce.map.speculative": "false"}
    )
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    cluster.wait_running(tracker, "reduce", 4)
    for number in range(3):
        cluster.open(f"attempt_20261128141500_0001_r_{number:06}_0")
    cluster.wait_for(tracker, lambda view: view.reduces.twins == 1)
    cluster.open()
    assert cluster.end_of(tracker).state == "succeeded"
    assert output(spec) == COUNTS
    ends = sorted(a.state for a in cluster.tasks(tracker, "reduce")[3].attempts)
    assert ends == ["done", "killed"]
    cluster.settled()


def test_an_agent_that_was_cut_off_and_is_back_changes_nothing(tmp_path):
    """Its attempts go on meanwhile, and have ended when it is heard of again."""
    with MapReduce(tmp_path, agent_ping_interval="1s", max_agent_ping_timeouts="2") as cluster:
        cluster.start_agents("a", "b", resources="cpus:2;mem:1024")
        spec = cluster.wordcount(*TEXTS, gated="reduce", reduces=3)
        tracker = cluster.active(cluster.tracker())
        tracker.client.submit(spec)
        cluster.wait_running(tracker, "reduce", 3)
        host = cluster.tasks(tracker, "reduce")[0].attempts[0].hostname
        agent = next(agent for agent in cluster.agents if agent.name == host)
        agent.pause()
        cluster.wait_for(tracker, lambda view: view.reduces.attempts_lost >= 1)
        cluster.open()
        assert cluster.end_of(tracker).state == "succeeded"
        assert output(spec) == COUNTS
        agent.resume()
        cluster.settled()
        assert output(spec) == COUNTS


def test_a_framework_that_was_removed_is_followed_by_another_one(cluster):
    """An operator has torn it down while no tracker was there: its tasks are gone."""
    spec = cluster.wordcount(*TEXTS, gated="reduce")
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    cluster.wait_running(tracker, "reduce", 2)
    tracker.kill()
    framework = cluster.operator.frameworks().frameworks[0].framework_info.id.value
    assert cluster.cli("teardown", framework).code == 0
    cluster.wait_until(lambda: not cluster.used())
    cluster.open()
    tracker.start()
    assert cluster.end_of(tracker).state == "succeeded"
    assert output(spec) == COUNTS


def test_a_master_that_is_killed_costs_nothing(cluster):
    """Attempts run on, and end, while there is no master."""
    spec = cluster.wordcount(*TEXTS, gated="reduce", conf=ALONE)
    tracker = cluster.active(cluster.tracker())
    tracker.client.submit(spec)
    cluster.wait_running(tracker, "reduce", 2)
    cluster.master.kill()
    cluster.open()
    cluster.master.start()
    assert cluster.end_of(tracker).state == "succeeded"
    assert output(spec) == COUNTS
    for task in (*cluster.tasks(tracker, "map"), *cluster.tasks(tracker, "reduce")):
        assert [(one.state, one.why) for one in task.attempts] == [("done", "")]
    cluster.settled()


def test_three_hundred_jobs_of_ten_clients_all_end(tmp_path):
    """Nothing waits for ever beside free agents; agents and workers are pretended."""
    specs = [
        workers.job(tmp_path, f"job_20261128141500_{number:04}", maps=1) for number in range(300)
    ]
    with workers.FakeWorkers({"a": Resources.of(cpus=4, mem=4096)}) as pretended:
        state = str(tmp_path / "state")
        tracker = Tracker(TrackerOptions(master=pretended.address, state=state))
        tracker.start()
        assert tracker.wait_active(120)
        with ThreadPoolExecutor(10) as clients:
            list(clients.map(tracker.submit, specs))
        until(lambda: tracker.is_idle, 300)
        assert {view.state for view in tracker.views(1000)} == {"succeeded"}
        assert len(tracker.views(1000)) == 300
        tracker.stop(end=True)
    # Each task, and twins where the machine was slow.
    tasks = {name.task_id for each in pretended.works if (name := parse_attempt(each))}
    assert len(tasks) == 600
    assert list((tmp_path / "state" / "jobs").iterdir()) == []
