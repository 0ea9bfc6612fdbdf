"""What operators, and the flags of this master, have said of roles."""

from __future__ import annotations

from mesos_py.policy import DEFAULT_POLICY, RolePolicy


class Said:
    """The part of the cluster's state that policies.py changes.

    `policies` are in effect, `decided_policies` as they were decided last (some may be on
    their way to the registry).  `flag_weights` hold where operators have said nothing.
    """

    def __init__(self) -> None:
        self.policies: dict[str, RolePolicy] = {}
        self.decided_policies: dict[str, RolePolicy] = {}
        self.flag_weights: dict[str, float] = {}

    def policy(self, role: str) -> RolePolicy:
        return self.policies.get(role, DEFAULT_POLICY)

    def unspoken_policy(self, role: str) -> RolePolicy:
        """Of a role of which operators have said nothing."""
        weight = self.flag_weights.get(role)
        return DEFAULT_POLICY if weight is None else RolePolicy(weight=weight)

    @property
    def weights(self) -> dict[str, float]:
        """Of the roles of which anything was said."""
        return {role: policy.weight for role, policy in self.policies.items()}
