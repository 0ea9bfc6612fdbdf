"""Room for short tasks through real daemons: offered apart, and taken back in time."""

from collections.abc import Iterator

import pytest

from mesos_py.states import TASK_FAILED, TASK_RUNNING
from mesos_py.v1.types_pb2 import Offer, TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, what


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    flags = {
        "short_task_share": "50%",
        "short_task_max_duration": "1s",
        "offer_timeout": "0s",
        "work_dir": str(tmp_path / "master"),
    }
    with Cluster(tmp_path, **flags) as cluster:
        cluster.start_agent("a", "cpus:2;mem:512;disk:0")
        yield cluster


def offers_of(cluster: Cluster, framework: Framework) -> list[Offer]:
    """The one for any task, and the one for short ones."""
    cluster.wait_until(lambda: len(framework.live_offers()) == 2)
    return sorted(framework.live_offers(), key=lambda offer: offer.HasField("max_task_duration"))


def test_half_of_an_agent_is_for_tasks_that_end_in_time(cluster):
    with Framework(cluster.address) as framework:
        long, short = offers_of(cluster, framework)
        assert (what(long).scalar("cpus"), what(short).scalar("cpus")) == (1, 1)
        assert short.max_task_duration.nanoseconds == 10**9
        for name, offer in (("long", long), ("short", short)):
            task = framework.task("exec sleep 600", offer, cpus=1)
            task.task_id.value = name
            framework.driver.launch_tasks(offer, task)
        framework.status("long", TASK_RUNNING)
        ended = framework.status("short", TASK_FAILED)
        assert ended.reason == TaskStatus.REASON_MAX_COMPLETION_TIME_REACHED
        assert ended.message == (
            "Task ran on room for short tasks of at most 1 s; its time is over"
        )
        assert framework.states("long")[-1] == "RUNNING"


def test_a_command_that_does_not_know_how_long_it_takes_stays_away_from_there(cluster):
    ended = cluster.cli("run", "-n", "2", "--cpus", "1", "--timeout", "40s", "sleep 2; echo done")
    assert ended.code == 0
    assert ended.out.count(b"done") == 2
    ended_states = {
        task.state
        for each in cluster.operator.frameworks().completed_frameworks
        for task in cluster.history(each.framework_info.id.value)
    }
    assert TASK_FAILED not in ended_states
