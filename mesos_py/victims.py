"""Who has to go first when something is taken back: victim policies.

A policy is a pure function that says what the end of one task would cost now.  Of the
tasks that may be ended at all, an allocator of ours takes the cheapest, one after the
other, until what is needed fits; between agents it compares the sums.  Who may be a
victim is no question for a policy: nobody is taken below what he is guaranteed.

Others are found by the entry-point group `mesos_py.victims`: the name is what an
operator gives for `--revocation`, the function is called as ours are.
`mesos_py.testing.victims_contract` is the suite that each must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesos_py.allocation import Tenant

# What no policy is asked for: nothing is ever taken back.
OFF: Final = "off"


@dataclass(frozen=True, slots=True)
class Victim:
    """A task that may be ended.

    `ran_s`: seconds since it was launched; inf: its agent did not say.  `share`:
    the largest part of any one resource of the cluster that it holds.  `over`: how far
    its framework is above what it is guaranteed, as such a part, before this task goes.
    """

    tenant: Tenant
    ran_s: float
    share: float
    over: float


# A number from 0 to inf.  It may only grow while `over` falls.  Called for each candidate
# of a plan, so it has to be quick; one that raises spares the task.
VictimPolicy: TypeAlias = Callable[[Victim], float]


def youngest(victim: Victim) -> float:
    """The seconds for which it has run: the least work is lost."""
    return victim.ran_s


def most_over(victim: Victim) -> float:
    """One after the other from whoever is then the furthest above its guarantee."""
    return max(1.0 - victim.over, 0.0)


def cost(victim: Victim) -> float:
    """What its framework says (TaskInfo.revocation_cost); else the seconds for which it
    has run."""
    said = victim.tenant.cost
    return victim.ran_s if said is None else said


POLICIES: Final[Mapping[str, VictimPolicy]] = {
    "youngest": youngest,
    "most-over": most_over,
    "cost": cost,
}
