"""Offers of a real master and agents: made, answered, withdrawn, filtered."""

from collections.abc import Iterator

import pytest

from mesos_py.resources import Resources
from mesos_py.states import TASK_FINISHED, TASK_KILLED, TASK_RUNNING
from mesos_py.v1.scheduler_pb2 import AttributeConstraint, OfferConstraints
from mesos_py.v1.types_pb2 import Offer, OfferID
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, what
from tests.kit.raw import RawScheduler
from tests.kit.waiting import until

Predicate = AttributeConstraint.Predicate
RoleConstraints = OfferConstraints.RoleConstraints
SIZE = "cpus:2;mem:1024;ports:[21300-21301]"
HOUR = 3600.0


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("offers"), offer_timeout="0s") as cluster:
        for name, attributes in (("a", "rack:r1;disk:{ssd,hdd}"), ("b", "rack:r2;level:7")):
            cluster.start_agent(name, SIZE + ";disk:0", attributes=attributes)
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


@pytest.fixture
def other(cluster, framework) -> Iterator[Framework]:
    """A second framework, which wants nothing at first."""
    other = Framework(cluster.address, "other")
    other.driver.set_needs_offers(False)
    with other:
        yield other


def both(framework: Framework) -> list[Offer]:
    """One offer of each agent."""
    return [framework.offer("a"), framework.offer("b")]


# --- what an offer is -------------------------------------------------------------


def test_each_agent_is_offered_whole_with_its_host_and_attributes(cluster, framework):
    for offer in both(framework):
        assert offer.agent_id.value == cluster.agent_id(offer.hostname)
        assert offer.framework_id.value == framework.id
        assert what(offer).scalar("cpus") == 2
        assert what(offer).scalar("mem") == 1024
    attributes = {a.name: a for a in framework.all("offers")[0][0].attributes}
    assert set(attributes) in ({"rack", "disk"}, {"rack", "level"})


def test_what_is_on_offer_is_listed_with_its_framework_and_its_agent(cluster, framework):
    both(framework)
    (listed,) = cluster.operator.frameworks().frameworks
    assert {offer.hostname for offer in listed.offers} == {"a", "b"}
    for row in cluster.operator.agents():
        offered = Resources.from_proto("offered", row.offered_resources)
        assert offered == Resources.from_proto("total", row.total_resources)
        assert not row.allocated_resources


def test_what_one_framework_is_offered_the_other_is_not(framework, other):
    both(framework)
    other.driver.set_needs_offers(True)
    framework.driver.decline_offers(framework.all("offers")[0][0], filters=HOUR)
    other.offer()
    assert len(other.all("offers")) == 1


def test_frameworks_of_two_roles_are_served_by_their_weights(tmp_path):
    """A single agent of eight cpus, given out one by one: six to two with weights 3 and 1."""
    with Cluster(tmp_path, weights="prod=3,dev=1") as cluster:
        with (
            Framework(cluster.address, "p", roles=["prod"]) as prod,
            Framework(cluster.address, "d", roles=["dev"]) as dev,
        ):
            frameworks = {"prod": prod, "dev": dev}
            count = dict.fromkeys(frameworks, 0)
            cluster.start_agent("a", "cpus:8;mem:1024;disk:0")
            while sum(count.values()) < 8:
                role = _offered_role(frameworks)
                frameworks[role].run("exec sleep 600", cpus=1)
                count[role] += 1
            assert count == {"prod": 6, "dev": 2}


def _offered_role(frameworks: dict[str, Framework]) -> str:
    """Which of them has been offered something."""
    found: list[str] = []

    def look() -> list[str]:
        found[:] = [role for role, framework in frameworks.items() if framework.live_offers()]
        return found

    until(look)
    return found[0]


# --- declining ----------------------------------------------------------------------


def test_what_is_declined_goes_to_another_framework(framework, other):
    offers = both(framework)
    other.driver.set_needs_offers(True)
    framework.driver.decline_offers(offers, filters=HOUR)
    assert {what(offer) for offer in both(other)} == {what(offer) for offer in offers}


