"""Field cases about offers: silence, idle company, waits that must not be forgotten."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from mesos_py.resources import Resources
from mesos_py.states import TASK_DROPPED, TASK_FINISHED, TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import launch
from mesos_py.v1.scheduler_pb2 import AttributeConstraint, OfferConstraints
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of, what
from tests.kit.jobs import Jobs
from tests.kit.raw import RawScheduler
from tests.kit.waiting import gone, until

SIZE = "cpus:2;mem:1024;disk:0;ports:[21600-21601]"


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cases"), offer_timeout="0s") as cluster:
        cluster.start_agent("a", SIZE, executor_shutdown_grace_period="200ms")
        cluster.operator.version()
        yield cluster


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    with running.undisturbed():
        yield running


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address) as framework:
        yield framework


# --- silence ------------------------------------------------------------------------------


def test_a_silent_frameworks_offer_goes_to_the_one_that_waits(tmp_path):
    """And what the silent one does with it later starts nothing and is no failed task."""
    with Cluster(tmp_path, offer_timeout="1s") as cluster:
        cluster.start_agent("a", SIZE)
        with RawScheduler(cluster.address) as silent:
            silent.subscribe()
            offer = silent.offer()
            with Framework(cluster.address, "waiting") as waiting:
                taken = waiting.offer("a")
                # At once: it, too, is there for a second only.
                task = waiting.task("true", taken)
                waiting.driver.launch_tasks(taken, task)
                assert what(taken) == Resources.from_proto("offer", offer.resources)
                rescinded = silent.event(silent.Event.RESCIND).rescind
                assert rescinded.offer_id == offer.id
                late = waiting.task(f"touch {tmp_path}/ran", offer, task_id="late")
                silent.call(
                    silent.Call.ACCEPT,
                    accept=silent.Call.Accept(offer_ids=[offer.id], operations=[launch(late)]),
                )
                dropped = silent.status("late")
                assert dropped.state == TASK_DROPPED
                assert dropped.reason == TaskStatus.REASON_INVALID_OFFERS
                assert "offer gone: not answered within 1 s" in dropped.message
                waiting.status(task.task_id.value, TASK_FINISHED)
            silent.teardown()
        assert not (tmp_path / "ran").exists()


def test_a_launch_on_an_offer_that_lapsed_is_told_from_a_task_that_failed(tmp_path):
    """Through the SDK: nothing was tried, so nothing counts as an attempt."""
    with Cluster(tmp_path, offer_timeout="300ms") as cluster:
        cluster.start_agent("a", SIZE)
        with Framework(cluster.address) as framework:
            offer = framework.offer()
            framework.wait_for("rescinded", lambda offer_id: offer_id == offer.id.value)
            framework.driver.launch_tasks(offer, framework.task("true", offer, task_id="late"))
            dropped = framework.wait_for("update")
            assert dropped.reason == TaskStatus.REASON_INVALID_OFFERS
            assert dropped.state == TASK_DROPPED
            # The id has not been used: the same task may be tried again.
            while not framework.statuses("late")[-1].uuid:
                told = len(framework.all("update"))
                framework.launch("true", task_id="late")
                framework.wait_for("update", count=told + 1)
            framework.status("late", TASK_FINISHED)


# --- idle company ---------------------------------------------------------------------------


def test_ten_idle_frameworks_do_not_keep_the_busy_one_waiting(cluster):
    """They hand everything back for the usual five seconds, again and again."""
    with ExitStack() as stack:
        idle = [stack.enter_context(Idle(cluster.address, f"idle-{n}")) for n in range(10)]
        jobs = stack.enter_context(Jobs(cluster.address, ["true"] * 30, cpus=1))
        jobs.wait_for_all()
        assert jobs.states_at_end == {"FINISHED": 30}
        assert any(framework.all("offers") for framework in idle)


class Idle(Framework):
    """Has nothing to run, and never says so."""

    def resource_offers(self, driver, offers):
        driver.decline_offers(offers)
        super().resource_offers(driver, offers)


# --- waits ----------------------------------------------------------------------------------


def filled(framework: Framework, text: str, task_id: str) -> TaskStatus:
    """A task that holds just these resources."""
    offer = framework.gather(text)
    task = framework.task(
        "exec sleep 600",
        offer,
        task_id=task_id,
        cpus=None,
        mem=None,
        resources=Resources.parse(text),
    )
    framework.driver.launch_tasks(offer, task, filters=0)
    return framework.status(task_id, TASK_RUNNING)


@pytest.mark.parametrize("what_is_scarce", ["cpus:2", "mem:1024", "ports:[21600-21600]"])
def test_what_waits_for_a_resource_gets_it_when_it_is_free(framework, what_is_scarce):
    filled(framework, what_is_scarce, "holder")
    framework.driver.kill_task("holder", grace_s=0)
    framework.status("holder", TASK_KILLED)
    filled(framework, what_is_scarce, "waiter")


def test_what_waits_for_two_things_gets_them_when_the_second_is_free(cluster, framework):
    filled(framework, "cpus:2", "cpus")
    filled(framework, "ports:[21600-21600]", "port")
    with Framework(cluster.address, "other") as other:
        framework.driver.set_needs_offers(False)
        framework.give_back()
        other.driver.set_filters(min_free=Resources.of(cpus=2))
        for task_id in ("cpus", "port"):
            framework.driver.kill_task(task_id, grace_s=0)
            framework.status(task_id, TASK_KILLED)
        filled(other, "cpus:2;ports:[21600-21600]", "waiter")


def test_what_waits_for_an_attribute_gets_the_agent_that_has_it(cluster, framework):
    constraint = AttributeConstraint()
    constraint.selector.attribute_name = "gpu"
    constraint.predicate.exists.SetInParent()
    rules = OfferConstraints.RoleConstraints
    group = rules.Group(attribute_constraints=[constraint])
    framework.driver.set_filters(constraints=rules(groups=[group]))
    guest = cluster.start_agent("guest", "cpus:1;mem:64;disk:0", attributes="gpu:yes")
    framework.launch("true", host="guest")
    framework.status("t1", TASK_FINISHED)
    assert guest.stop() == 0
    cluster.agents.remove(guest)


def test_the_rest_of_a_batch_and_replacements_start_without_being_asked_twice(cluster, tmp_path):
    """30 jobs, room for 20, 5 of them fail and are replaced."""
    commands = ["exit 1" if n < 5 else f"touch {tmp_path}/{n}" for n in range(30)]
    with Jobs(cluster.address, commands) as jobs:
        jobs.wait_for_all()
        assert jobs.states_at_end == {"FINISHED": 25, "FAILED": 5}
        with Jobs(cluster.address, [f"touch {tmp_path}/{n}" for n in range(5)]) as again:
            again.wait_for_all()
    assert len(list(tmp_path.iterdir())) == 30


def test_three_hundred_jobs_of_ten_clients_at_once_all_end_once(cluster, tmp_path):
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                Jobs(
                    cluster.address,
                    [f"echo x >> {tmp_path}/{client}.{n}" for n in range(30)],
                    name=f"client-{client}",
                    cpus=(0.1, 0.2, 0.66)[client % 3],
                )
            )
            for client in range(10)
        ]
        for each in clients:
            each.wait_for_all()
            assert each.states_at_end == {"FINISHED": 30}
            assert set(each.ends.values()) == {1}
    ran = [path.read_text() for path in tmp_path.iterdir()]
    assert ran == ["x\n"] * 300


# --- ports ----------------------------------------------------------------------------------


PORT_HOLDER = """
import signal, socket, sys, time
signal.signal(signal.SIGTERM, lambda *_: open(sys.argv[2], "w"))
held = socket.socket()
held.bind(("127.0.0.1", int(sys.argv[1])))
held.listen()
open(sys.argv[3], "w")
while True:
    time.sleep(60)
