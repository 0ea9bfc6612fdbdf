"""The master's flags for allocation: what the options of every allocator are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from master.allocator.base import AllocatorOptions
from mesos_py import config, plugins
from mesos_py.config import at_least, flag
from mesos_py.config_kinds import Kind
from mesos_py.errors import InvalidValue
from mesos_py.policy import RolePolicy
from mesos_py.resources import EMPTY, Resources
from mesos_py.victims import OFF, POLICIES, VictimPolicy

FIRST_OFFER_TIMEOUT_S: Final = 2.0
VICTIMS: Final = (*POLICIES, OFF)
_VICTIMS_GROUP: Final = "mesos_py.victims"
# Ours that know nothing of priorities.
_WITHOUT_PRIORITIES: Final = ("drf", "lottery")


def _parse_scalars(given: str) -> Resources:
    if not given.strip():
        return EMPTY
    resources = Resources.parse(given)
    if resources.ranges or resources.sets:
        raise ValueError("must name amounts only")
    return resources


def _parse_alternatives(given: str) -> tuple[Resources, ...]:
    if not given.strip():
        return ()
    parts = tuple(_parse_scalars(part) for part in given.split("|"))
    if EMPTY in parts:
        raise ValueError("has an empty alternative")
    return parts


scalars: Final = Kind(
    "scalars", "NAME:AMOUNT;...", "amounts such as cpus:8;mem:32768", _parse_scalars, str
)
alternatives: Final = Kind(
    "alternatives",
    "NAME:AMOUNT;...|...",
    "amounts such as cpus:0.01, alternatives separated by a vertical bar",
    _parse_alternatives,
    lambda v: "|".join(map(str, v)),
)


def above_zero(value: float) -> None:
    """A check of a flag."""
    if not value > 0:
        raise ValueError("must be above zero")


def known_victims(value: str) -> None:
    """A check of a flag: a policy of ours, or one of another distribution."""
    known = plugins.names(_VICTIMS_GROUP, dict.fromkeys(VICTIMS, ""))
    if value not in known:
        raise ValueError(f"is not known; known are: {', '.join(known)}")


@dataclass(frozen=True)
class AllocationFlags:
    """Inherited by `MasterFlags`."""

    min_offer: tuple[Resources, ...] = flag(
        (Resources.of(cpus=0.01), Resources.of(mem=32)),
        kind=alternatives,
        help="An agent with less free than each of these is not offered, unless a framework"
        " says what it can use itself",
    )
    min_offer_share: float = flag(
        0.0,
        kind=config.percent,
        help="Nor is one with less free than this part of its cpus and of its mem (of what is"
        " reserved for nobody): large tasks then wait for less time, and small ones for more",
    )
    max_offer: Resources = flag(
        EMPTY,
        kind=scalars,
        help="At most so much of an agent is in one offer, of the amounts that are named here"
        " (default: all that is free)",
    )
    scarce_resources: tuple[str, ...] = flag(
        ("gpus",),
        kind=config.text_list,
        help="What does not count towards shares, since only a few can use it",
    )
    short_task_share: float = flag(
        0.0,
        kind=config.percent,
        help="This part of each agent is offered only for tasks that end within"
        " short-task-max-duration",
    )
    short_task_max_duration_s: float = flag(
        60.0,
        kind=config.duration_s,
        check=above_zero,
        help="How long a task may run on what is kept for short tasks; then it is ended",
    )
    fair_guarantee: bool = flag(
        True,
        kind=config.boolean,
        help="Roles without a guarantee are guaranteed a fair share of what guarantees leave:"
        " up to it what they need is taken back from others",
    )
    revocation: str = flag(
        "youngest",
        kind=config.text,
        check=known_victims,
        help="Which tasks are taken back when frameworks lack what they need and are owed:"
        " youngest, most-over (spread over who is most above his guarantee), cost (as their"
        " frameworks say), a plug-in's name, or off",
    )
    revocation_patience_s: float = flag(
        1.0,
        kind=config.duration_s,
        check=at_least(0),
        help="Nothing is taken back for who has lacked it for less than this time",
    )
    revocation_interval_s: float = flag(
        1.0,
        kind=config.duration_s,
        check=at_least(0.01),
        help="Time from one round of revocation to the next",
    )
    revocation_cap: float = flag(
        100.0,
        kind=config.percent,
        check=above_zero,
        help="At most this part of the cluster is taken back in one round",
    )
    revocation_hold_s: float = flag(
        30.0,
        kind=config.duration_s,
        check=at_least(0),
        help="What was taken back is kept so long for whom it was taken",
    )
    revocation_grace_s: float = flag(
        5.0,
        kind=config.duration_s,
        check=at_least(0),
        help="A framework has so long to give up what it chooses itself; 0: its tasks are killed"
        " at once",
    )
    priority_preemption: bool = flag(
        False,
        kind=config.boolean,
        help="What a role or framework of a higher priority needs is taken back from lower ones",
    )
    allocator_seed: int = flag(
        0, kind=config.integer, help="Where chance begins, for allocators that draw lots"
    )
    first_offer_timeout_s: float | None = flag(
        None,
        kind=config.duration_s,
        check=at_least(0),
        help="A framework has so long to answer its first offers; the time doubles up to"
        " offer-timeout when it does not, and shrinks when it does (default: 2s, or"
        " offer-timeout if that is less; 0: always offer-timeout)",
    )


def first_offer_timeout_s(flags: AllocationFlags, most_s: float) -> float:
    """How long the first offers are good for, where none is for longer than `most_s` (0:
    for ever); 0: as all others."""
    first_s = flags.first_offer_timeout_s
    if first_s is None:
        first_s = FIRST_OFFER_TIMEOUT_S
    return min(first_s, most_s) if most_s else first_s


def allocator_options(
    flags: AllocationFlags, policies: Mapping[str, RolePolicy]
) -> AllocatorOptions:
    """As allocators are told.  Raises InvalidValue for a plug-in that cannot be loaded."""
    return AllocatorOptions(
        policies=policies,
        min_offer=flags.min_offer,
        min_offer_share=flags.min_offer_share / 100,
        max_offer=flags.max_offer,
        unfair=frozenset(flags.scarce_resources),
        short_share=flags.short_task_share / 100,
        short_max_s=flags.short_task_max_duration_s,
        fair_guarantee=flags.fair_guarantee,
        victims=flags.revocation,
        victim_policy=victim_policy(flags.revocation),
        revocation_patience_s=flags.revocation_patience_s,
        revocation_interval_s=flags.revocation_interval_s,
        revocation_cap=flags.revocation_cap / 100,
        revocation_hold_s=flags.revocation_hold_s,
        preempt=flags.priority_preemption,
        seed=flags.allocator_seed,
    )


def victim_policy(name: str) -> VictimPolicy | None:
    """The plug-in of that name; None: allocators know it themselves."""
    return None if name in VICTIMS else plugins.resolve(_VICTIMS_GROUP, {}, name, "revocation")


def require_consistent(flags: AllocationFlags, allocator: str, offer_timeout_s: float) -> None:
    """Raises InvalidValue for values that contradict each other, naming both."""
    first_s = flags.first_offer_timeout_s
    longest = config.duration_s.show(offer_timeout_s)
    if first_s is not None and not offer_timeout_s:
        _clash(flags, "first_offer_timeout_s", "says nothing with --offer-timeout 0s (never)")
    if first_s is not None and first_s > offer_timeout_s:
        _clash(flags, "first_offer_timeout_s", f"is longer than --offer-timeout {longest}")
    if flags.priority_preemption and flags.revocation == "off":
        _clash(flags, "priority_preemption", "takes nothing back with --revocation off")
    if flags.priority_preemption and allocator in _WITHOUT_PRIORITIES:
        reason = f"says nothing with --allocator {allocator}, which knows no priorities"
        _clash(flags, "priority_preemption", reason)
    if flags.min_offer and not any(_reachable(flags.max_offer, each) for each in flags.min_offer):
        wanted = alternatives.show(flags.min_offer)
        _clash(flags, "max_offer", f"is less than --min-offer {wanted}: nothing could be offered")


def _reachable(most: Resources, least: Resources) -> bool:
    return all(most.scalars.get(name, milli) >= milli for name, milli in least.scalars.items())


def _clash(flags: AllocationFlags, field: str, reason: str) -> None:
    (declared,) = (each for each in config.flags_of(type(flags)) if each.field == field)
    value: Any = declared.kind.show(getattr(flags, field))
    raise InvalidValue(f"--{declared.name}", value, reason)
