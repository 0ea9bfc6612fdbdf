"""Whether two messages describe the same executor."""

from __future__ import annotations

from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb


def same_executor(known: pb.ExecutorInfo, given: pb.ExecutorInfo) -> bool:
    """Whether `given` is what `known` is, of which it is sure that its resources can be read.

    Resources count by their amounts: a framework that has taken up RESERVATION_REFINEMENT
    says in another form how they are reserved, and MULTI_ROLE for which role it has them.
    Raises InvalidResources for resources that cannot be.
    """
    if known == given:
        return True
    if _without_resources(known) != _without_resources(given):
        return False
    roles = [_roles(each) for each in (known, given)]
    if all(roles) and roles[0] != roles[1]:
        return False
    field = "executor.resources"
    return Resources.from_proto(field, known.resources) == Resources.from_proto(
        field, given.resources
    )


def _without_resources(info: pb.ExecutorInfo) -> pb.ExecutorInfo:
    rest = pb.ExecutorInfo()
    rest.CopyFrom(info)
    del rest.resources[:]
    return rest


def _roles(info: pb.ExecutorInfo) -> set[str]:
    """For which roles its resources are said to be had."""
    return {
        each.allocation_info.role for each in info.resources if each.HasField("allocation_info")
    }


__all__ = ["same_executor"]