def test_a_refusal_lasts_as_long_as_it_says(framework):
    offer = framework.offer("a")
    framework.driver.decline_offers(offer, filters=0.5)
    again = framework.offer("a")
    assert again.id != offer.id


def test_a_refusal_of_no_time_brings_the_offer_back_at_once(framework):
    for _ in range(20):
        framework.driver.decline_offers(framework.offer("a"), filters=0)
    framework.offer("a")


def test_a_refused_agent_is_offered_when_it_has_more_than_was_refused(framework):
    task_id = framework.launch("exec sleep 600", host="a", cpus=1)
    framework.status(task_id, TASK_RUNNING)
    framework.driver.decline_offers(framework.offer("a"), filters=HOUR)
    framework.driver.kill_task(task_id, grace_s=0)
    assert what(framework.offer("a")).scalar("cpus") == 2


def test_reviving_forgets_refusals_every_time(framework):
    """Also one that is on its way with the offer: no wake-up is lost."""
    for _ in range(50):
        framework.driver.decline_offers(both(framework), filters=HOUR)
        framework.driver.set_needs_offers(True)
    both(framework)


def test_declining_what_is_gone_does_nothing(cluster, framework):
    """The driver knows which offers there are, so this is said past it."""
    framework.driver.decline_offers(both(framework), filters=HOUR)
    with RawScheduler(cluster.address) as raw:
        raw.subscribe()
        offer = raw.offer()
        for ids in ([offer.id], [offer.id], [OfferID(value="no-such-offer")]):
            raw.call(raw.Call.DECLINE, decline=raw.Call.Decline(offer_ids=ids))
        # Each call is dealt with before the next.
        raw.call(raw.Call.REVIVE)
        raw.offer(lambda again: again.hostname == offer.hostname and again.id != offer.id)
        assert not [event for event in raw.events() if event.type == raw.Event.REFUSED]
        raw.teardown()


# --- wanting ------------------------------------------------------------------------


def test_who_needs_no_offers_gets_none_until_he_needs_some(framework, other):
    first, _ = both(framework)
    framework.driver.set_needs_offers(False)
    framework.driver.decline_offers(first, filters=0)
    other.driver.set_needs_offers(True)
    before = len(framework.all("offers"))
    for _ in range(10):
        other.driver.decline_offers(other.offer("a"), filters=0)
    assert len(framework.all("offers")) == before
    other.driver.set_needs_offers(False)
    other.give_back()
    framework.driver.set_needs_offers(True)
    framework.offer("a")


def test_an_offer_that_was_made_before_stays_valid(framework):
    offer = framework.offer()
    framework.driver.set_needs_offers(False)
    task = framework.task("true", offer)
    framework.driver.launch_tasks(offer, task)
    framework.status(task.task_id.value, TASK_FINISHED)


@pytest.mark.parametrize("host", ["a", "b"])
def test_only_these_hosts(framework, host):
    offers = both(framework)
    framework.driver.set_filters(hosts=[host])
    framework.driver.decline_offers(offers, filters=0)
    for _ in range(5):
        offer = framework.offer()
        assert offer.hostname == host
        framework.driver.decline_offers(offer, filters=0)


def test_at_least_so_much_free(framework):
    """What is too little is not offered; it waits for more, and is offered then."""
    task_id = framework.launch("exec sleep 600", host="a", cpus=1)
    framework.status(task_id, TASK_RUNNING)
    offers = both(framework)
    framework.driver.set_filters(min_free=Resources.of(cpus=2))
    framework.driver.decline_offers(offers, filters=0)
    for _ in range(5):
        offer = framework.offer()
        assert offer.hostname == "b"
        framework.driver.decline_offers(offer, filters=0)
    framework.driver.kill_task(task_id, grace_s=0)
    assert what(framework.offer("a")).scalar("cpus") == 2


