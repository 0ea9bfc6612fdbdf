"""The beginning of a leadership: what the last one has left, and who is to come back.

The registry says which agents there are; what runs on them, and for whom, they say
themselves when they register here.  Until then each is `expected`: nobody is told that
it is lost before it has had its whole time, counted from when this master could listen.
Nothing is offered before most of them are back, since shares are wrong until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from google.protobuf.message import DecodeError

from master.allocator.base import PolicyChanged
from master.core import admitted, agents
from master.core.cluster import Cluster
from master.core.machines import Machines
from master.core.policies import read_role
from master.core.records import Expected, Recovery
from master.core.registry import AGENT, MAINTENANCE, ROLE, WEIGHT
from mesos_py.clock import Now
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.ids import check_id, check_role
from mesos_py.policy import DEFAULT_POLICY, RolePolicy, check_weight
from mesos_py.resources import Resources
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb


def recover(c: Cluster, records: Mapping[str, bytes], now: Now) -> None:
    """Take over what the registry holds: once, before any other input."""
    good: dict[str, bytes] = {}
    found: dict[str, reg.Agent] = {}
    for key, value in records.items():
        try:
            agent = _read(key, value)
        except (DecodeError, MesosPyError) as error:
            # The record stays where it is, until its agent registers again.
            why = error.message if isinstance(error, MesosPyError) else "cannot be decoded"
            c.drop("registry-record-damaged", record=key, why=why)
            continue
        good[key] = value
        if agent is not None:
            found[key.removeprefix(AGENT)] = agent
    c.registry.load(good)
    c.machines = c.planned = Machines(c.registry.read(MAINTENANCE, reg.Maintenance()))
    _take_policies(c)
    _take_agents(c, found, now)
    _hold_back(c, now)


def _read(key: str, value: bytes) -> reg.Agent | None:
    """Raises what is wrong with a record; the agent, if it is of one."""
    if key.startswith(AGENT):
        agent = reg.Agent.FromString(value)
        agent_id = check_id("agent_info.id", key.removeprefix(AGENT))
        if agent.info.id.value != agent_id:
            raise InvalidValue("agent_info.id", agent.info.id.value, f"filed under {agent_id}")
        Resources.from_proto("agent_info.resources", agent.info.resources)
        return agent
    if key.startswith(WEIGHT):
        role = check_role("role", key.removeprefix(WEIGHT))
        check_weight(role, reg.Weight.FromString(value).weight)
    elif key.startswith(ROLE):
        role = check_role("role", key.removeprefix(ROLE))
        read_role(role, reg.Role.FromString(value))
    elif key == MAINTENANCE:
        Machines(reg.Maintenance.FromString(value))
    return None


def _take_policies(c: Cluster) -> None:
    """What operators have said of roles comes before what the flags say."""
    found: dict[str, RolePolicy] = {}
    for key in c.registry.keys(ROLE):
        role = key.removeprefix(ROLE)
        record = c.registry.read(key, reg.Role()) or reg.Role()
        weight = c.unspoken_policy(role).weight
        found[role] = replace(read_role(role, record), weight=weight)
    for key in c.registry.keys(WEIGHT):
        role = key.removeprefix(WEIGHT)
        weight = (c.registry.read(key, reg.Weight()) or reg.Weight()).weight
        found[role] = replace(found.get(role, DEFAULT_POLICY), weight=weight)
    for role, policy in found.items():
        c.policies[role] = c.decided_policies[role] = policy
        c.allocator.tell(PolicyChanged(role, policy))


def _take_agents(c: Cluster, found: Mapping[str, reg.Agent], now: Now) -> None:
    gone: list[tuple[float, str]] = []
    away: list[tuple[float, str]] = []
    for agent_id, record in found.items():
        if record.HasField("gone_time"):
            gone.append((record.gone_time.nanoseconds / 1e9, agent_id))
        elif record.HasField("unreachable_time"):
            away.append((record.unreachable_time.nanoseconds / 1e9, agent_id))
        else:
            expect(c, agent_id, record.info, now)
    for wall_s, agent_id in sorted(gone):
        admitted.remember_gone(c, agent_id, wall_s, now)
    for wall_s, agent_id in sorted(away):
        since = Now(now.monotonic_s, wall_s)
        agents.put_away(c, Expected(agent_id, found[agent_id].info), since)
    agents.prune(c, now)
    c.recovery = Recovery(total=len(c.expected), missing=set(c.expected))


# ---- Expected agents -----------------------------------------------------------------


def expect(c: Cluster, agent_id: str, info: pb.AgentInfo, now: Now) -> None:
    """An agent that is admitted is not here: it has its time to come."""
    c.expected[agent_id] = Expected(agent_id, info)
    c.places.put(agent_id, info)
    c.judge("expected", agent_id, now.monotonic_s + c.options.agent_timeout_s, now)


def expect_no_more(c: Cluster, agent_id: str) -> None:
    """It cannot come back."""
    del c.expected[agent_id]
    c.places.forget(agent_id)
    c.timers.cancel("expected", agent_id)
    c.removals.discard(agent_id)
    c.recovery.missing.discard(agent_id)


def missed(c: Cluster, agent_id: str, now: Now) -> None:
    """An expected agent has had its time.

    Should more be missing than can be believed, the fault is likely to be another one (a
    network that is cut, a registry of another cluster): then all have their time anew.
    """
    recovery, options = c.recovery, c.options
    missing = len(recovery.missing)
    most = options.recovery_removal_percent * recovery.total
    if agent_id in recovery.missing and missing * 100 > most:
        if not recovery.postponed:
            c.drop("too-many-agents-missing", missing=missing, expected=recovery.total)
        recovery.postponed = True
        c.judge("expected", agent_id, now.monotonic_s + options.agent_timeout_s, now)
        return
    recovery.postponed = False
    why = f"not back {options.agent_timeout_s:g} s after a change of leader"
    agents.lose(c, agent_id, why, now)


def came_back(c: Cluster, agent_id: str, now: Now) -> None:
    """An agent has registered."""
    c.recovery.missing.discard(agent_id)
    if c.recovery.held and _enough(c):
        release(c, now)


# ---- Hold-off -------------------------------------------------------------------------


def _hold_back(c: Cluster, now: Now) -> None:
    c.recovery.held = not _enough(c)
    if c.recovery.held:
        until_s = now.monotonic_s + c.options.allocation_recovery_timeout_s
        c.timers.set("holdoff", "", until_s)


def _enough(c: Cluster) -> bool:
    recovery = c.recovery
    back = recovery.total - len(recovery.missing)
    return back >= recovery.total * c.options.allocation_recovery_factor


def release(c: Cluster, now: Now) -> None:
    """Offers may be made from now on."""
    c.recovery.held = False
    c.timers.cancel("holdoff", "")
    c.want_allocation(now)


def findings(c: Cluster) -> list[str]:
    """What a change of leader means at this moment, in sentences."""
    recovery = c.recovery
    found: list[str] = []
    back = recovery.total - len(recovery.missing)
    if recovery.held:
        found.append(f"offers are held back until agents are back: {back} of {recovery.total}")
    if recovery.postponed:
        found.append(
            f"{len(recovery.missing)} of {recovery.total} agents are not back since the change "
            "of leader: more than may be taken for lost, so nobody is"
        )
    return found
