"""The example of a service with a state: whatever is killed, it goes on where it was."""

import os
import signal
from pathlib import Path

from mesos_py.resources import Resources
from tests.kit.cluster import Cluster, Daemon
from tests.kit.instances import Instance
from tests.kit.waiting import until

RESOURCES = "cpus:1;mem:128;disk:64"


class Kept:
    """What is in the volume on that agent, if it has one."""

    def __init__(self, agent: Daemon) -> None:
        self.agent = agent
        self.directory = agent.work_dir / "volumes" / "roles" / "counter" / "counter"

    def number(self) -> int:
        number = self.directory / "number"
        return int(number.read_text()) if number.exists() else 0

    def begun(self) -> list[tuple[int, int]]:
        """Of each task: its pid, and the number that it has found."""
        history = self.directory / "history"
        lines = history.read_text().splitlines(keepends=True) if history.exists() else []
        whole = [line.split() for line in lines if line.endswith("\n")]
        return [(int(words[0]), int(words[-1])) for words in whole]

    def until_counting(self, tasks: int, scheduler: Instance) -> None:
        """Until the last of so many tasks counts, and its scheduler knows."""
        until(lambda: len(self.begun()) == tasks and self.number() > self.begun()[-1][1])
        until(lambda: _last_runs(scheduler.lines))

    def kill_task(self) -> int:
        """kill -9 of the last one; a number it came to."""
        counted = self.number()
        os.kill(self.begun()[-1][0], signal.SIGKILL)
        return counted


def _last_runs(lines: list[str]) -> bool:
    """Whether the task that was launched last is known to run: an offer may have been gone."""
    task_id = [line for line in lines if ": launched on " in line][-1].partition(":")[0]
    return any(line.startswith(f"{task_id}: RUNNING") for line in lines)


def test_the_number_is_there_when_task_agent_or_scheduler_were_killed(tmp_path: Path) -> None:
    def counter(name: str, *args: str) -> Instance:
        given = ("--master", cluster.address, "--state", "counter.json", *args)
        return Instance(tmp_path, name, "examples.counter", *given)

    with Cluster(tmp_path) as cluster:
        agents = cluster.start_agents("a", "b", resources=RESOURCES, tasks_on_exit="keep")
        places = [Kept(agent) for agent in agents]
        with counter("one") as one:
            until(lambda: any(place.begun() for place in places))
            (home,) = (place for place in places if place.begun())
            home.until_counting(1, one)
            counted = [home.kill_task()]
            home.until_counting(2, one)
            home.agent.kill()
            counted.append(home.kill_task())
            home.agent.start()
            home.until_counting(3, one)
            one.kill()
        counted.append(home.kill_task())
        with counter("two") as two:
            home.until_counting(4, two)
        found = [number for _, number in home.begun()]
        assert found[0] == 0
        assert all(new >= old > 0 for new, old in zip(found[1:], counted, strict=True))
        assert [place.directory.exists() for place in places].count(True) == 1
        with counter("three", "--remove") as three:
            assert three.wait() == 0, three.lines
        assert not home.directory.exists()
        for row in cluster.operator.agents():
            assert not Resources.from_proto("total", row.total_resources).has_reserved