"""


def test_a_port_is_in_no_offer_until_the_task_that_holds_it_is_gone(framework, tmp_path):
    """It ignores SIGTERM for the whole grace; its successor can bind the port at once."""

    def hold(name: str) -> str:
        offer = framework.offer(has="ports:[21600-21600]")
        argv = [sys.executable, "-c", PORT_HOLDER, "21600"]
        argv += [str(tmp_path / f"{name}.told"), str(tmp_path / f"{name}.bound")]
        port = Resources.parse("ports:[21600-21600]")
        task = framework.task(argv, offer, task_id=name, resources=port)
        framework.driver.launch_tasks(offer, task, filters=0)
        until((tmp_path / f"{name}.bound").exists)
        return name

    hold("first")
    pid = pid_of(framework.status("first", TASK_RUNNING))
    framework.driver.kill_task("first", grace_s=1)
    until((tmp_path / "first.told").exists)
    offered = framework.offer()
    assert 21600 not in {n for begin, end in ports(offered) for n in range(begin, end + 1)}
    framework.driver.decline_offers(offered, filters=0)
    hold("second")
    assert gone(pid)


def ports(offer) -> list[tuple[int, int]]:
    return [(begin, end) for begin, end in what(offer).ranges.get("ports", ())]


def test_ports_that_an_agent_finds_by_itself_are_not_those_that_the_kernel_gives_away(tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.start_agent("a", "cpus:1;mem:64;disk:0")
        with Framework(cluster.address) as framework:
            spans = ports(framework.offer())
    assert spans
    assert all(end < 32768 or begin > 60999 for begin, end in spans)


# --- explained ------------------------------------------------------------------------------


def explained(cluster: Cluster, framework: Framework) -> str:
    (entry,) = cluster.operator.explain(framework.id)
    return "\n".join(entry.findings)


def test_too_large_a_wish_is_explained_by_the_largest_agent(cluster, framework):
    framework.driver.state_waiting([("huge", Resources.of(cpus=100), 1)])
    said = "'huge' needs 100 cpus, largest agent has 2"
    cluster.wait_until(lambda: said in explained(cluster, framework))


def test_an_attribute_that_no_agent_has_is_named(cluster, framework):
    constraint = AttributeConstraint()
    constraint.selector.attribute_name = "gpu"
    constraint.predicate.exists.SetInParent()
    rules = OfferConstraints.RoleConstraints
    group = rules.Group(attribute_constraints=[constraint])
    framework.driver.set_filters(constraints=rules(groups=[group]))
    framework.driver.state_waiting([("drawing", Resources.of(cpus=1), 1)])
    said = "'drawing' needs an agent with gpu exists, and none of the 1 agent is one"
    cluster.wait_until(lambda: said in explained(cluster, framework))


def test_hosts_that_are_all_excluded_are_named(cluster, framework):
    framework.driver.set_filters(hosts=["elsewhere", "nowhere"])
    framework.driver.state_waiting([("picky", Resources.of(cpus=1), 1)])
    cluster.wait_until(lambda: "'picky' needs an agent with" in explained(cluster, framework))
    said = explained(cluster, framework)
    assert "elsewhere" in said
    assert "nowhere" in said


def test_what_is_only_taken_at_the_moment_is_told_from_what_is_not_there(cluster, framework):
    filled(framework, "cpus:1.5", "holder")
    with Framework(cluster.address, "other") as other:
        other.driver.state_waiting([("waits", Resources.of(cpus=1), 1)])
        said = "'waits' needs 1 cpus, at most "
        cluster.wait_until(lambda: said in explained(cluster, other))
