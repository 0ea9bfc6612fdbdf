"""What the rules of operators keep from a framework, in words."""

from __future__ import annotations

from master.allocator.roles import Contender
from master.allocator.room import ESSENTIAL, Part, Room
from mesos_py.allocation import AgentRow
from mesos_py.resources import Resources, milli_text

_ROLES_NAMED = 3


def size_words(
    room: Room, contender: Contender, agent: AgentRow, free: Resources, part: Part
) -> str:
    """Of "too-small"."""
    if not part.resources and not room.is_enough(agent, free):
        share = room.options.min_offer_share
        whole = agent.total.unreserved.scalars
        total = Resources({name: whole[name] for name in ESSENTIAL if name in whole})
        return f"{free.unreserved or 'nothing'} is free, offered from {share:.0%} of its {total} on"
    least = " or ".join(str(wanted) for wanted in contender.min_free)
    if part.whole and part.whole is not free:
        return f"{part.whole} of it may be offered at a time, wanted from {least} on"
    return f"{free} is free, offered from {least} on"


def cap_words(room: Room, contender: Contender, agent: AgentRow, free: Resources) -> str:
    """Of "limit" and "quota": what keeps the contender from what is free there."""
    caps = room.quota.caps(contender.role, bool(room.reservations.owners(agent)))
    found = []
    for name, cap in caps.items():
        if cap.most >= free.scalars.get(name, 0) and cap.most:
            continue
        if cap.code == "limit":
            found.append(_limit_words(room, contender.role, name, cap.role, cap.most))
        else:
            found.append(_quota_words(room, contender.role, name, cap.most))
    return "; ".join(found)


def _limit_words(room: Room, role: str, name: str, limited: str, most: int) -> str:
    limit, held = room.quota.limit(limited, name), room.quota.held(limited, name)
    kept = max(limit - held, 0) - most
    text = f"role {limited!r} is limited to {milli_text(limit)} {name} and holds {milli_text(held)}"
    if kept:
        others = _lacking(room, role, name, limited)
        text += f", {milli_text(kept)} are kept for the guarantees of roles below it{others}"
    return text


def _quota_words(room: Room, role: str, name: str, most: int) -> str:
    free, needed = room.quota.surplus(name)
    text = (
        f"{milli_text(free)} {name} are free in the cluster and {milli_text(needed)} "
        f"are promised by guarantees{_lacking(room, role, name)}"
    )
    return f"{text}; at most {milli_text(most)} are left for it" if most else text


def _lacking(room: Room, role: str, name: str, under: str = "") -> str:
    """Who is guaranteed something that he does not hold: anywhere, or `under` a role."""
    lacking = [
        one for one in room.quota.lacking(name, role) if not under or one[0].startswith(f"{under}/")
    ]
    texts = [
        f"role {one!r} lacks {milli_text(lack)} of {milli_text(guarantee)}"
        for one, guarantee, lack in lacking[:_ROLES_NAMED]
    ]
    if len(lacking) > _ROLES_NAMED:
        texts.append(f"{len(lacking) - _ROLES_NAMED} more roles lack some")
    return f": {', '.join(texts)}" if texts else ""


def short_words(room: Room, agent: AgentRow, free: Resources) -> str:
    """Of "short-only"."""
    left = room.long_room(agent)
    long = {name: min(milli, left.get(name, 0)) for name, milli in free.scalars.items()}
    some = Resources({name: milli for name, milli in long.items() if milli})
    seconds = room.options.short_max_s
    beside = f", {some or 'nothing'} for longer ones" if some != free else ""
    return f"{free} is free, part of it for tasks of at most {seconds:g} s only{beside}"
