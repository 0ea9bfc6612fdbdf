"""Task Processing (Yelp), which ran batch work on Apache Mesos, unmodified, on a cluster of ours.

It is a framework and not a library for them: it writes whole tasks (a container, all kinds of
resources, also those that it needs none of), chooses agents by attributes, suppresses and
revives, and follows by HTTP what its tasks write, at the address that is in the offer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.kit.cluster import Cluster
from tests.kit.pymesos_programs import TaskProcessing, master_of, need_pymesos, serving

SIZE = "cpus:4;mem:4096;disk:100;ports:[21000-21099]"


@pytest.fixture
def cluster(tmp_path: Path, lacking: Callable[[str], NoReturn]) -> Iterator[Cluster]:
    need_pymesos(lacking)
    with serving(tmp_path / "cluster") as made:
        yield made


def test_agents_are_chosen_by_their_attributes(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_agent("a", SIZE, attributes="pool:batch;rack:r1")
    cluster.start_agent("b", SIZE, attributes="pool:batch;rack:r2")
    cluster.start_agent("c", SIZE, attributes="pool:web;rack:r2")
    (tmp_path / "input").write_text("fetched\n")
    with TaskProcessing(tmp_path / "p", master_of(cluster), pool="batch") as program:
        program.wait("control", "registered")
        program.run(
            "good",
            'grep fetched input && test "$A" = b && test "$PORT0" -ge 21000',
            uris=[str(tmp_path / "input")],
            environment={"A": "b"},
            constraints=[["rack", "==", "r2"]],
        )
        program.run("long", "exec sleep 1000", constraints=[["rack", "LIKE", ".*1"]])
        assert program.until_said("finished", "good.1")[0] == cluster.agent_id("b")
        assert program.until_said("running", "long.1")[0] == cluster.agent_id("a")
        program.tell({"kill": "long.1"})
        program.until_said("killed", "long.1")
        for state in ("staging", "starting"):
            # More than once if an offer has gone before it was accepted: it tries again.
            assert {each[0] for each in program.said(state)} == {"good.1", "long.1"}
        assert program.leave() == 0
        assert program.said("error") == program.said("failed") == program.said("lost") == []
    cluster.wait_until(lambda: not cluster.operator.frameworks().frameworks)


def test_it_tries_again_and_follows_what_its_tasks_write(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_agent("a", SIZE)
    with TaskProcessing(tmp_path / "p", master_of(cluster), retries=1) as program:
        program.wait("control", "registered")
        program.run("writes", "echo some; echo more; echo wrong >&2; exec sleep 1000")
        program.run("bad", "exit 3")
        assert program.until_said("failed", "bad.1") == (cluster.agent_id("a"), "0/1")
        assert ["bad.1", cluster.agent_id("a"), "1/1"] in program.said("running")
        assert [each[0] for each in program.said("failed")] == ["bad.1"]
        # It looks every ten seconds.
        program.wait("stdout", "more")
        program.wait("stderr", "wrong")
        assert program.said("stdout") == ["some", "more"]
        assert program.leave() == 0
    cluster.wait_until(lambda: not cluster.used())
