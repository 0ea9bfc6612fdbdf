"""The example of a scheduler that survives: real master, agent and ZooKeeper.

A job notes its start and its end in a file of its own, so that every run shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from examples.standby_scheduler import Deposed, Job, Store
from tests.kit.cluster import Cluster
from tests.kit.instances import Instance, one_of
from tests.kit.proxy import Proxy
from tests.kit.zookeeper import NEEDS, Ensemble

pytestmark = pytest.mark.needs(*NEEDS)

MODULE = "examples.standby_scheduler"


@pytest.fixture(scope="module")
def zk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with Ensemble(tmp_path_factory.mktemp("zk"), 1) as ensemble:
        yield ensemble


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("standby"), standby_hold="100ms") as cluster:
        cluster.start_agent("a", "cpus:0.2;mem:512")  # two jobs at a time
        cluster.operator.version()
        yield cluster


class Work:
    """A list of jobs, the instances that run it, and what shows of it."""

    def __init__(self, cluster: Cluster, zk: Ensemble, directory: Path, commands: list[str]):
        self.cluster = cluster
        self.directory = directory
        self.state = f"{zk.hosts}/{directory.name}"
        self.count = len(commands)
        (directory / "marks").mkdir()
        lines = [
            f"echo start >> {directory}/marks/{number}; {command}; "
            f"echo end >> {directory}/marks/{number}"
            for number, command in enumerate(commands, start=1)
        ]
        (directory / "jobs").write_text("\n".join(lines))

    def instance(self, name: str, master: str = "") -> Instance:
        args = ["jobs", "--master", master or self.cluster.address]
        args += ["--state", self.state, "--name", name]
        return Instance(self.directory, name, MODULE, *args)

    def marks(self) -> list[list[str]]:
        files = [self.directory / "marks" / str(n + 1) for n in range(self.count)]
        return [each.read_text().split() if each.exists() else [] for each in files]

    def go_on(self, *numbers: int) -> None:
        """Let the jobs end that wait for it (`until_told`)."""
        for number in numbers:
            (self.directory / f"go-{number}").touch()

    def assert_each_ran_once(self) -> None:
        assert self.marks() == [["start", "end"]] * self.count


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    return tmp_path


def until_told(directory: Path, number: int) -> str:
    return f"while [ ! -e {directory}/go-{number} ]; do sleep 0.05; done"


def active(instance: Instance) -> bool:
    said = [line for line in instance.lines if "active:" in line or "standing by" in line]
    return instance.alive and bool(said) and "active:" in said[-1]


def test_jobs_run_once_though_every_active_instance_is_killed(
    running: Cluster, zk: Ensemble, directory: Path
) -> None:
    """Jobs wait until they are told, so that there is something to launch for each of them."""
    work = Work(running, zk, directory, [until_told(directory, n) for n in range(1, 13)])
    with ExitStack() as stack:
        instances = [stack.enter_context(work.instance(f"i{n}")) for n in range(4)]
        for turn in range(3):
            victim = one_of(instances, active)
            victim.wait_for("launch as")
            victim.kill()
            work.go_on(2 * turn + 1, 2 * turn + 2)
        work.go_on(*range(7, 13))
        last = one_of(instances, active)
        assert last.wait() == 0
    work.assert_each_ran_once()


def test_a_successor_asks_for_the_long_task_before_it_launches_anything(
    running: Cluster, zk: Ensemble, directory: Path
) -> None:
    work = Work(running, zk, directory, [until_told(directory, 1), *["true"] * 3])
    with work.instance("one") as one:
        one.wait_for("job 1: RUNNING")
        one.kill()
        with work.instance("two") as two:
            two.wait_for("active: 4 jobs")
            work.go_on(1)
            assert two.wait() == 0
            said = [line.split(": ", 2)[2] for line in two.lines]
    # It may have stood by, for as long as the master did not know of the end of the other one.
    said = said[next(n for n, line in enumerate(said) if line.startswith("active: ")) :]
    assert said[1].startswith("asking for ")
    assert "job-1-1" in said[1]
    first_launch = next((n for n, line in enumerate(said) if ": launch as" in line), len(said))
    heard = next(n for n, line in enumerate(said) if line.startswith("job 1: "))
    assert heard < first_launch
    assert not any("job-1-2" in line for line in said)
    work.assert_each_ran_once()


def test_a_process_that_loses_and_regains_the_lead_counts_as_before(
    running: Cluster, zk: Ensemble, directory: Path
) -> None:
    work = Work(running, zk, directory, [until_told(directory, 1), "true", "true", "true"])
    with ExitStack() as stack:
        ways = [stack.enter_context(Proxy(running.address)) for _ in range(2)]
        one, two = (
            stack.enter_context(work.instance(name, way.address))
            for name, way in zip(("one", "two"), ways, strict=True)
        )
        leading = one_of((one, two), active)
        if leading is two:
            one, two, ways = two, one, ways[::-1]
        two.wait_for("standing by")
        for turn in range(1, 4):
            for way, loser, winner in ((ways[0], one, two), (ways[1], two, one)):
                way.cut()
                winner.wait_for("active: 4 jobs", turn + (winner is one))
                way.restore()
                loser.wait_for("standing by", turn + (loser is two))
        work.go_on(1)
        assert one.wait() == 0
        assert two.wait() == 0
        assert len([line for line in one.lines if "active: 4 jobs" in line]) == 4
    work.assert_each_ran_once()


def test_one_that_stood_still_cannot_write_when_it_wakes(
    running: Cluster, zk: Ensemble, directory: Path
) -> None:
    client = KazooClient(hosts=zk.hosts)
    client.start()
    try:
        old, new = (Store(client, f"/{directory.name}") for _ in range(2))
        old.begin_reign("old")
        old.add(["true", "false"])
        new.begin_reign("new")
        (first, _) = old.jobs()
        first.state = "done"
        with pytest.raises(Deposed, match="reign 1 is over"):
            old.write(first)
        assert [job.state for job in new.jobs()] == ["waiting", "waiting"]
        first.state = "launched"
        new.write(first)
        assert first in new.jobs()
        assert not new.finished()
        new.add(["true", "false"])
        assert len(new.jobs()) == 2
        stale = Job(2, "false", version=7)
        with pytest.raises(Deposed):
            new.write(stale)
    finally:
        client.stop()
        client.close()


def test_an_instance_that_is_asked_to_end_leaves_the_rest_to_the_others(
    running: Cluster, zk: Ensemble, directory: Path
) -> None:
    work = Work(running, zk, directory, [until_told(directory, 1)])
    with work.instance("one") as one:
        one.wait_for("job 1: RUNNING")
        with work.instance("two") as two:
            two.wait_for("standing by")
            assert one.stop() == 0
            two.wait_for("job 1: RUNNING")
            work.go_on(1)
            assert two.wait() == 0
    work.assert_each_ran_once()
