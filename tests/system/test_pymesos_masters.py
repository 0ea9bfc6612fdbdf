"""Schedulers of libraries that are not ours live through the loss of their master: they find the
next one through ZooKeeper, as they find one of Apache Mesos."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.kit.cluster import LOOPBACK, ON
from tests.kit.masters import Masters
from tests.kit.pymesos_programs import MesosHttpScheduler, Scheduler, need_pymesos
from tests.kit.zookeeper import NEEDS

pytestmark = pytest.mark.needs(*NEEDS)


@pytest.fixture
def masters(tmp_path: Path, lacking: Callable[[str], NoReturn]) -> Iterator[Masters]:
    need_pymesos(lacking)
    directory = tmp_path / "cluster"
    directory.mkdir()
    # Clients are sent on to the master that leads by this name.
    with Masters(directory, hostname=LOOPBACK, http_heartbeat_after_event=ON) as made:
        yield made


@pytest.mark.parametrize("library", [Scheduler, MesosHttpScheduler], ids=["pymesos", "mesoshttp"])
def test_it_finds_the_next_master_and_its_tasks_go_on(
    masters: Masters, tmp_path: Path, library: type[Scheduler]
) -> None:
    masters.start_agent("a")
    gate = tmp_path / "gate"
    with library(tmp_path / "p", masters.url) as scheduler:
        framework_id = scheduler.wait("registered")
        returns = len(scheduler.said(library.returned))
        scheduler.launch("long", "exec sleep 1000")
        # Ends when it is told, whether there is a master or not.
        scheduler.launch("gated", f"while [ ! -e {gate} ]; do sleep 0.05; done")
        scheduler.wait("TASK_RUNNING", "long")
        scheduler.wait("TASK_RUNNING", "gated")
        old = masters.leader()
        old.kill()
        gate.touch()
        masters.wait_for_leader(other_than=old)
        # Until then it has nobody to tell anything.
        scheduler.wait(library.returned, count=returns + 1)
        scheduler.wait("TASK_FINISHED", "gated")
        scheduler.launch("short", "true")
        scheduler.wait("TASK_FINISHED", "short")
        scheduler.tell({"kill": "long"})
        scheduler.wait("TASK_KILLED", "long")
        assert scheduler.said("TASK_LOST") == scheduler.said("error") == []
        [found] = masters.operator.frameworks().frameworks
        assert found.framework_info.id.value == framework_id
        scheduler.tell({"stop": None})
        assert scheduler.process.wait(60) == 0
    masters.wait_until(lambda: not masters.operator.frameworks().frameworks)
