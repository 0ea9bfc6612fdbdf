"""The default allocator: weighted dominant resource fairness."""

from __future__ import annotations

from master.allocator.engine import Engine
from master.allocator.ranking import OnFailure, Order, Ranking
from mesos_py.allocation import ClusterView


class DrfAllocator(Engine):
    """Weighted DRF over the tree of roles, then DRF over the frameworks of a role; see
    `ranking`."""

    def make_ranking(self, view: ClusterView, grants_made: int, on_failure: OnFailure) -> Order:
        return Ranking(self.roster.root, view, self.shares_now(view), grants_made, on_failure)
