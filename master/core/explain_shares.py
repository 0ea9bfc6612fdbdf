"""Where a role or a framework stands, in sentences.  Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from master.allocator.base import Standing
from master.core.cluster import Cluster
from master.core.records import Framework
from mesos_py.clock import Now
from mesos_py.errors import NotFound
from mesos_py.policy import ancestors
from mesos_py.resources import Resources

MAX_FRAMEWORKS = 10


def of_framework(c: Cluster, framework: Framework) -> list[Standing]:
    """Its own standing in each of its roles, each after those of the role and of the
    roles above that, the highest first."""
    found = c.allocator.standings(c.ledger)
    listed: list[Standing] = []
    for role in framework.roles:
        listed += [each for each in _path(found, role) if each not in listed]
        listed += [
            each
            for each in found
            if each.role == role and each.framework_id == framework.framework_id
        ]
    return listed


def of_role(c: Cluster, role: str) -> list[Standing]:
    """The role's, after those above it; then those of the roles and frameworks in it."""
    found = c.allocator.standings(c.ledger)
    below = [
        each
        for each in found
        if (not each.framework_id and each.role.rpartition("/")[0] == role)
        or (each.framework_id and each.role == role)
    ]
    below.sort(key=lambda each: (bool(each.framework_id), each.position or len(found), each.role))
    return [*_path(found, role), *below]


def _path(found: Sequence[Standing], role: str) -> list[Standing]:
    roles = {each.role: each for each in found if not each.framework_id}
    return [roles[name] for name in reversed(ancestors(role)) if name in roles]


def framework_sentences(c: Cluster, framework: Framework) -> list[str]:
    return [_sentence(each, own=bool(each.framework_id)) for each in of_framework(c, framework)]


def role_findings(c: Cluster, role: str, now: Now) -> list[str]:
    """All about a role: where it stands, what is said of it, who is in it and waits.

    Raises NotFound for a role that nobody has and of which nothing is said.
    """
    members = [each for each in c.frameworks.values() if role in each.roles]
    below = sorted(
        {
            name
            for each in c.frameworks.values()
            for name in each.roles
            if name.startswith(role + "/")
        }
    )
    if not members and not below and role not in c.policies:
        raise NotFound("role", role, "no framework has it and nothing is said of it")
    found = [_sentence(each, own=False) for each in _path(c.allocator.standings(c.ledger), role)]
    found += _policy_findings(c, role)
    if below:
        found.append(f"roles below it: {', '.join(below)}")
    if not members:
        found.append("no framework is in the role itself")
    for framework in members[:MAX_FRAMEWORKS]:
        found.append(_member(c, framework, role, now))
    if len(members) > MAX_FRAMEWORKS:
        found.append(f"{len(members) - MAX_FRAMEWORKS} more frameworks are in it")
    return found


def _policy_findings(c: Cluster, role: str) -> list[str]:
    found = []
    held = c.ledger.held_under(role)
    policy = c.policy(role)
    missing = _rest(policy.guarantee, held)
    if policy.guarantee:
        text = f"it is guaranteed {_text(policy.guarantee)}"
        found.append(
            f"{text}, and lacks {_text(missing)} of that" if missing else f"{text}, has it"
        )
    for name in ancestors(role):
        limit = c.policy(name).limit
        reached = [
            what for what, most in limit.items() if c.ledger.held_under(name).get(what, 0) >= most
        ]
        whose = "its limit" if name == role else f"the limit of role {name!r}"
        if reached:
            found.append(f"{whose} is reached: {_text({what: limit[what] for what in reached})}")
        elif limit:
            found.append(f"{whose} is {_text(limit)}")
    if policy.need_limit:
        found.append(f"a framework of it may state needs of {_text(policy.need_limit)} at most")
    if policy.agents:
        known = {agent.info.hostname for agent in c.agents.values()} | set(c.agents)
        found.append(f"agents kept for it: {', '.join(sorted(policy.agents))}")
        absent = sorted(policy.agents - known)
        if absent:
            found.append(f"of these are not registered: {', '.join(absent)}")
    return found


def _member(c: Cluster, framework: Framework, role: str, now: Now) -> str:
    name = f"framework {framework.info.name!r} ({framework.framework_id})"
    if not framework.connected:
        return f"{name} is not connected"
    if role in framework.suppressed:
        return f"{name} wants no offers in this role"
    skips = c.allocator.explain(framework.framework_id, c.ledger, now.monotonic_s)
    if not skips:
        return f"{name} has its turn: an offer to it is out or due"
    more = len(skips) - 1
    rest = f" (and {more} more reason{'s' if more > 1 else ''})" if more else ""
    return f"{name}: {skips[0].message} ({skips[0].code}){rest}"


def _sentence(each: Standing, own: bool) -> str:
    what = f"in role {each.role!r} it" if own else f"role {each.role!r}"
    parts = [f"{what} holds a share of {each.share:.3f}"]
    if each.weight != 1:
        parts.append(f"{each.weighted_share:.3f} by its weight of {each.weight:g}")
    beside = "frameworks" if own else "roles"
    if each.position:
        parts.append(f"place {each.position} of {each.contenders} {beside} in the order")
    else:
        parts.append("not in the order, since it wants nothing")
    if each.priority:
        parts.append(f"priority {each.priority}")
    if each.guarantee:
        parts.append(f"guaranteed {_text(each.guarantee)}")
    if each.lacking:
        parts.append(f"lacks {_text(each.lacking)} of what it needs")
    return ", ".join(parts)


def _rest(wanted: Mapping[str, int], held: Mapping[str, int]) -> dict[str, int]:
    return {
        name: milli - held.get(name, 0)
        for name, milli in wanted.items()
        if milli > held.get(name, 0)
    }


def _text(amounts: Mapping[str, int]) -> str:
    return str(Resources({name: milli for name, milli in amounts.items() if milli})) or "nothing"
