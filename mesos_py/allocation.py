"""The allocator interface: who is offered what.

An allocator is pure: it is told what happened, looks at what is free through a
`ClusterView`, and answers with grants.  It reads no clock, starts nothing and
keeps no second account of amounts: the ledger behind the view is the only one.

The master calls it like this:

1. `tell(event)` for each change, at once, in order.  Cheap: it only notes.
2. `allocate(view, now_s)` when the coalescing window of the first change has
   passed.  Every grant is turned into an offer before anything else happens; a
   grant that the ledger refuses (it never should) is dropped, counted and
   logged, and its agent is told as changed again.
3. `next_wake_s()` after each cycle: when to allocate again although nothing
   happened, since a filter expires.
4. `explain(framework_id, view, now_s)` when somebody asks why a framework gets
   nothing.  May be slow; must not change anything.

`mesos_py.testing.allocator_contract` is the test suite that every allocator,
built in or not, must pass.  Others are found by the entry-point group
`mesos_py.allocators`: a factory called with `AllocatorOptions`.  All that such an
allocator needs is in this module, so that it depends on nothing of the master.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from mesos_py.constraints import Constraint, Host
from mesos_py.resources import Resources

# ---- What the allocator is told ----------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentRow:
    """What an allocator may know of an agent.

    `active`: may be offered; `why_inactive` says in words why not, for explanations.
    """

    agent_id: str
    host: Host
    total: Resources
    active: bool = True
    why_inactive: str = ""


@dataclass(frozen=True, slots=True)
class FrameworkRow:
    """What an allocator may know of a framework.

    `active`: connected and to be offered to.  `min_free[role]` lists alternatives:
    an agent is offered only if one of them fits what is free there (OfferFilters
    of Mesos; no entry: the default of AllocatorOptions; an empty list: anything).
    `constraints[role]` is the role's offer constraint (none: every agent).
    """

    framework_id: str
    name: str
    roles: tuple[str, ...]
    suppressed: frozenset[str] = frozenset()
    active: bool = True
    gpu_capable: bool = False
    min_free: Mapping[str, Sequence[Resources]] = field(default_factory=dict)
    constraints: Mapping[str, Constraint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentChanged:
    """An agent is new, or its row differs from the one told before."""

    agent: AgentRow
    attributes_changed: bool = False


@dataclass(frozen=True, slots=True)
class AgentRemoved:
    agent_id: str


@dataclass(frozen=True, slots=True)
class FrameworkChanged:
    """A framework is new, or its row differs from the one told before."""

    framework: FrameworkRow


@dataclass(frozen=True, slots=True)
class FrameworkRemoved:
    framework_id: str


@dataclass(frozen=True, slots=True)
class Freed:
    """Something became free on the agent (a task ended, an offer came back)."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The framework does not want `resources` of this agent until `until_s`.

    Blocks an offer only while what would be offered is contained in `resources`:
    a bigger bundle passes.  Several may be in force for one framework, role and
    agent.  Told also when `until_s` is not in the future (declined without a
    filter, an offer that expired unanswered): it blocks nothing then, but says
    that this framework did not take what others may be waiting for.
    """

    framework_id: str
    role: str
    agent_id: str
    resources: Resources
    until_s: float


@dataclass(frozen=True, slots=True)
class Revived:
    """Forget the framework's refusals for these roles and look at all agents again."""

    framework_id: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WeightChanged:
    """Default weight: 1.0."""

    role: str
    weight: float


Event: TypeAlias = (
    AgentChanged
    | AgentRemoved
    | FrameworkChanged
    | FrameworkRemoved
    | Freed
    | Refusal
    | Revived
    | WeightChanged
)

# ---- What it sees and answers ------------------------------------------------


