"""What the kernel says of control groups, taken apart.  Text in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

# Options of a v1 mount that are no controllers.
_OPTIONS: Final = frozenset(
    {"rw", "ro", "xattr", "noprefix", "clone_children", "nsdelegate", "favordynmods", "none"}
)
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
USUAL: Final = "/sys/fs/cgroup"


@dataclass(frozen=True)
class Mount:
    """A hierarchy as it is seen at `point`; `root` is which group of it stands there."""

    version: int
    point: str
    root: str
    writable: bool
    # v1 only; empty for a hierarchy without any (name=systemd).
    controllers: frozenset[str] = frozenset()

    def group_of(self, own: str | None) -> str | None:
        """Where the group `own` is beneath `point`: "" for the top, None if it is not seen."""
        if own is None or own.startswith("/.."):
            return None
        root = self.root.rstrip("/")
        if own == self.root or (not own.strip("/") and not root):
            return ""
        if not own.startswith(f"{root}/"):
            return None
        return own[len(root) + 1 :].strip("/")


def mounts_of(mountinfo: str) -> list[Mount]:
    """All mounted hierarchies, in the order of the text (/proc/PID/mountinfo)."""
    found = []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        parts, more = fields.split(), rest.split()
        if len(parts) < 6 or len(more) < 3 or more[0] not in ("cgroup", "cgroup2"):
            continue
        options = set(more[2].split(","))
        controllers = {each for each in options - _OPTIONS if "=" not in each}
        v1 = more[0] == "cgroup"
        found.append(
            Mount(
                version=1 if v1 else 2,
                point=_plain(parts[4]),
                root=_plain(parts[3]),
                writable="ro" not in parts[5].split(","),
                controllers=frozenset(controllers if v1 else ()),
            )
        )
    return found


def own_groups(text: str) -> dict[str, str]:
    """A process's group by controller, that of v2 by "" (/proc/PID/cgroup)."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        number, colon, rest = line.partition(":")
        controllers, second, path = rest.partition(":")
        if not colon or not second or not number.isdigit():
            continue
        for each in controllers.split(","):
            found[each] = path.removesuffix(" (deleted)")
    return found


def best(mounts: Iterable[Mount], own: Mapping[str, str]) -> dict[str, Mount]:
    """The mount to use for each v1 controller, that of v2 by "".

    A hierarchy may be mounted more than once, as in containers: best is one that can be
    written, then one in which we see our own group, then the usual place; then the last.
    """
    chosen: dict[str, Mount] = {}
    visible = {mount.point: mount for mount in mounts}  # the last one hides those below it
    for mount in visible.values():
        for key in mount.controllers if mount.version == 1 else ("",):
            if key not in chosen or _rank(mount, own.get(key)) >= _rank(chosen[key], own.get(key)):
                chosen[key] = mount
    return chosen


def _rank(mount: Mount, own: str | None) -> tuple[bool, bool, bool]:
    usual = mount.point == USUAL or mount.point.startswith(f"{USUAL}/")
    return mount.writable, mount.group_of(own) is not None, usual


def _plain(text: str) -> str:
    """Without the octal escapes for blanks and the like."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
