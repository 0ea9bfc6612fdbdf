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
4. `revocations(view, now_s)` after each cycle: what is to be taken back from whom, and
   `called_off()`: what is not, after all.  The master asks, waits and kills; the
   allocator keeps what becomes free for whom it was taken.
5. `explain(framework_id, view, now_s)` when somebody asks why a framework gets
   nothing; `standings`, `guarantees` and `waiting` tell where everybody stands.  May
   be slow; must not change anything.

`mesos_py.testing.allocator_contract` is the test suite that every allocator,
built in or not, must pass.  Others are found by the entry-point group
`mesos_py.allocators`: a factory called with `AllocatorOptions`.  All that such an
allocator needs is in this module, so that it depends on nothing of the master.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from mesos_py.constraints import Constraint, Host
from mesos_py.policy import RolePolicy
from mesos_py.resources import EMPTY, Resources

# ---- What the allocator is told ----------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentRow:
    """What an allocator may know of an agent.

    `active`: may be offered; `why_inactive` says in words why not, for explanations, and
    `reachable` whether it answers at all.
    """

    agent_id: str
    host: Host
    total: Resources
    active: bool = True
    why_inactive: str = ""
    reachable: bool = True


@dataclass(frozen=True, slots=True)
class Need:
    """Part of what a framework needs to hold in all: `count` times `resources`, each on
    one agent (`agent_id`: on that one; empty: on any that its role may use).

    Whoever changes what he needs in a role is asked there anew, whatever he refused.
    `mandatory`: the framework is of no use with less.  Amounts that it holds already
    count; `role` is one of its roles.
    """

    role: str
    resources: Resources
    count: int = 1
    agent_id: str = ""
    mandatory: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class FrameworkRow:
    """What an allocator may know of a framework.

    `active`: connected and to be offered to.  `min_free[role]` lists alternatives:
    an agent is offered only if one of them fits what is free there (OfferFilters
    of Mesos; no entry: the default of AllocatorOptions; an empty list: anything).
    `constraints[role]` is the role's offer constraint (none: every agent).
    `priority` is among the frameworks of one role; the highest comes first.  `silent`: it
    left offers unanswered, and is not `active` until it says something or has been left
    alone for a while; its refusals stand meanwhile.  `needs` are those that the operator
    allows; of a framework that is not active they protect what it holds, and are no reason
    to take anything from others.  `refines`: it may be offered what is reserved for a role
    and, of that, for one below it.
    """

    framework_id: str
    name: str
    roles: tuple[str, ...]
    suppressed: frozenset[str] = frozenset()
    active: bool = True
    gpu_capable: bool = False
    min_free: Mapping[str, Sequence[Resources]] = field(default_factory=dict)
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    priority: int = 0
    needs: tuple[Need, ...] = ()
    silent: bool = False
    refines: bool = False


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
    that this framework did not take what others may be waiting for.  Blocks nothing that
    the framework lacks of its needs once tasks of its own have ended since.

    `max_task_s`: it was offered for tasks of at most that length (None: any); then
    only such offers are blocked.
    """

    framework_id: str
    role: str
    agent_id: str
    resources: Resources
    until_s: float
    max_task_s: float | None = None


@dataclass(frozen=True, slots=True)
class Revived:
    """Forget the framework's refusals for these roles and look at all agents again."""

    framework_id: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """All that operators now say of the role; RolePolicy() where they say nothing."""

    role: str
    policy: RolePolicy


@dataclass(frozen=True, slots=True)
class RevocationEnded:
    """Nothing more is taken back of this: it is done, or was called off by the master
    (`freed`: whether the resources became free)."""

    revocation: Revocation
    freed: bool


Event: TypeAlias = (
    AgentChanged
    | AgentRemoved
    | FrameworkChanged
    | FrameworkRemoved
    | Freed
    | Refusal
    | Revived
    | PolicyChanged
    | RevocationEnded
)

