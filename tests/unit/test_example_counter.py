"""What the example of a service with a state does about each thing that may come."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

import mesos_py
from examples.counter import DISK, LABELS, MAX_FAILURES, NEED, Counter, Notes, main
from mesos_py.conversions import conversion_of
from mesos_py.errors import MesosPyError
from mesos_py.resources import Resources
from mesos_py.testing.builders import make_offer, make_status
from mesos_py.v1 import types_pb2
from mesos_py.v1.types_pb2 import Offer, OperationStatus

ROOMY = Resources.of(cpus=2, mem=256, disk=100)
PLACE = mesos_py.reserved_for(NEED, "r", labels=LABELS)
VOLUME = mesos_py.volume_on(mesos_py.reserved_for(DISK, "r", labels=LABELS), "counter", "data")
KINDS = Offer.Operation


class Recording:
    """A driver that notes what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name):
        return lambda *args, **_: self.calls.append((name, args))

    def made(self, name):
        """The arguments of all calls of that name."""
        return [args for called, args in self.calls if called == name]


@pytest.fixture
def driver() -> Any:
    return Recording()


@pytest.fixture
def notes(tmp_path):
    return Notes.read(tmp_path / "counter.json")


def counter(notes, driver, remove=False):
    made = Counter(notes, "r", remove)
    made.registered(driver, notes.framework_id, mesos_py.MasterInfo())
    return made


def at_home(notes, driver, remove=False):
    """One that has its place on the agent a, where the task does not run."""
    notes.write(agent_id="a", attempt=1, made=True)
    made = counter(notes, driver, remove)
    made.status_update(driver, make_status("counter-1", mesos_py.TASK_FAILED))
    driver.calls.clear()
    return made


def offer(agent, resources=ROOMY):
    return make_offer(f"o-{agent}", agent, resources=resources)


def said(name, state):
    status = OperationStatus(state=state, message="why")
    status.operation_id.value = name
    return status


def accepted(driver):
    """The operations of the only accepted offer, and its agent."""
    ((given, operations),) = driver.made("accept_offers")
    return given.agent_id.value, operations


def test_the_first_offer_with_room_becomes_the_place(notes, driver):
    made = counter(notes, driver)
    small = offer("a", Resources.of(cpus=2, mem=256))
    made.resource_offers(driver, [small, offer("b"), offer("c")])
    agent, operations = accepted(driver)
    assert agent == "b"
    assert [each.type for each in operations] == [KINDS.RESERVE, KINDS.CREATE, KINDS.LAUNCH]
    there = ROOMY
    for each in operations[:2]:
        there = conversion_of(each).apply(there)
    (task,) = operations[2].launch.task_infos
    assert Resources.from_proto("task", task.resources) == PLACE + VOLUME
    assert there.contains(PLACE + VOLUME)
    assert [args[0].agent_id.value for args in driver.made("decline_offers")] == ["a", "c"]
    written = json.loads(notes.file.read_text())
    assert (written["agent_id"], written["attempt"], written["made"]) == ("b", 1, False)


def test_the_next_task_has_the_place_and_no_other(notes, driver):
    made = at_home(notes, driver)
    left = ROOMY + PLACE + VOLUME
    made.resource_offers(driver, [offer("b"), offer("a", left), offer("c")])
    agent, (launch,) = accepted(driver)
    assert agent == "a"
    (task,) = launch.launch.task_infos
    assert task.task_id.value == "counter-2"
    assert Resources.from_proto("task", task.resources) == PLACE + VOLUME


def test_a_place_without_its_volume_is_waited_for(notes, driver):
    made = at_home(notes, driver)
    made.resource_offers(driver, [offer("a"), offer("b", ROOMY + VOLUME)])
    assert not driver.made("accept_offers")
    assert len(driver.made("decline_offers")) == 2


def test_nothing_is_launched_before_the_task_was_heard_of(notes, driver):
    notes.write(agent_id="a", attempt=3, made=True)
    made = counter(notes, driver)
    assert driver.made("reconcile_tasks") == [([("counter-3", "a")],)]
    made.resource_offers(driver, [offer("a", ROOMY + PLACE + VOLUME)])
    made.status_update(driver, make_status("counter-3", mesos_py.TASK_RUNNING))
    made.resource_offers(driver, [offer("a", ROOMY + PLACE + VOLUME)])
    made.status_update(driver, make_status("counter-2", mesos_py.TASK_FAILED))
    made.resource_offers(driver, [offer("a", ROOMY + PLACE + VOLUME)])
    assert not driver.made("accept_offers")
    made.status_update(driver, make_status("counter-3", mesos_py.TASK_UNKNOWN))
    made.resource_offers(driver, [offer("a", ROOMY + PLACE + VOLUME)])
    assert accepted(driver)[0] == "a"


