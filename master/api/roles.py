"""What operators say of roles, and how roles stand."""

from __future__ import annotations

from master.api import convert
from master.api.changes import Changes
from master.api.shell import Shell
from master.core import policies, quotas
from mesos_py import logs
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb

log = logs.get("master.operator")


class RoleCalls:
    """The part of OperatorService that is about roles."""

    def __init__(self, shell: Shell, changes: Changes) -> None:
        self._shell = shell
        self._changes = changes

    def get_roles(self, _: op.Call) -> op.Response:
        c = self._shell.core.cluster
        roles = convert.role_messages(c, c.allocator.shares(c.ledger))
        return op.Response(type=op.Response.GET_ROLES, get_roles=op.Response.GetRoles(roles=roles))

    def get_weights(self, _: op.Call) -> op.Response:
        weights = self._shell.core.cluster.weights
        infos = [pb.WeightInfo(role=role, weight=weights[role]) for role in sorted(weights)]
        answer = op.Response.GetWeights(weight_infos=infos)
        return op.Response(type=op.Response.GET_WEIGHTS, get_weights=answer)

    async def update_weights(self, call: op.Call) -> op.Response:
        weights = {info.role: info.weight for info in call.update_weights.weight_infos}
        return await self._update(policies.weight_changes(weights), force=False)

    async def update_roles(self, call: op.Call) -> op.Response:
        asked = call.update_roles
        changes = [
            policies.Change(change.role, change.policy, tuple(change.fields))
            for change in asked.changes
        ]
        return await self._update(changes, force=asked.force)

    def get_quota(self, _: op.Call) -> op.Response:
        answer = op.Response.GetQuota(status=quotas.status(self._shell.core.cluster))
        return op.Response(type=op.Response.GET_QUOTA, get_quota=answer)

    async def update_quota(self, call: op.Call) -> op.Response:
        asked = call.update_quota
        cluster = self._shell.core.cluster
        changes = quotas.changes(cluster, asked.quota_configs, force=asked.force)
        return await self._update(changes, force=asked.force)

    async def set_quota(self, call: op.Call) -> op.Response:
        asked = call.set_quota.quota_request
        changes = quotas.first(self._shell.core.cluster, asked)
        return await self._update(changes, force=asked.force)

    async def remove_quota(self, call: op.Call) -> op.Response:
        changes = quotas.none(self._shell.core.cluster, call.remove_quota.role)
        return await self._update(changes, force=True)

    async def _update(self, changes: list[policies.Change], *, force: bool) -> op.Response:
        core, now = self._shell.core, self._shell.now()
        answer = await self._changes.done(
            lambda done: core.update_roles(changes, now, done, force=force)
        )
        for change in changes:
            unknown = policies.unknown_agents(core.cluster, core.cluster.policy(change.role))
            names = {"agents_not_known": ",".join(unknown)} if unknown else {}
            log.info("role changed", role=change.role, forced=force, **names)
        return answer