# ---- What it sees and answers ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tenant:
    """A task that runs on an agent, as a candidate for revocation.

    `resources`: what becomes free when it ends, by itself (its executor's are not
    among them).  `since_s`: when it was launched, on the monotonic clock (-inf: its
    agent did not say).  `cost`: what the framework says its end costs; None: nothing said.
    `short`: it is on what is kept for short tasks.
    """

    framework_id: str
    role: str
    task_id: str
    resources: Resources
    since_s: float
    cost: float | None = None
    short: bool = False


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

    def held_under(self, role: str) -> Mapping[str, int]:
        """As held_by_role, the roles below it included: of "a" also "a/b" and "a/b/c"."""
        ...

    def held_for_long(self, agent_id: str) -> Mapping[str, int]:
        """Scalars, in thousandths, that are offered or allocated there but those of
        grants for short tasks."""
        ...

    def tenants(self, agent_id: str) -> Sequence[Tenant]:
        """The tasks that run there and may be ended.  As long as there are tasks on
        the agent; asked for revocations only."""
        ...

    def on_offer(self, agent_id: str) -> Sequence[Tenant]:
        """What is on offer there and not taken: each with an empty task id, and since
        when.  As long as there are offers of the agent; asked for revocations only."""
        ...

    def cluster_total(self) -> Mapping[str, int]:
        """Scalars, in thousandths, of all registered agents."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """`max_task_s`: it is kept for tasks that run no longer than this (None: any)."""

    framework_id: str
    role: str
    agent_id: str
    resources: Resources
    max_task_s: float | None = None


@dataclass(frozen=True, slots=True)
class Revocation:
    """Take `resources` back from the framework on that agent, for `beneficiary`.

    `task_ids` are the tasks whose end frees them; the framework may end others there
    instead.  None: it has them on offer, and these offers are to be rescinded at once.
    One revocation names one agent; several may be in progress.
    """

    framework_id: str
    role: str
    agent_id: str
    resources: Resources
    task_ids: tuple[str, ...]
    beneficiary: str
    reason: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a role, or a framework in one of its roles, stands in the order.

    `framework_id` empty: the role with those below it.  `position` counts from 1 among
    `contenders` that stand beside it (the frameworks of the role; the roles with one
    parent, and as one more the parent's own frameworks); equals may share one; 0: not in
    the order.  Amounts are scalars in thousandths.
    """

    role: str
    framework_id: str
    share: float
    weighted_share: float
    weight: float
    position: int
    contenders: int
    priority: int = 0
    held: Mapping[str, int] = field(default_factory=dict)
    guarantee: Mapping[str, int] = field(default_factory=dict)
    limit: Mapping[str, int] = field(default_factory=dict)
    lacking: Mapping[str, int] = field(default_factory=dict)


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
        "reserved",  # the agent is kept for another role
        "quota",  # what is free there is promised to others by their guarantees
        "limit",  # the role, or one above it, may not have more
        "held",  # what is free there was taken back for another framework
        "short-only",  # what is free there is kept for short tasks
        "not-admitted",  # the framework's mandatory needs cannot be met
        "unreachable",  # the agent does not answer
        "silent",  # the framework left offers unanswered and waits to be asked again
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
class PassedOver:
    """How often it was a framework's turn on some agent, and it was passed over for this
    reason (`code`: one of SKIP_CODES): when and where last.  Monotonic seconds."""

    role: str
    code: str
    count: int
    last_s: float
    agent_id: str


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
    not offered (default of Mesos: 0.01 cpu or 32 MB); `min_offer_share`: nor one with
    less free than this part of its cpus, or of its mem (0 to 1), as far as nobody has
    reserved them: what is reserved for a role is offered to it in any case.  `max_offer`: at most
    so much of an agent is in one grant (scalars that it names; EMPTY: all that is free);
    who got a part gets no more of that agent in the same cycle, but may in the next, unless
    he lacks more than that of needs that he has stated.
    `unfair` names scarce scalars, which do not count towards the dominant share.

    `short_share`: this part of each agent's scalars is kept for tasks of at most
    `short_max_s` (0: nothing is); it is granted by itself, beside what is for any task.
    `fair_guarantee`: whoever has no guarantee from an operator is guaranteed a fair share
    of what is left (else nothing).

    `victims`: how what is to be taken back is chosen, by name ("youngest", "most-over",
    "cost", of the entry points `mesos_py.victims`; "off": nothing is ever taken back);
    `victim_policy`: the function of that name (`mesos_py.victims.VictimPolicy`), which
    ours need only where the name is none of the built-in ones.
    A framework must have lacked its needs for `revocation_patience_s`; then one round
    each `revocation_interval_s` takes back at most `revocation_cap` of the cluster, and
    what was freed is kept for `revocation_hold_s`.  `preempt`: an allocator that knows
    priorities takes back from lower ones what a higher one needs.
    """

    policies: Mapping[str, RolePolicy] = field(default_factory=dict)
    min_offer: Sequence[Resources] = (Resources.of(cpus=0.01), Resources.of(mem=32))
    min_offer_share: float = 0.0
    max_offer: Resources = EMPTY
    unfair: frozenset[str] = frozenset({"gpus"})
    short_share: float = 0.0
    short_max_s: float = 60.0
    fair_guarantee: bool = True
    victims: str = "youngest"
    victim_policy: Callable[..., float] | None = None
    revocation_patience_s: float = 1.0
    revocation_interval_s: float = 1.0
    revocation_cap: float = 1.0
    revocation_hold_s: float = 30.0
    preempt: bool = False
    seed: int = 0


class Allocator(ABC):
    """See the module's docstring for who calls what and when."""

    @abstractmethod
    def tell(self, event: Event) -> None:
        """Note a change.  Unknown ids are ignored: messages may cross.

        Raises InvalidValue for a policy that RolePolicy.check refuses, and nothing
        else."""

    @abstractmethod
    def allocate(self, view: ClusterView, now_s: float) -> list[Grant]:
        """Decide who gets what is free, after each grant on the new shares.

        At most one grant per (framework, role, agent, max_task_s); all grants of an
        agent together fit what `view.free` says; none to an inactive framework or
        agent.  The work grows with what changed since the last call.
        """

    def revocations(self, view: ClusterView, now_s: float) -> list[Revocation]:
        """What to take back for those who are owed it, beside what is in progress.

        Each is answered by one RevocationEnded, sooner or later.  None by default."""
        return []

    def called_off(self) -> list[Revocation]:
        """Of those in progress, what is needed no more: no further stage of it is to be
        carried out.  Each is told once, and is answered by RevocationEnded as before.
        Asked for after each `revocations`.  None by default."""
        return []

    def guarantees(self, view: ClusterView) -> Mapping[str, Mapping[str, int]]:
        """What each framework is guaranteed now: scalars, in thousandths, by framework
        id.  Never is anything taken back below it.  Nobody anything by default."""
        return {}

    def waiting(self) -> Mapping[str, str]:
        """Frameworks that are not admitted, each with the reason in words.  Nobody by
        default."""
        return {}

    def standings(self, view: ClusterView) -> Sequence[Standing]:
        """Where every role and every framework in each of its roles stands.  Changes
        nothing.  Nothing by default."""
        return ()

    def next_wake_s(self) -> float | None:
        """The monotonic second of the next expiry that may allow a grant.

        None: nothing can change without an event.  Asked after each `allocate`."""
        return None

    def failures(self) -> Mapping[str, Failure]:
        """By framework or agent id: whose records raised something.  For metrics
        and logs; ids that were removed are forgotten.  None by default."""
        return {}

    def passed_over(self, framework_id: str) -> Sequence[PassedOver]:
        """Why the framework was passed over since it came, by role and reason, counted.
        Nothing by default."""
        return ()

    @abstractmethod
    def explain(self, framework_id: str, view: ClusterView, now_s: float) -> list[Skip]:
        """Why the framework would get nothing now, agent by agent; [] if it would.

        Changes nothing.  Unknown frameworks: []."""

    @abstractmethod
    def shares(self, view: ClusterView) -> Mapping[str, float]:
        """The share of each role that has a framework or a policy: the dominant
        share divided by the weight, unless the allocator's own documentation says
        otherwise.  Roles of inactive and suppressed frameworks are among them."""


def fits_any(free: Resources, alternatives: Iterable[Resources]) -> bool:
    """Whether `free` contains one of the alternatives; true if there are none."""
    listed = list(alternatives)
    return not listed or any(free.contains(wanted) for wanted in listed)
