"""Operations on reservations through the SDK: made, sent, answered."""

import pytest

from mesos_py import reserve, reserved_for, reserved_in, unreserve
from mesos_py.errors import Conflict, InvalidResources, InvalidValue
from mesos_py.reserved import Reservation
from mesos_py.resources import EMPTY, Resources
from mesos_py.scheduler import checks
from mesos_py.testing.builders import make_offer, make_task
from mesos_py.testing.fake_master import FakeMaster
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import (
    OPERATION_ERROR,
    OPERATION_FINISHED,
    UUID,
    AgentID,
    Offer,
    OperationID,
    OperationStatus,
)
from tests.kit import reserving
from tests.kit.reserving import amount, by
from tests.kit.scheduler_driver import Recorder, drivers_on
from tests.kit.scheduler_session import kinds, rescind, statuses, subscribed_session, taken

TWO = Resources.of(cpus=2)


def status(state=OPERATION_FINISHED, uuid=b"u" * 16):
    return OperationStatus(
        operation_id=OperationID(value="op"),
        agent_id=AgentID(value="a1"),
        state=state,
        uuid=UUID(value=uuid),
    )


def told(made):
    return Event(
        type=Event.UPDATE_OPERATION_STATUS,
        update_operation_status=Event.UpdateOperationStatus(status=made),
    )


# ---- Made --------------------------------------------------------------------


def test_what_is_reserved_names_role_principal_and_labels():
    labels = {"b": "2", "a": "1"}
    operation = reserve(TWO, "ads", principal="alice", labels=labels, operation_id="op")
    expected = amount(by("ads", "alice", labels), cpus=2)
    assert operation == reserving.reserve(expected, "op")
    assert reserved_for(TWO, "ads", principal="alice", labels=labels) == expected
    assert unreserve(expected) == reserving.unreserve(expected)


def test_what_is_reserved_already_is_refined():
    static = amount((Reservation("ads"),), cpus=2)
    stack = (Reservation("ads"), Reservation("ads/x", "dynamic"))
    assert reserved_for(static, "ads/x") == amount(stack, cpus=2)


def test_what_was_reserved_is_found_again_by_role_and_labels():
    labelled = reserved_for(TWO, "ads", principal="alice", labels={"for": "db", "a": "1"})
    other = reserved_for(Resources.of(cpus=1, ports=[(1, 9)]), "ads", labels={"for": "web"})
    refined = reserved_for(other, "ads/x", labels={"for": "db"})
    static = amount((Reservation("ads"),), cpus=3)
    offered = labelled + other + refined + static + TWO + reserving.volume(by("ads"), 64)
    assert reserved_in(offered, "ads") == labelled + other
    assert reserved_in(offered, "ads", labels={"for": "db"}) == labelled
    assert reserved_in(offered, "ads/x", labels={"for": "db"}) == refined
    assert not reserved_in(offered, "ads", labels={"for": "mail"})
    assert unreserve(reserved_in(offered, "ads")).type == Offer.Operation.UNRESERVE


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: reserve(TWO, "a//b"), InvalidValue),
        (lambda: reserve(TWO, "*"), InvalidResources),
        (lambda: reserve(TWO, "ads", operation_id=""), InvalidValue),
        (lambda: reserve(EMPTY, "ads"), InvalidResources),
        (lambda: reserve(amount((Reservation("ads"),), cpus=2), "web"), InvalidResources),
        (lambda: unreserve(TWO), InvalidResources),
        (lambda: unreserve(amount((Reservation("ads"),), cpus=2)), InvalidResources),
    ],
)
def test_what_no_master_would_take_is_refused_here(make, error):
    with pytest.raises(error):
        make()


# ---- Sent ------------------------------------------------------------------------


def test_an_operation_alone_is_accepted_and_not_declined():
    sess = subscribed_session(make_offer("o1"))
    sess.accept(["o1"], [reserve(TWO, "ads")], None)
    (call,) = taken(sess)
    assert call.accept.operations[0] == reserve(TWO, "ads")


def test_on_an_offer_that_is_gone_each_gets_its_answer():
    sess = subscribed_session(make_offer("o1"))
    sess.receive([rescind("o1")])
    sess.take_items()
    operations = [
        reserve(TWO, "ads", operation_id="op"),
        reserve(TWO, "ads"),
        reserving.launch(make_task("t1")),
    ]
    sess.accept(["o1"], operations, None)
    items = sess.take_items()
    assert [Event.Type.Name(item.type) for item in items] == [
        "UPDATE",
        "REFUSED",
        "UPDATE_OPERATION_STATUS",
    ]
    answer = items[-1].update_operation_status.status
    assert (answer.operation_id.value, answer.state) == ("op", OPERATION_ERROR)
    assert not answer.HasField("uuid")
    assert statuses(sess) == []


def test_questions_wait_for_a_link():
    sess = subscribed_session()
    sess.lost("cut")
    sess.say(Call.RECONCILE_OPERATIONS, reconcile_operations=Call.ReconcileOperations())
    sess.opening()
    sess.receive([Event(type=Event.SUBSCRIBED)])
    assert kinds(taken(sess)) == ["RECONCILE_OPERATIONS"]


@pytest.mark.parametrize(
    ("asked", "agent_id"),
    [("op", ""), (OperationID(value="op"), ""), (("op", "a1"), "a1"), (status(), "a1")],
)
def test_operations_are_named_in_any_form(asked, agent_id):
    (entry,) = checks.operation_entries([asked])
    assert (entry.operation_id.value, entry.agent_id.value) == ("op", agent_id)


# ---- Answered ------------------------------------------------------------------------


@pytest.fixture
def master():
    with FakeMaster() as fake:
        yield fake


@pytest.fixture
def started(master):
    with drivers_on(master) as start:
        yield start


def test_an_outcome_is_acknowledged_when_the_scheduler_has_dealt_with_it(master, started):
    scheduler = Recorder()
    started(scheduler)
    master.send(told(status()))
    assert scheduler.next("operation_update") == (status(),)
    (call,) = master.wait_for(Call.ACKNOWLEDGE_OPERATION_STATUS)
    done = call.acknowledge_operation_status
    assert (done.operation_id.value, done.agent_id.value, done.uuid) == ("op", "a1", b"u" * 16)


def test_a_scheduler_may_acknowledge_by_itself(master, started):
    scheduler = Recorder()
    driver = started(scheduler, implicit_acknowledgements=False)
    error = OperationStatus(operation_id=OperationID(value="no"), state=OPERATION_ERROR)
    master.send(told(error), told(status()))
    scheduler.next("operation_update")
    scheduler.next("operation_update")
    assert not [c for c in master.calls if c.type == Call.ACKNOWLEDGE_OPERATION_STATUS]
    driver.acknowledge_operation(error)
    driver.acknowledge_operation(status())
    (call,) = master.wait_for(Call.ACKNOWLEDGE_OPERATION_STATUS)
    assert call.acknowledge_operation_status.operation_id.value == "op"


def test_it_is_told_who_acknowledges(master, started):
    driver = started(Recorder())
    with pytest.raises(Conflict, match="implicit_acknowledgements=False"):
        driver.acknowledge_operation(status())
    driver.reconcile_operations([("op", "a1")])
    (call,) = master.wait_for(Call.RECONCILE_OPERATIONS)
    assert call.reconcile_operations.operations[0].operation_id.value == "op"
