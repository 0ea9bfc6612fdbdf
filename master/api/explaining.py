"""EXPLAIN: what the core says of a framework or a role, as messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from master.allocator.base import Standing
from master.core import explain, explain_shares
from master.core.cluster import Cluster
from master.core.records import Framework
from mesos_py.clock import Now
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb


def framework_answer(c: Cluster, framework: Framework, now: Now) -> op.Response.Explain.Framework:
    live = framework.framework_id in c.frameworks
    entry = op.Response.Explain.Framework(
        framework_id=pb.FrameworkID(value=framework.framework_id),
        name=framework.info.name,
        findings=explain.findings(c, framework, now) if live else ["the framework has ended"],
        offers_sent=framework.offers_sent,
        requests=framework.requests,
        standings=_messages(explain_shares.of_framework(c, framework)) if live else (),
    )
    if framework.last_offer_wall_s is not None:
        entry.last_offer_time = framework.last_offer_wall_s
    for tally in framework.refusals.values():
        entry.refusals.add(
            code=tally.code,
            message=tally.message,
            count=tally.count,
            last_time=tally.last_wall_s,
            agent_id=tally.agent_id,
        )
    if live:
        _count_passed(entry, c, framework, now)
    return entry


def _count_passed(
    entry: op.Response.Explain.Framework, c: Cluster, framework: Framework, now: Now
) -> None:
    """How often the allocator passed it over, beside what was refused."""
    several = len(framework.roles) > 1
    for passed in c.allocator.passed_over(framework.framework_id):
        role = f"role {passed.role!r}: " if several else ""
        entry.refusals.add(
            code=passed.code,
            message=f"{role}passed over when this agent was given away",
            count=passed.count,
            last_time=now.wall_s - (now.monotonic_s - passed.last_s),
            agent_id=passed.agent_id,
        )


def role_answer(c: Cluster, role: str, now: Now) -> op.Response.Explain.Role:
    """Raises NotFound for a role that nobody has and of which nothing is said."""
    return op.Response.Explain.Role(
        name=role,
        findings=explain_shares.role_findings(c, role, now),
        standings=_messages(explain_shares.of_role(c, role)),
    )


def _messages(standings: Iterable[Standing]) -> list[op.Response.Explain.Standing]:
    return [_message(each) for each in standings]


def _message(each: Standing) -> op.Response.Explain.Standing:
    message = op.Response.Explain.Standing(
        role=each.role,
        share=each.share,
        weighted_share=each.weighted_share,
        weight=each.weight,
        position=each.position,
        contenders=each.contenders,
        priority=each.priority,
        held=_amounts(each.held),
        guarantee=_amounts(each.guarantee),
        limit=_amounts(each.limit),
        lacking=_amounts(each.lacking),
    )
    if each.framework_id:
        message.framework_id.value = each.framework_id
    return message


def _amounts(amounts: Mapping[str, int]) -> tuple[pb.Resource, ...]:
    return Resources({name: milli for name, milli in amounts.items() if milli}).to_proto()
