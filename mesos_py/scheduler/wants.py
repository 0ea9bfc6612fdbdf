"""What a framework has said of itself and of what it wants.  Pure.

All of it is state, not message: a new subscription states it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.rpc import PROTOCOL_VERSION
from mesos_py.scheduler import checks
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1.types_pb2 import FrameworkInfo, OfferFilters, Request


class Wants:
    """A framework's description, its suppressed roles, its filters, its stated needs."""

    def __init__(self, info: FrameworkInfo) -> None:
        self._info = info
        self.suppressed: set[str] = set()
        # What is needed, and what only waits.
        self.needs: list[Request] = []
        self.waiting: list[Request] = []
        # Whether any were ever stated: a master may hold them yet.
        self.stated = False
        self._min_free: OfferFilters | None = None
        self._constraints: pb.OfferConstraints.RoleConstraints | None = None

    @property
    def requests(self) -> list[Request]:
        """All that REQUEST states."""
        return [*self.needs, *self.waiting]

    @property
    def roles(self) -> tuple[str, ...]:
        return checks.roles_of(self._info)

    @property
    def framework_id(self) -> str:
        return self._info.id.value

    @framework_id.setter
    def framework_id(self, value: str) -> None:
        self._info.id.value = value

    @property
    def partition_aware(self) -> bool:
        return checks.is_partition_aware(self._info)

    def info(self) -> FrameworkInfo:
        """The description as the master gets it, filters included."""
        info = FrameworkInfo()
        info.CopyFrom(self._info)
        if self._min_free is not None:
            for role in self.roles:
                info.offer_filters[role].CopyFrom(self._min_free)
        return info

    def replace_info(self, info: FrameworkInfo) -> None:
        """Take over a completed description; raises InvalidValue for what cannot change."""
        if info.id.value not in ("", self.framework_id):
            raise InvalidValue("framework.id", info.id.value, f"is {self.framework_id} here")
        for field in ("user", "principal", "checkpoint"):
            old, new = getattr(self._info, field), getattr(info, field)
            if old != new:
                raise InvalidValue(f"framework.{field}", new, f"cannot change from {old!r}")
        info.id.CopyFrom(self._info.id)
        self._info = info
        self.suppressed.intersection_update(self.roles)

    def checked_roles(self, given: str | Iterable[str] | None) -> list[str]:
        """The roles that a call names (none: all).  Raises InvalidValue for a foreign one."""
        if given is None:
            return list(self.roles)
        named = [given] if isinstance(given, str) else list(given)
        for role in named:
            if role not in self.roles:
                raise InvalidValue("roles", role, "is not a role of the framework")
        return named

    def set_filters(
        self,
        hosts: Sequence[str] | None,
        min_free: Resources | Sequence[Resources] | None,
        constraints: checks.RoleConstraints | None,
    ) -> None:
        """Replace the filters of the whole framework; None clears.  All or nothing."""
        filters = None if min_free is None else checks.min_free_of(min_free)
        wanted = checks.role_constraints_of(hosts, constraints)
        if wanted is not None:
            checks.check_constraints(wanted)
        self._min_free = filters
        self._constraints = wanted

    def _offer_constraints(self) -> pb.OfferConstraints | None:
        if self._constraints is None:
            return None
        return pb.OfferConstraints(role_constraints=dict.fromkeys(self.roles, self._constraints))

    def subscribe(self, client: str) -> pb.Call.Subscribe:
        return pb.Call.Subscribe(
            framework_info=self.info(),
            suppressed_roles=sorted(self.suppressed),
            offer_constraints=self._offer_constraints(),
            protocol_version=PROTOCOL_VERSION,
            client=client,
        )

    def update_framework(self) -> pb.Call.UpdateFramework:
        return pb.Call.UpdateFramework(
            framework_info=self.info(),
            suppressed_roles=sorted(self.suppressed),
            offer_constraints=self._offer_constraints(),
        )
