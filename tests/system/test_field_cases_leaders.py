"""Field cases "ZooKeeper", and of "Failover & recovery" those about who leads.

Each master, agent, scheduler and ZooKeeper server is a host of its own; a writer has all
masters store numbers all the time, so that `prove` finds two that took one at once.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from tests.kit import zookeeper
from tests.kit.chaos.cluster import SESSION_S, ZOOKEEPER_PORT, ChaosCluster
from tests.kit.chaos.daemons import HostDaemon
from tests.kit.chaos.ledger import boottime_s
from tests.kit.chaos.wires import Drop
from tests.kit.chaos.workload import Plan

pytestmark = pytest.mark.needs("root", "nft", "unshare", "nsenter", *zookeeper.NEEDS)

BUSY = Plan("", "", short=100_000, long=4, seconds=0.5)


def three_masters(directory: Path, *, masters: int = 3, zookeepers: int = 1) -> ChaosCluster:
    return ChaosCluster(directory, BUSY, masters=masters, zookeepers=zookeepers)


def without_zookeeper(master: HostDaemon) -> list[Drop]:
    return [Drop(source=master.host.address, port=ZOOKEEPER_PORT)]


def another_leads(cluster: ChaosCluster, terms: int) -> None:
    """Wait for a leadership after so many."""
    cluster.wait_until(lambda: len(cluster.terms()) > terms)


def works_on(cluster: ChaosCluster, since_s: float) -> None:
    """Wait until a task has begun after this moment."""
    cluster.wait_until(lambda: cluster.runs_since(since_s))


def gave_up(master: HostDaemon) -> int:
    """How many leaderships it has ended by itself."""
    return master.log.count("not leading any more")


def has_given_up(master: HostDaemon, before: int) -> bool:
    """Whether it has ended more leaderships than it had."""
    return gave_up(master) > before


def untouched(cluster: ChaosCluster) -> bool:
    """All long tasks are the first of their work, and run."""
    running = {run.task_id for run in cluster.runs() if run.ended is None}
    return {f"long{number}.1" for number in range(BUSY.long)} <= running


def test_a_leader_that_loses_zookeeper_stops_before_another_one_can_lead(tmp_path):
    with three_masters(tmp_path, zookeepers=3) as cluster:
        cluster.wait_until(lambda: untouched(cluster))
        old, terms = cluster.leader(), len(cluster.terms())
        blocked, given_up = without_zookeeper(old), gave_up(old)
        cluster.wires.add(blocked)
        cut_s = time.monotonic()
        another_leads(cluster, terms)
        cluster.wait_until(lambda: gave_up(old) > given_up)
        # It was heard, and took nothing, though everybody but ZooKeeper still reached it.
        assert cluster.leader() != old
        assert cluster.last_write_s(old) < cut_s + SESSION_S
        begun_s = max(term.begun_s for term in cluster.terms())
        assert cluster.offers_between(cut_s + SESSION_S, begun_s) == []
        assert old.alive
        cluster.sleep(SESSION_S)
        stood = old.log.count("standing for election")
        cluster.wires.remove(blocked)
        healed_s = boottime_s()
        cluster.wait_until(lambda: old.log.count("standing for election") > stood)
        works_on(cluster, healed_s)
        assert untouched(cluster)
        cluster.prove()


def test_a_leader_that_stood_still_and_goes_on_leads_no_more(tmp_path):
    with three_masters(tmp_path) as cluster:
        cluster.wait_until(lambda: untouched(cluster))
        old, terms = cluster.leader(), len(cluster.terms())
        given_up = gave_up(old)
        old.pause()
        another_leads(cluster, terms)
        cluster.sleep(2 * SESSION_S)
        old.resume()
        cluster.wait_until(lambda: gave_up(old) > given_up)
        assert untouched(cluster)
        cluster.prove()
        assert cluster.count("update", state="UNREACHABLE") == 0


def test_the_same_process_leads_again_and_again_and_nothing_runs_twice(tmp_path):
    with three_masters(tmp_path, masters=1) as cluster:
        (master,) = cluster.masters
        cluster.wait_until(lambda: untouched(cluster))
        process = master.process.pid
        for _ in range(3):
            terms, given_up = len(cluster.terms()), gave_up(master)
            blocked = without_zookeeper(master)
            cluster.wires.add(blocked)
            cluster.sleep(2 * SESSION_S)
            cluster.wait_until(partial(has_given_up, master, given_up))
            cluster.wires.remove(blocked)
            healed_s = boottime_s()
            another_leads(cluster, terms)
            works_on(cluster, healed_s)
        assert master.process.pid == process
        assert untouched(cluster)
        cluster.prove()


def test_a_new_leader_gives_up_nobody(tmp_path):
    with three_masters(tmp_path) as cluster:
        cluster.wait_until(lambda: untouched(cluster))
        for _ in range(3):
            name, terms = cluster.leader().name, len(cluster.terms())
            cluster.take_down(name, "kill")
            another_leads(cluster, terms)
            cluster.bring_up(name)
            led_s = boottime_s()
            works_on(cluster, led_s)
        # Longer than an agent of which nothing is heard is waited for.
        cluster.sleep(10)
        assert untouched(cluster)
        assert cluster.count("update", state="UNREACHABLE") == 0
        cluster.prove()


def test_zookeeper_may_be_gone_for_a_while_and_come_back(tmp_path):
    with three_masters(tmp_path, zookeepers=3) as cluster:
        cluster.wait_until(lambda: untouched(cluster))
        servers, terms = [each.name for each in cluster.zookeepers], len(cluster.terms())
        for name in servers:
            cluster.take_down(name, "kill")
        cluster.sleep(3 * SESSION_S)
        for name in servers:
            cluster.bring_up(name)
        another_leads(cluster, terms)
        led_s = boottime_s()
        works_on(cluster, led_s)
        assert untouched(cluster)
        cluster.prove()


def test_servers_of_zookeeper_are_restarted_one_after_the_other(tmp_path):
    with three_masters(tmp_path, zookeepers=3) as cluster:
        cluster.wait_until(lambda: untouched(cluster))
        for each in cluster.zookeepers:
            cluster.take_down(each.name, "stop")
            cluster.bring_up(each.name)
            cluster.wait_until(each.server.serves)
        assert untouched(cluster)
        assert cluster.count("update", state="UNREACHABLE") == 0
        cluster.prove()