@pytest.mark.parametrize("state", [types_pb2.OPERATION_ERROR, types_pb2.OPERATION_UNKNOWN])
def test_where_nothing_was_made_another_place_is_looked_for(notes, driver, state):
    """Its maker may have been killed between its note and its call."""
    notes.write(agent_id="a", attempt=1)
    made = counter(notes, driver)
    assert driver.made("reconcile_operations") == [([("make-1", "a")],)]
    made.operation_update(driver, said("make-1", state))
    made.resource_offers(driver, [offer("b")])
    assert accepted(driver)[0] == "b"
    assert (notes.agent_id, notes.attempt) == ("b", 2)


def test_what_was_made_once_is_not_given_up(notes, driver):
    notes.write(agent_id="a", attempt=1)
    made = counter(notes, driver)
    made.operation_update(driver, said("make-1", types_pb2.OPERATION_FINISHED))
    assert json.loads(notes.file.read_text())["made"] is True
    made.operation_update(driver, said("make-1", types_pb2.OPERATION_UNKNOWN))
    made.operation_update(driver, said("make-0", types_pb2.OPERATION_ERROR))
    assert notes.agent_id == "a"


def test_an_agent_that_is_gone_for_good_is_no_place(notes, driver):
    made = at_home(notes, driver)
    made.status_update(driver, make_status("counter-1", mesos_py.TASK_GONE_BY_OPERATOR))
    made.resource_offers(driver, [offer("b")])
    assert accepted(driver)[0] == "b"


def test_where_no_volume_can_be_made_it_is_not_tried_for_ever(notes, driver):
    made = counter(notes, driver)
    for attempt in range(1, MAX_FAILURES):
        made.resource_offers(driver, [offer("a")])
        made.operation_update(driver, said(f"make-{attempt}", types_pb2.OPERATION_ERROR))
    made.resource_offers(driver, [offer("a")])
    with pytest.raises(MesosPyError, match=f"make-{MAX_FAILURES}: not done: why"):
        made.operation_update(driver, said(f"make-{MAX_FAILURES}", types_pb2.OPERATION_ERROR))


def test_all_is_given_back_when_it_is_removed(notes, driver):
    notes.write(agent_id="a", attempt=1, made=True)
    made = counter(notes, driver, remove=True)
    made.status_update(driver, make_status("counter-1", mesos_py.TASK_RUNNING))
    assert driver.made("kill_task") == [("counter-1",)]
    made.status_update(driver, make_status("counter-1", mesos_py.TASK_KILLED))
    there = ROOMY + PLACE + VOLUME
    made.resource_offers(driver, [offer("a", there)])
    _, operations = accepted(driver)
    for each in operations:
        there = conversion_of(each).apply(there)
    assert not there.has_reserved
    assert not driver.made("stop")
    made.operation_update(driver, said("remove-0", types_pb2.OPERATION_FINISHED))
    assert driver.made("stop")
    assert not notes.file.exists()


def test_what_is_not_there_is_removed_at_once(notes, driver):
    notes.write()
    counter(notes, driver, remove=True)
    assert driver.made("stop")
    assert not notes.file.exists()


def test_an_offer_that_was_gone_is_no_end_of_removing(notes, driver):
    made = at_home(notes, driver, remove=True)
    made.resource_offers(driver, [offer("a", ROOMY + PLACE + VOLUME)])
    made.operation_update(driver, said("remove-0", types_pb2.OPERATION_ERROR))
    assert not driver.made("stop")
    driver.calls.clear()
    # What was destroyed may not have been unreserved.
    left = PLACE + mesos_py.disk_of_volume(VOLUME)
    made.resource_offers(driver, [offer("b", ROOMY + left), offer("a", ROOMY + left)])
    _, (unreserve,) = accepted(driver)
    assert conversion_of(unreserve).consumed == left
    made.operation_update(driver, said("remove-1", types_pb2.OPERATION_FINISHED))
    assert driver.made("stop")


@pytest.mark.parametrize("content", [None, "[1", '{"other": 1}'])
def test_a_file_that_cannot_be_used_is_said(tmp_path, content):
    file = tmp_path / "below" / "counter.json"
    if content is not None:
        file.parent.mkdir()
        file.write_text(content)
    done = CliRunner().invoke(main, ["--master", "127.0.0.1:1", "--state", str(file)])
    assert done.exit_code == 1
    assert f"--state {file}: " in done.output
