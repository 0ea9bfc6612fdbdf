"""The allocator interface, as the master's own code imports it.

It is declared in `mesos_py.allocation`, so that people who write an allocator,
and the contract suite that is shipped to them, need nothing of the master.
"""

from __future__ import annotations

from mesos_py.allocation import (
    SKIP_CODES,
    AgentChanged,
    AgentRemoved,
    AgentRow,
    Allocator,
    AllocatorOptions,
    ClusterView,
    Event,
    Failure,
    FrameworkChanged,
    FrameworkRemoved,
    FrameworkRow,
    Freed,
    Grant,
    Need,
    PassedOver,
    PolicyChanged,
    Refusal,
    Revived,
    Revocation,
    RevocationEnded,
    Skip,
    Standing,
    Tenant,
    fits_any,
)
from mesos_py.policy import RolePolicy

__all__ = [
    "SKIP_CODES",
    "AgentChanged",
    "AgentRemoved",
    "AgentRow",
    "Allocator",
    "AllocatorOptions",
    "ClusterView",
    "Event",
    "Failure",
    "FrameworkChanged",
    "FrameworkRemoved",
    "FrameworkRow",
    "Freed",
    "Grant",
    "Need",
    "PassedOver",
    "PolicyChanged",
    "Refusal",
    "Revived",
    "Revocation",
    "RevocationEnded",
    "RolePolicy",
    "Skip",
    "Standing",
    "Tenant",
    "fits_any",
]
