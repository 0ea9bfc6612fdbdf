"""Where the groups are: what is mounted here, and what of it may be used.

Version 1: `MOUNT/ROOT/AGENT ID` in the hierarchy of each controller.  Version 2: the
same beneath the top, or beneath our own group where that was delegated to us.  Both at
once (hybrid): each controller in whichever hierarchy has it.

Version 2 lets no group that hands controllers down have processes of its own (except the
true root).  So where we start from our own group, whoever is in it, this agent above
all, moves into a leaf beside the containers' groups.  A successor that starts in that
leaf finds its way back up.
"""

from __future__ import annotations

import contextlib
import errno
from dataclasses import dataclass
from typing import Final

from agent.isolation.cgroups.files import PROCS, CgroupError, Group
from agent.isolation.cgroups.mounts import Mount, best, mounts_of, own_groups
from agent.isolation.cgroups.options import Options, check_name
from mesos_py import logs
from mesos_py.errors import InvalidValue

log = logs.get("agent.isolation.cgroups")

# By the name that v2 has: how v1 calls it.
V1_NAMES: Final = {
    "cpu": "cpu",
    "cpuacct": "cpuacct",
    "memory": "memory",
    "pids": "pids",
    "cpuset": "cpuset",
    "io": "blkio",
    "freezer": "freezer",
}
V2_CONTROLLERS: Final = ("cpu", "memory", "pids", "cpuset", "io")
REQUIRED: Final = ("cpu", "memory")
SUBTREE: Final = "cgroup.subtree_control"
# v2: where those go who were in the group that we start from.
LEAF: Final = "mesos_py_agent"
# v1's cpuset: for all who have no processors of their own.
SHARED: Final = "shared"
_MOVES: Final = 100
# What v2 says of a group that has processes.  The second comes after a controller that needs no
# domain (cpu, pids) was switched on: the group counts as the root of a threaded subtree then.
_OCCUPIED: Final = (errno.EBUSY, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class Place:
    """Where one controller's groups are.  `chain` leads from the first group of ours down
    to the agent's; `top` is above it, and not ours."""

    version: int
    top: Group
    chain: tuple[Group, ...]

    @property
    def agent(self) -> Group:
        return self.chain[-1]


class Layout:
    """All places, by controller as v2 names it; `kill` is where containers are ended."""

    def __init__(self, places: dict[str, Place], kill: Place) -> None:
        self.places = places
        self.kill = kill
        self.distinct = list({each.agent: each for each in (*places.values(), kill)}.values())

    def make(self) -> None:
        """Make the agent's own group everywhere."""
        for place in self.distinct:
            _make_chain(place.chain)
            if place.version == 2:
                _hand_down(place, [n for n, p in self.places.items() if p == place])

    def containers(self) -> set[str]:
        """All that there is a group of, whoever made it."""
        found = {name for place in self.distinct for name in place.agent.children()}
        return found - {SHARED}

    def remove(self) -> None:
        """Remove the agent's own groups where nothing is left in them."""
        for place in self.distinct:
            if place.version == 1:
                place.agent.child(SHARED).remove()
            for group in reversed(place.chain):
                # Other agents may have theirs in the same one.
                if not group.remove():
                    break


def find(
    options: Options,
    agent_id: str,
    mountinfo: str,
    own: str,
    *,
    privileged: bool,
    group: type[Group] = Group,
) -> Layout:
    """Choose the places from what /proc/self says.  Raises InvalidValue, CgroupError."""
    check_name("agent_id", agent_id)
    groups = own_groups(own)
    mounted = best(mounts_of(mountinfo), groups)
    places: dict[str, Place] = {}
    for name, v1_name in V1_NAMES.items():
        if v1_name in mounted:
            places[name] = _place(group(mounted[v1_name].point), options, agent_id, 1)
    second = None
    if "" in mounted:
        top = _top(mounted[""], groups.get(""), options, group, privileged)
        second = _place(top, options, agent_id, 2)
        available = (top.read_or_none("cgroup.controllers") or "").split()
        places.update(
            (name, second) for name in V2_CONTROLLERS if name not in places and name in available
        )
    for name in REQUIRED:
        if name not in places:
            where = f"v2 at {second.top.path} has not" if second else "no cgroup v2 is mounted"
            text = f"needs the {name} controller: no v1 hierarchy has it, and {where}"
            raise InvalidValue("isolation", "cgroups", text)
    kill = places.get("freezer") or second or places["memory"]
    return Layout(places, kill)


def _place(top: Group, options: Options, agent_id: str, version: int) -> Place:
    parts = [*options.parts, agent_id]
    chain = [top.child(*parts[: length + 1]) for length in range(len(parts))]
    return Place(version, top, tuple(chain))


def _top(
    mount: Mount, own: str | None, options: Options, group: type[Group], privileged: bool
) -> Group:
    """v2: the group beneath which ours are made."""
    top = group(mount.point)
    path = mount.group_of(own)
    if not path or options.root.startswith("/"):
        return top
    names = path.split("/")
    if names[-1] == LEAF:
        names.pop()
        return top.child(*names) if names else top
    mine = top.child(*names)
    return mine if mine.delegated() or not privileged else top


def _make_chain(chain: tuple[Group, ...]) -> None:
    for tries_left in (2, 1, 0):
        try:
            for group in chain:
                group.make()
            return
        except CgroupError as error:
            # Another agent, about to end, has removed what it shared with us.
            if not error.gone or not tries_left:
                raise


# ---- Version 2: controllers are handed down, group by group -------------------------------


def _hand_down(place: Place, controllers: list[str]) -> None:
    for group in (place.top, *place.chain):
        on = group.read(SUBTREE).split()
        for name in controllers:
            if name not in on:
                _switch_on(group, name, may_move=group == place.top)


def _switch_on(group: Group, controller: str, *, may_move: bool) -> None:
    try:
        group.write(SUBTREE, f"+{controller}")
    except CgroupError as error:
        if error.number not in _OCCUPIED or not may_move:
            raise
        _move_down(group)
        group.write(SUBTREE, f"+{controller}")


def _move_down(group: Group) -> None:
    """Move all who are in it into its leaf, also those who are born meanwhile."""
    leaf = group.child(LEAF)
    leaf.make()
    for _ in range(_MOVES):
        pids = group.pids()
        if not pids:
            break
        for pid in pids:
            # It may have ended; and what must stay shows in what comes next.
            with contextlib.suppress(CgroupError):
                leaf.write(PROCS, pid)
    log.info("moved out of the way of containers", group=leaf.path)
