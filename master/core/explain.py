"""Why a framework, or a waiting task, gets what it gets: in sentences.

The allocator says why it would pass the framework over, agent by agent; the
framework's stated needs (REQUEST) say what it waits for.  Nothing is changed.
"""

from __future__ import annotations

from master.allocator.base import Skip
from master.core import explain_shares, needs, recovery, revoking
from master.core.cluster import Cluster
from master.core.records import Agent, Framework, Task
from master.core.registry import AGENT
from mesos_py.clock import Now
from mesos_py.enums import name_of
from mesos_py.resources import Resources, milli_text
from mesos_py.states import is_terminal, short_name
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb

MAX_REASONS = 20
MAX_HOSTS = 5


def findings(c: Cluster, framework: Framework, now: Now) -> list[str]:
    """The answer, the most important sentence first."""
    found = recovery.findings(c)
    if not framework.connected:
        found.append("the framework is not connected, so it is offered nothing")
    found.extend(_standing_by(c, framework))
    found.extend(revoking.findings(c, framework, now))
    found.extend(needs.findings(c, framework))
    for need in framework.requests:
        found.extend(_unmet(c, framework, need))
    running = sum(not is_terminal(task.state) for task in framework.tasks.values())
    if running and not framework.requests:
        tasks = "1 task of it runs" if running == 1 else f"{running} tasks of it run"
        found.append(f"{tasks}; it has not said that anything waits")
    if framework.connected:
        found.extend(_holding(c, framework))
        skips = c.allocator.explain(framework.framework_id, c.ledger, now.monotonic_s)
        found.extend(_passed_over(skips))
        found.extend(_unreachable(c))
        if not skips and not framework.offers and not c.recovery.held:
            found.append("an offer to it is due with the next allocation")
    found.extend(explain_shares.framework_sentences(c, framework))
    found.append(_last_offer(framework, now))
    return found


def _standing_by(c: Cluster, framework: Framework) -> list[str]:
    """How many wait to take over, and why none of them has yet."""
    count = len(c.standbys.get(framework.framework_id, ()))
    if not count:
        return []
    who = "1 standby waits" if count == 1 else f"{count} standbys wait"
    if framework.connected:
        return [f"{who} behind its active instance"]
    return [f"{who}, for {c.options.standby_hold_s:g} s, for the instance that was active"]


def _unmet(c: Cluster, framework: Framework, need: pb.Request) -> list[str]:
    """Why one stated need is not met; [] if nothing stands against it."""
    wanted = Resources.from_proto("requests.resources", need.resources)
    what = f"{need.name!r} needs" if need.name else "it needs"
    agents = [agent for agent in c.agents.values() if agent.connected]
    if not agents:
        return [f"{what} {wanted}, and no agent is connected"]
    allowed = [agent for agent in agents if _allows(framework, agent)]
    if not allowed:
        rule = " / ".join(str(rule) for rule in framework.constraints.values())
        count = len(agents)
        return [f"{what} an agent with {rule}, and none of the {_agents(count)} is one"]
    totals = [agent.total.unreserved for agent in allowed]
    if not any(total.contains(wanted) for total in totals):
        return [f"{what} {_too_large(wanted, totals)}"]
    free = [c.ledger.free(agent.agent_id) for agent in allowed]
    offered = [c.offers[offer_id].resources for offer_id in framework.offers]
    if not any(amount.contains(wanted) for amount in [*free, *offered]):
        return [f"{what} {_not_free(wanted, free)}"]
    return []


def _allows(framework: Framework, agent: Agent) -> bool:
    """Whether some role's constraint lets the agent pass."""
    rules = framework.constraints
    return any(role not in rules or rules[role].allows(agent.host) for role in framework.roles)


def _agents(count: int) -> str:
    return "1 agent" if count == 1 else f"{count} agents"


