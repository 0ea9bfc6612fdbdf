"""Offer time-outs of a real master: they grow with silence, and silence costs a wait."""

from mesos_py.states import TASK_DROPPED
from mesos_py.tasks import command_task, launch
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.raw import RawScheduler

SIZE = "cpus:1;mem:512;disk:0;ports:[21600-21601]"


def accept_late(silent: RawScheduler, number: int) -> str:
    """Let the offer of this number expire, then use it all the same: what is said of the
    task."""
    (offer,) = silent.event(silent.Event.OFFERS, count=number).offers.offers
    silent.event(silent.Event.RESCIND, lambda event: event.rescind.offer_id == offer.id)
    task_id = f"t{number}"
    task = command_task(task_id, task_id, offer, "true", cpus=0.1, mem=16)
    accept = silent.Call.Accept(offer_ids=[offer.id], operations=[launch(task)])
    silent.call(silent.Call.ACCEPT, accept=accept)
    status = silent.status(task_id)
    assert status.state == TASK_DROPPED
    return status.message


def test_the_time_grows_with_each_offer_that_expires_and_a_late_answer_brings_the_next(tmp_path):
    with Cluster(tmp_path, first_offer_timeout="200ms") as cluster:
        cluster.start_agent("a", SIZE)
        with RawScheduler(cluster.address) as silent:
            silent.subscribe()
            assert "not answered within 0.2 s" in accept_late(silent, 1)
            assert "not answered within 0.4 s" in accept_late(silent, 2)
            assert "not answered within 0.8 s" in accept_late(silent, 3)
            silent.teardown()


def test_explain_says_that_a_silent_framework_is_left_alone(tmp_path):
    with Cluster(tmp_path, first_offer_timeout="300ms") as cluster:
        cluster.start_agent("a", SIZE)
        with Framework(cluster.address, "silent") as silent:
            offer = silent.offer()
            silent.wait_for("rescinded", lambda offer_id: offer_id == offer.id.value)
            (said,) = cluster.operator.explain(silent.id)
            assert any("left offers unanswered" in line for line in said.findings)
            # A late answer: the driver passes on that somebody is there.
            silent.driver.decline_offers(offer)
            again = silent.wait_for("offers", count=2)
            assert again
