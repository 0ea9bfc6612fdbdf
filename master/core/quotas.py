"""Quota as Mesos has it, on top of what is said of roles (policies.py)."""

from __future__ import annotations

from collections.abc import Iterable

from master.core.cluster import Cluster
from master.core.policies import Change
from mesos_py.errors import InsufficientResources, InvalidValue
from mesos_py.policy import is_under, policy_from_proto, policy_to_proto
from mesos_py.reserved import is_reserved, role_of
from mesos_py.resources import Resources
from mesos_py.v1 import quota_pb2 as qt
from mesos_py.v1 import types_pb2 as pb

_FIELDS = ("guarantees", "limits")


def changes(c: Cluster, configs: Iterable[qt.QuotaConfig], *, force: bool) -> list[Change]:
    """What the configurations say of their roles; of a role that comes twice, the last.

    Raises InvalidValue for a role below another one, for which Mesos has no quota (a policy
    can be given to it), and InsufficientResources for a limit below what runs already,
    unless `force`.
    """
    made = []
    for config in {each.role: each for each in configs}.values():
        where = f"quota_configs[{config.role}]"
        if "/" in config.role:
            raise InvalidValue(
                f"{where}.role", config.role, "is nested, and has no quota of its own"
            )
        policy = pb.RolePolicy()
        for name, amount in config.guarantees.items():
            policy.guarantees[name].CopyFrom(amount)
        for name, amount in config.limits.items():
            policy.limits[name].CopyFrom(amount)
        if not force:
            _require_room(c, config.role, where, policy)
        made.append(Change(config.role, policy, _FIELDS, where))
    return made


def first(c: Cluster, asked: qt.QuotaRequest) -> list[Change]:
    """The same in the older form: what is guaranteed is the limit as well, of a role that has
    no quota yet.  Raises InvalidValue, also for what is no number."""
    if _has_quota(c, asked.role):
        raise InvalidValue("quota_request.role", asked.role, "has a quota already")
    config = qt.QuotaConfig(role=asked.role)
    for each in asked.guarantee:
        if each.type != pb.Value.SCALAR or each.name in config.limits:
            reason = "must be a number, and be there only once"
            raise InvalidValue("quota_request.guarantee", each.name, reason)
        config.guarantees[each.name].CopyFrom(each.scalar)
        config.limits[each.name].CopyFrom(each.scalar)
    if not config.limits:
        raise InvalidValue("quota_request.guarantee", "", "must name a resource")
    return changes(c, [config], force=asked.force)


def none(c: Cluster, role: str) -> list[Change]:
    """That the role has no quota any more.  Raises InvalidValue for one that has none."""
    if not _has_quota(c, role):
        raise InvalidValue("role", role, "has no quota")
    return [Change(role, pb.RolePolicy(), _FIELDS, f"remove_quota[{role}]")]


def _has_quota(c: Cluster, role: str) -> bool:
    policy = c.decided_policies.get(role)
    return policy is not None and bool(policy.guarantee or policy.limit)


def status(c: Cluster) -> qt.QuotaStatus:
    """The quota of all roles that have one."""
    found = qt.QuotaStatus()
    for role in sorted(c.policies):
        policy = c.policies[role]
        if not policy.guarantee and not policy.limit:
            continue
        said = policy_to_proto(policy)
        info = found.infos.add(role=role)
        info.guarantee.extend(
            pb.Resource(name=name, type=pb.Value.SCALAR, scalar=amount)
            for name, amount in sorted(said.guarantees.items())
        )
        config = found.configs.add(role=role)
        for name, amount in said.guarantees.items():
            config.guarantees[name].CopyFrom(amount)
        for name, amount in said.limits.items():
            config.limits[name].CopyFrom(amount)
    return found


def consumed(c: Cluster, role: str) -> dict[str, int]:
    """What the role and those below it use, in thousandths: without offers, which can be
    taken back, and with what is reserved for them, used or not."""
    found = dict(c.ledger.held_under(role))
    for agent in c.agents.values():
        if agent.total.has_reserved and agent.unreachable is None:
            _add(found, _reserved_under(agent.total, role), 1)
            for holder, resources in c.ledger.allocations(agent.agent_id).items():
                if is_under(holder.role, role):
                    # That is counted already.
                    _add(found, _reserved_under(resources, role), -1)
    for offer in c.offers.values():
        if is_under(offer.role, role):
            _add(found, offer.resources.plain, -1)
    return found


def _reserved_under(bundle: Resources, role: str) -> Resources:
    own = bundle.only(lambda name: is_reserved(name) and is_under(role_of(name), role))
    return own.plain


def _add(amounts: dict[str, int], bundle: Resources, sign: int) -> None:
    for name, milli in bundle.scalars.items():
        amounts[name] = amounts.get(name, 0) + sign * milli


def _require_room(c: Cluster, role: str, where: str, policy: pb.RolePolicy) -> None:
    limit = policy_from_proto(where, policy).limit
    if not limit:
        return
    used = consumed(c, role)
    for name, most in sorted(limit.items()):
        if used.get(name, 0) > most:
            there = used[name] / 1000
            raise InsufficientResources(
                f"{where}.limits.{name}: {most / 1000:g}: the role uses {there:g} (can be forced)",
                field=f"{where}.limits.{name}",
                value=most / 1000,
                there=there,
            )


__all__ = ["changes", "consumed", "first", "none", "status"]