def _too_large(wanted: Resources, totals: list[Resources]) -> str:
    """`100 cpus, largest agent has 2`: what no agent has at all."""
    parts: list[str] = []
    for name, milli in wanted.scalars.items():
        largest = max(amount.scalars.get(name, 0) for amount in totals)
        if largest < milli:
            parts.append(f"{milli_text(milli)} {name}, largest agent has {milli_text(largest)}")
    for name in [*wanted.ranges, *wanted.sets]:
        part = Resources(
            ranges={name: wanted.ranges[name]} if name in wanted.ranges else {},
            sets={name: wanted.sets[name]} if name in wanted.sets else {},
        )
        if not any(amount.contains(part) for amount in totals):
            parts.append(f"{part}, no agent has it")
    if parts:
        return "; ".join(parts)
    return f"{wanted}: each part is there, but on no one agent together"


def _not_free(wanted: Resources, free: list[Resources]) -> str:
    """`4 cpus, at most 1.5 are free on one agent`."""
    parts: list[str] = []
    for name, milli in wanted.scalars.items():
        most = max(amount.scalars.get(name, 0) for amount in free)
        if most < milli:
            parts.append(
                f"{milli_text(milli)} {name}, at most {milli_text(most)} are free on one agent"
            )
    return "; ".join(parts) or f"{wanted}: not free together on one agent now"


def _holding(c: Cluster, framework: Framework) -> list[str]:
    if not framework.offers:
        return []
    hosts = sorted({c.agents[c.offers[o].agent_id].info.hostname for o in framework.offers})
    shown = ", ".join(hosts[:5]) + (" and others" if len(hosts) > 5 else "")
    count = len(framework.offers)
    offers = "1 offer" if count == 1 else f"{count} offers"
    return [f"it holds {offers} that it has not answered ({shown})"]


def _passed_over(skips: list[Skip]) -> list[str]:
    """The allocator's reasons; it names hosts itself, and sums up what many share."""
    found = [f"{skip.message} ({skip.code})" for skip in skips[:MAX_REASONS]]
    if len(skips) > MAX_REASONS:
        found.append(f"{len(skips) - MAX_REASONS} more reasons of these kinds")
    return found


def _unreachable(c: Cluster) -> list[str]:
    """Agents that are taken for lost: the allocator knows nothing of them any more."""
    if not c.unreachable:
        return []
    named = [
        record.info.hostname or agent_id
        for agent_id in list(c.unreachable)[:MAX_HOSTS]
        if (record := c.registry.read(AGENT + agent_id, reg.Agent())) is not None
    ]
    more = ", ..." if len(c.unreachable) > MAX_HOSTS else ""
    agents = _agents(len(c.unreachable))
    return [f"{agents} ({', '.join(named)}{more}) cannot be reached (unreachable)"]


def _last_offer(framework: Framework, now: Now) -> str:
    if framework.last_offer_wall_s is None:
        return "it has never been sent an offer by this master"
    ago = max(0.0, now.wall_s - framework.last_offer_wall_s)
    return f"its last offer was sent {ago:.1f} s ago; {framework.offers_sent} in all"


def task_findings(c: Cluster, framework: Framework, task: Task) -> list[str]:
    """What has become of a task that was launched."""
    agent = c.agents.get(task.agent_id)
    where = agent.info.hostname if agent is not None else task.agent_id
    found = [f"task {task.task_id!r} is {short_name(task.state)} on {where}"]
    if task.statuses:
        latest = task.statuses[-1]
        if latest.HasField("healthy"):
            word = "healthy" if latest.healthy else "not healthy"
            found.append(f"by its health check it is {word}")
        reason = name_of(pb.TaskStatus.Reason, latest.reason) if latest.HasField("reason") else ""
        detail = ": ".join(part for part in (reason, latest.message) if part)
        if detail:
            found.append(detail)
    if agent is not None and not agent.connected:
        found.append(f"its agent {where} is not connected")
        if task.kill_pending:
            found.append("it will be killed when its agent is back")
    if task.task_id in framework.tasks and not framework.connected:
        found.append("its framework is not connected, so its updates wait")
    return found
