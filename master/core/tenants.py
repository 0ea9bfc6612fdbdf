"""The ledger with the tasks behind it: all that an allocator may see of the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from master.allocator.base import Tenant
from master.core.ledger import Ledger
from master.core.records import Framework
from mesos_py.states import is_terminal


class TenantLedger(Ledger):
    """Also the allocator's ClusterView.  `frameworks` stays the cluster's own.

    Of what is reserved nothing can be taken back for others.
    """

    def __init__(self, frameworks: Mapping[str, Framework]) -> None:
        super().__init__()
        self._frameworks = frameworks

    def tenants(self, agent_id: str) -> list[Tenant]:
        """Tasks there that run and are not being killed already."""
        found = []
        for holder, resources in self.allocations(agent_id).items():
            framework = self._frameworks.get(holder.framework_id)
            task = framework.tasks.get(holder.name) if framework is not None else None
            if holder.kind != "task" or task is None or task.agent_id != agent_id:
                continue
            if task.kill_pending or is_terminal(task.state):
                continue
            found.append(
                Tenant(
                    holder.framework_id,
                    holder.role,
                    holder.name,
                    resources.unreserved,
                    task.launched_s,
                    task.revocation_cost,
                    holder.short,
                )
            )
        return found

    def on_offer(self, agent_id: str) -> list[Tenant]:
        return [
            Tenant(
                one.framework_id,
                one.role,
                "",
                one.resources.unreserved,
                one.since_s,
                short=one.short,
            )
            for one in self.offers(agent_id)
        ]
