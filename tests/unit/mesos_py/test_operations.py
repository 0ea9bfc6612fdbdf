"""Operations as operators see them."""

import pytest

from mesos_py.operations import with_statuses
from mesos_py.v1 import types_pb2 as pb


def operation(state):
    status = pb.OperationStatus(state=state, operation_id=pb.OperationID(value="op"))
    return pb.Operation(uuid=pb.UUID(value=b"1"), latest_status=status)


@pytest.mark.parametrize("known", [0, 1], ids=["new", "told before"])
def test_what_has_become_of_it_is_its_only_status(known):
    given = operation(pb.OPERATION_FINISHED)
    given.statuses.extend([given.latest_status] * known)
    (listed,) = with_statuses([given])
    assert list(listed.statuses) == [given.latest_status]
    assert len(given.statuses) == known
    listed.ClearField("statuses")
    given.ClearField("statuses")
    assert listed == given


def test_one_that_is_under_way_has_none():
    (listed,) = with_statuses([operation(pb.OPERATION_PENDING)])
    assert not listed.statuses
