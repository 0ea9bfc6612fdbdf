"""Whole processors for tasks that ask for them by a label; the others share the rest.

In v1 those others are in one group together, in v2 each is in its own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import Final

from agent.isolation.base import Container
from agent.isolation.cgroups.controller import Controller
from agent.isolation.cgroups.files import CgroupError, Group
from agent.isolation.cgroups.layout import SHARED, Place
from agent.isolation.cgroups.numbers import cpu_list, cpu_text
from agent.isolation.cgroups.options import Options
from mesos_py import logs
from mesos_py.errors import InsufficientResources, InvalidValue
from mesos_py.resources import MILLI, Resources, milli_text

log = logs.get("agent.isolation.cgroups")

LABEL: Final = "mesos_py.whole_cores"
_YES: Final = frozenset({"true", "1", "yes"})
_NO: Final = frozenset({"false", "0", "no", ""})


def wanted_cores(labels: Mapping[str, str], resources: Resources) -> int:
    """How many processors of its own a task asks for.  Raises InvalidValue."""
    value = labels.get(LABEL, "").strip().lower()
    if value in _NO:
        return 0
    if value not in _YES:
        raise InvalidValue(f"labels.{LABEL}", labels[LABEL], "must be true or false")
    milli = resources.scalars.get("cpus", 0)
    if not milli or milli % MILLI:
        text = f"whole cores need a whole number of cpus, not {milli_text(milli)}"
        raise InvalidValue(f"labels.{LABEL}", labels[LABEL], text)
    return milli // MILLI


class Cpuset(Controller):
    name = "cpuset"

    def __init__(self, place: Place, options: Options) -> None:
        super().__init__(place, options)
        self._lock = threading.Lock()
        # Who has which processors for itself; v2: also who has none.
        self._own: dict[str, frozenset[int]] = {}
        self._others: set[str] = set()
        if self.v1:
            self._set_up(place)
        self.all = cpu_list(place.agent.read("cpuset.cpus" if self.v1 else "cpuset.cpus.effective"))

    def _set_up(self, place: Place) -> None:
        """v1: a new group has no processors and no memory, and takes nobody in."""
        above = place.top
        for group in (*place.chain, place.agent.child(SHARED)):
            group.make()
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not group.read(name).strip():
                    group.write(name, above.read(name).strip())
            above = group

    def group(self, container_id: str) -> Group:
        if self.v1 and container_id not in self._own:
            return self.place.agent.child(SHARED)
        return super().group(container_id)

    def prepare(self, container: Container) -> Group:
        container_id = container.container_id
        count = wanted_cores(container.labels, container.resources)
        with self._lock:
            if not count:
                return self._join(container_id)
            free = sorted(self.all.difference(*self._own.values()))
            if count >= len(free):
                raise InsufficientResources(
                    f"labels.{LABEL}: {count} whole cores wanted, {len(free) - 1} there "
                    "(one is always shared)",
                    wanted=count,
                    available=len(free) - 1,
                )
            # The last ones: the kernel likes to do its own work on the first.
            self._own[container_id] = frozenset(free[-count:])
            self._others.discard(container_id)
            self._share()
            group = self.group(container_id)
            group.make()
            if self.v1:
                group.write("cpuset.mems", self.place.agent.read("cpuset.mems").strip())
            group.write("cpuset.cpus", cpu_text(self._own[container_id]))
            return group

    def recover(self, container_id: str, resources: Resources) -> None:
        """What it had for itself is in its group's file."""
        text = super().group(container_id).read_or_none("cpuset.cpus")
        with self._lock:
            had = cpu_list(text)
            milli = resources.scalars.get("cpus", 0)
            if had and had != self.all and len(had) * MILLI == milli:
                self._own[container_id] = had
            elif not self.v1:
                self._others.add(container_id)

    def forget(self, container_id: str) -> None:
        with self._lock:
            self._others.discard(container_id)
            if self._own.pop(container_id, None) is not None:
                self._share()

    def _join(self, container_id: str) -> Group:
        group = self.group(container_id)
        if not self.v1:
            group.make()
            self._others.add(container_id)
            if self._own:
                group.write("cpuset.cpus", self._rest())
        return group

    def _rest(self) -> str:
        return cpu_text(self.all.difference(*self._own.values()))

    def _share(self) -> None:
        """Who has none for itself gets what the others have left."""
        rest = self._rest()
        if self.v1:
            self.place.agent.child(SHARED).write("cpuset.cpus", rest)
            return
        for container_id in self._others:
            # One that ends at this moment needs none.
            with contextlib.suppress(CgroupError):
                super().group(container_id).write("cpuset.cpus", rest)