@pytest.mark.parametrize(
    ("attribute", "predicate", "hosts"),
    [
        ("rack", Predicate(text_equals=Predicate.TextEquals(value="r1")), {"a"}),
        ("rack", Predicate(text_not_equals=Predicate.TextNotEquals(value="r1")), {"b"}),
        ("rack", Predicate(text_matches=Predicate.TextMatches(regex="r[12]")), {"a", "b"}),
        ("level", Predicate(exists=Predicate.Exists()), {"b"}),
        ("level", Predicate(not_exists=Predicate.NotExists()), {"a"}),
    ],
)
def test_only_agents_with_such_attributes(framework, attribute, predicate, hosts):
    constraint = AttributeConstraint(predicate=predicate)
    constraint.selector.attribute_name = attribute
    rule = RoleConstraints(groups=[RoleConstraints.Group(attribute_constraints=[constraint])])
    framework.driver.decline_offers(both(framework), filters=HOUR)
    framework.driver.set_filters(constraints=rule)
    framework.driver.set_needs_offers(True)
    assert {framework.offer(host).hostname for host in hosts} == hosts
    assert {offer.hostname for offer in framework.live_offers()} <= hosts


def test_filters_that_are_cleared_let_all_pass_again(framework):
    offers = both(framework)
    framework.driver.set_filters(hosts=["nowhere"])
    framework.driver.decline_offers(offers, filters=0)
    framework.driver.set_filters()
    both(framework)


# --- accepting ----------------------------------------------------------------------


def test_several_offers_of_one_agent_are_merged(framework):
    """A task that fits on neither of them alone."""
    task_id = framework.launch("exec sleep 600", host="a", cpus=1, mem=512)
    framework.status(task_id, TASK_RUNNING)
    first = framework.offer("a")
    framework.driver.kill_task(task_id, grace_s=0)
    framework.status(task_id, TASK_KILLED)
    second = framework.offer("a")
    assert what(first) == Resources.parse("cpus:1;mem:512;ports:[21300-21301]")
    assert what(second) == Resources.parse("cpus:1;mem:512")
    task = framework.task("exec sleep 600", first, cpus=1.5, mem=1000)
    framework.driver.launch_tasks([first, second], task, filters=0)
    framework.status(task.task_id.value, TASK_RUNNING)
    assert what(framework.offer("a")) == Resources.parse("cpus:0.5;mem:24;ports:[21300-21301]")


def test_what_tasks_leave_is_offered_again_unless_it_is_refused(framework, other):
    framework.launch("exec sleep 600", host="a", cpus=0.5)
    assert what(framework.offer("a")).scalar("cpus") == 1.5
    offer = framework.offer("b")
    other.driver.set_needs_offers(True)
    framework.driver.launch_tasks(offer, framework.task("exec sleep 600", offer), filters=HOUR)
    assert what(other.offer("b")).scalar("cpus") == 1.9


def test_what_a_task_had_goes_to_whoever_waits(framework, other):
    task_id = framework.launch("exec sleep 600", host="a", cpus=2, mem=1024)
    framework.status(task_id, TASK_RUNNING)
    framework.driver.set_needs_offers(False)
    other.driver.set_needs_offers(True)
    framework.driver.kill_task(task_id, grace_s=0)
    assert what(other.offer("a")) == Resources.parse(SIZE)


# --- withdrawn ------------------------------------------------------------------------


def test_offers_of_an_agent_that_goes_are_rescinded(cluster, framework):
    guest = cluster.start_agent("guest", "cpus:1;mem:64;disk:0")
    offer = framework.offer("guest")
    assert guest.stop() == 0
    assert framework.wait_for("rescinded") == offer.id.value
    cluster.agents.remove(guest)


def test_offers_of_a_framework_that_goes_are_offered_to_others(cluster, framework, other):
    both(framework)
    other.driver.set_needs_offers(True)
    framework.end()
    both(other)


def test_offers_of_a_role_that_is_left_are_rescinded(cluster):
    with Framework(cluster.address, roles=["one", "two"]) as framework:
        offers = both(framework)
        roles = {offer.allocation_info.role for offer in offers}
        assert roles <= {"one", "two"}
        info = framework.info
        info.ClearField("roles")
        info.roles.append("three")
        framework.driver.update_framework(info)
        framework.wait_for("rescinded", count=2)
        assert {offer.allocation_info.role for offer in both(framework)} == {"three"}
