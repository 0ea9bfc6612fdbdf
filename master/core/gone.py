"""Agents that an operator has marked as gone: their ids are refused for ever."""

from __future__ import annotations

from mesos_py.errors import Refused
from mesos_py.v1 import registry_pb2 as reg


class AgentGone(Refused):
    """The agent was marked as gone: it must end its tasks, and never comes back."""

    code = "agent-gone"


def is_gone(record: reg.Agent | None) -> bool:
    """Whether that is decided; what `Cluster.gone` has is stored as well."""
    return record is not None and record.HasField("gone_time")
