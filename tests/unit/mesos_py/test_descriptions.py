"""Which executors are the same."""

from typing import Any

import pytest

from mesos_py.descriptions import same_executor
from mesos_py.errors import InvalidResources
from mesos_py.v1 import types_pb2 as pb

Info = pb.Resource.ReservationInfo


def cpus(amount: float = 1, **more: Any) -> pb.Resource:
    scalar = pb.Value.Scalar(value=amount)
    return pb.Resource(name="cpus", type=pb.Value.SCALAR, scalar=scalar, **more)


def mem(amount: float = 64) -> pb.Resource:
    scalar = pb.Value.Scalar(value=amount)
    return pb.Resource(name="mem", type=pb.Value.SCALAR, scalar=scalar)


def executor(*resources: pb.Resource, command: str = "./run") -> pb.ExecutorInfo:
    return pb.ExecutorInfo(
        executor_id=pb.ExecutorID(value="e"),
        command=pb.CommandInfo(value=command),
        resources=resources,
    )


def had(role: str) -> pb.Resource.AllocationInfo:
    return pb.Resource.AllocationInfo(role=role)


STATIC = Info(type=Info.STATIC, role="ads")
DYNAMIC = Info(type=Info.DYNAMIC, role="ads", principal="p")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # The forms of before and of RESERVATION_REFINEMENT.
        ([cpus(role="ads")], [cpus(reservations=[STATIC])]),
        ([cpus(role="ads", reservation=Info(principal="p"))], [cpus(reservations=[DYNAMIC])]),
        ([cpus(role="*")], [cpus()]),
        # With and without MULTI_ROLE.
        ([cpus()], [cpus(allocation_info=had("ads"))]),
        ([cpus(), mem()], [mem(), cpus()]),
        ([cpus(0.5), cpus(0.5)], [cpus()]),
    ],
)
def test_the_form_in_which_resources_are_said_makes_no_difference(left, right):
    assert same_executor(executor(*left), executor(*right))
    assert same_executor(executor(*right), executor(*left))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([cpus()], [cpus(2)]),
        ([cpus()], [cpus(), mem()]),
        ([cpus()], [cpus(reservations=[STATIC])]),
        ([cpus(reservations=[DYNAMIC])], [cpus(reservations=[STATIC])]),
        ([cpus(allocation_info=had("a"))], [cpus(allocation_info=had("b"))]),
    ],
)
def test_other_resources_are_another_executor(left, right):
    assert not same_executor(executor(*left), executor(*right))
    assert not same_executor(executor(*right), executor(*left))


def test_what_else_is_said_counts_as_it_is():
    assert same_executor(executor(cpus()), executor(cpus()))
    assert not same_executor(executor(cpus()), executor(cpus(), command="./other"))


def test_resources_that_cannot_be_are_named():
    with pytest.raises(InvalidResources, match=r"executor\.resources\.cpus"):
        same_executor(executor(cpus()), executor(cpus(-1)))