class ClusterView(Protocol):
    """The ledger, for reading.  Every method is O(1) and cheap."""

    def free(self, agent_id: str) -> Resources:
        """What is neither offered nor allocated there; EMPTY for unknown agents."""
        ...

    def held(self, framework_id: str, role: str) -> Mapping[str, int]:
        """Scalars, in thousandths, that the framework holds under the role on all
        agents: offered and allocated together."""
        ...

    def held_by_role(self, role: str) -> Mapping[str, int]:
        """The same, summed over the role's frameworks (also those that left it)."""
        ...

    def cluster_total(self) -> Mapping[str, int]:
        """Scalars, in thousandths, of all registered agents."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    framework_id: str
    role: str
    agent_id: str
    resources: Resources


@dataclass(frozen=True, slots=True)
class Revocation:
    """Take `resources` back from the framework on that agent (later capability)."""

    framework_id: str
    agent_id: str
    resources: Resources
    reason: str


SKIP_CODES: Final = frozenset(
    {
        "suppressed",  # the framework asked not to be offered anything in this role
        "inactive",  # the framework is not connected, or the agent may not be offered
        "filtered",  # the framework declined this itself a while ago
        "constraint",  # the framework's own offer constraint excludes the agent
        "too-small",  # less is free than the framework or the operator wants offered
        "nothing-free",  # others, or the framework itself, hold all of it
        "gpu-only",  # the agent has gpus and the framework is not GPU capable
        "outranked",  # another framework comes first
        "no-agents",  # no agent is registered
        "error",  # something is wrong with the framework's record
    }
)


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a framework was passed over: once per distinct reason and agent.

    `code` is one of SKIP_CODES.  `agent_id` is empty where the reason holds for
    several agents, or for none in particular.
    """

    code: str
    message: str
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Exceptions met while one framework (or agent) was looked at, which was then
    passed over: how many since the allocator was made, and the last one's text."""

    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class AllocatorOptions:
    """What the operator chose, for every allocator.

    `min_offer` lists alternatives: an agent with less free than each of them is
    not offered (default of Mesos: 0.01 cpu or 32 MB).  `unfair` names scalars
    that do not count towards the dominant share.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    min_offer: Sequence[Resources] = (Resources.of(cpus=0.01), Resources.of(mem=32))
    unfair: frozenset[str] = frozenset()
    seed: int = 0


class Allocator(ABC):
    """See the module's docstring for who calls what and when."""

    @abstractmethod
    def tell(self, event: Event) -> None:
        """Note a change.  Unknown ids are ignored: messages may cross.

        Raises InvalidValue for a weight that is not a finite number above zero,
        and nothing else."""

    @abstractmethod
    def allocate(self, view: ClusterView, now_s: float) -> list[Grant]:
        """Decide who gets what is free, after each grant on the new shares.

        At most one grant per (framework, role, agent); all grants of an agent
        together fit what `view.free` says; none to an inactive framework or
        agent.  The work grows with what changed since the last call.
        """

    def revocations(self, view: ClusterView, now_s: float) -> list[Revocation]:
        """What to take back for those who are owed it.  None by default."""
        return []

    def next_wake_s(self) -> float | None:
        """The monotonic second of the next expiry that may allow a grant.

        None: nothing can change without an event.  Asked after each `allocate`."""
        return None

    def failures(self) -> Mapping[str, Failure]:
        """By framework or agent id: whose records raised something.  For metrics
        and logs; ids that were removed are forgotten.  None by default."""
        return {}

    @abstractmethod
    def explain(self, framework_id: str, view: ClusterView, now_s: float) -> list[Skip]:
        """Why the framework would get nothing now, agent by agent; [] if it would.

        Changes nothing.  Unknown frameworks: []."""

    @abstractmethod
    def shares(self, view: ClusterView) -> Mapping[str, float]:
        """The share of each role that has a framework or a weight: the dominant
        share divided by the weight, unless the allocator's own documentation says
        otherwise.  Roles of inactive and suppressed frameworks are among them."""


def fits_any(free: Resources, alternatives: Iterable[Resources]) -> bool:
    """Whether `free` contains one of the alternatives; true if there are none."""
    listed = list(alternatives)
    return not listed or any(free.contains(wanted) for wanted in listed)
