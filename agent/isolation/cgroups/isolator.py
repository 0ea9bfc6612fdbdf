"""The isolator `cgroups`: each step of a container, over all controllers.

A container is a group of the same path in every hierarchy.  When one ends, its group is
emptied by force, asked what the kernel did to it, and removed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent.isolation.base import (
    AgentFacts,
    Container,
    Isolator,
    Limitation,
    Preparation,
    Recovered,
    Usage,
)
from agent.isolation.cgroups import layout as places
from agent.isolation.cgroups.controller import Controller
from agent.isolation.cgroups.cpu import Cpu
from agent.isolation.cgroups.cpuacct import CpuAccounting
from agent.isolation.cgroups.cpuset import LABEL as CORES_LABEL
from agent.isolation.cgroups.cpuset import Cpuset, wanted_cores
from agent.isolation.cgroups.ending import Ending, remove
from agent.isolation.cgroups.files import (
    MOUNTINFO,
    OWN,
    PROCS,
    CgroupError,
    Group,
    is_dying,
)
from agent.isolation.cgroups.freezer import Freezer
from agent.isolation.cgroups.io import FLAG, MAX_LABEL, WEIGHT_LABEL, Io, parse_limits
from agent.isolation.cgroups.memory import Memory
from agent.isolation.cgroups.oom import OomWatch
from agent.isolation.cgroups.options import Options, check_name
from agent.isolation.cgroups.pids import Pids
from mesos_py import logs
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.resources import Resources

log = logs.get("agent.isolation.cgroups")

CONTROLLERS: Final[dict[str, type[Controller]]] = {
    each.name: each for each in (Cpu, CpuAccounting, Memory, Pids, Cpuset, Io, Freezer)
}
# A task asks for these by label: it is not started where they are missing.
_BY_LABEL: Final = {CORES_LABEL: "cpuset", WEIGHT_LABEL: "io", MAX_LABEL: "io"}
# After the kernel has told of an out-of-memory: when to count whom it has killed.
COUNT_AGAIN_S: Final = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0)
# A killed process may be about to take its whole container with it.  A container that
# still runs so long after its victims are gone goes on without them.
SETTLE_S: Final = 0.5


def entry(place: places.Place, group: Group) -> str:
    """The file into which a new process writes itself.

    v1: not cgroup.procs, for which the kernel first waits until no process anywhere can
    be forking or ending, 5 to 15 ms.  A process with one thread, as this one, need not.
    """
    return group.file("tasks" if place.version == 1 else PROCS)


@dataclass
class _Held:
    """What is remembered of a container."""

    pid: int = 0
    exceeded: Callable[[Limitation], None] | None = None
    # Killed for want of memory: how many were told of, how many seen.
    told: int = 0
    seen: int = 0
    # Whether a victim was still on its way out when last looked at.
    dying: bool = False
    # How often we have counted in vain since the kernel told us.
    vain: int = 0
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class CgroupIsolator(Isolator):
    """See the module."""

    def __init__(self, facts: AgentFacts, *, layout: places.Layout | None = None) -> None:
        super().__init__(facts)
        cpus_milli = facts.resources.scalars.get("cpus", 0)
        options = Options.of(facts.flags, facts.work_dir, cpus_milli)
        parse_limits(options.io_max, FLAG)
        self.layout = layout or places.find(
            options,
            facts.agent_id,
            MOUNTINFO.read_text(),
            OWN.read_text(),
            privileged=os.geteuid() == 0,
        )
        self.layout.make()
        self.controllers: list[Controller] = [
            CONTROLLERS[name](place, options) for name, place in self.layout.places.items()
        ]
        self._memory = next(each for each in self.controllers if isinstance(each, Memory))
        if not self._memory.can_tell():
            text = "this kernel does not count processes killed for memory (v1: since 4.13)"
            raise InvalidValue("isolation", "cgroups", text)
        self.ending = Ending(self.layout.kill.version)
        self._is_dying = is_dying
        self._watch = OomWatch(self._look)
        self._held: dict[str, _Held] = {}
        # Of containers that ended while no agent ran: what ended them.
        self._past: dict[str, Limitation] = {}
        log.info(
            "control groups",
            v1=",".join(n for n, p in self.layout.places.items() if p.version == 1) or "none",
            v2=",".join(n for n, p in self.layout.places.items() if p.version == 2) or "none",
            agent_group=self._memory.place.agent.path,
        )

    def close(self) -> None:
        self._watch.close()
        self.layout.remove()

    def recover(self, containers: Sequence[Recovered]) -> None:
        for each in containers:
            self._held[each.container_id] = _Held(pid=each.pid)
            for controller in self.controllers:
                controller.recover(each.container_id, each.resources)
        for container_id in sorted(self.layout.containers() - self._held.keys()):
            log.warning("orphaned container is ended", container=container_id)
            try:
                limitation = self.end(container_id)
                self.cleanup(container_id)
                if limitation is not None:
                    self._past[container_id] = limitation
            except MesosPyError as error:
                # One that hangs must not keep the agent from starting.
                log.error("orphaned container is left", container=container_id, error=error)

    # ---- A container's life ------------------------------------------------------------

    def prepare(self, container: Container) -> Preparation:
        check_name("container_id", container.container_id)
        self._check_labels(container)
        self._held[container.container_id] = _Held()
        entries = [entry(each.place, each.prepare(container)) for each in self.controllers]
        kill = self.layout.kill.agent.child(container.container_id)
        kill.make()
        entries.append(entry(self.layout.kill, kill))
        return Preparation(enter=tuple(dict.fromkeys(entries)))

    def join(self, container_id: str, pid: int) -> Preparation:
        entries = [entry(each.place, each.group(container_id)) for each in self.controllers]
        kill = self.layout.kill
        entries.append(entry(kill, kill.agent.child(container_id)))
        return Preparation(enter=tuple(dict.fromkeys(entries)))

    def _check_labels(self, container: Container) -> None:
        names = {each.name for each in self.controllers}
        for label, name in _BY_LABEL.items():
            if label not in container.labels or name in names:
                continue
            if label != CORES_LABEL or wanted_cores(container.labels, container.resources):
                text = f"this agent's kernel has no {name} controller"
                raise InvalidValue(f"labels.{label}", container.labels[label], text)

    def isolate(self, container_id: str, pid: int) -> None:
        self._held[container_id].pid = pid

    def update(self, container_id: str, resources: Resources) -> None:
        for each in self.controllers:
            each.update(container_id, resources)

    def usage(self, container_id: str) -> Usage:
        found: dict[str, float] = {}
        for each in self.controllers:
            found.update(each.usage(container_id))
        return found

    def watch(self, container_id: str, exceeded: Callable[[Limitation], None]) -> None:
        self._held[container_id].exceeded = exceeded
        try:
            notice = self._memory.notice(container_id)
        except CgroupError as error:
            if not error.gone:
                raise
            return  # it has ended already
        self._watch.add(container_id, notice)
        if self._memory.kills(container_id):
            self._watch.look_soon(container_id)  # it happened before we listened

    def end(self, container_id: str) -> Limitation | None:
        held = self._held.get(container_id) or _Held()
        with held.lock:
            held.ended = True
        left = self.ending.end(self.layout.kill.agent.child(container_id))
        if left:
            log.info(
                "processes had left their container's session", count=left, container=container_id
            )
        kills = self._memory.kills(container_id) or 0
        if kills <= held.told:
            return self._past.get(container_id)
        return self._memory.limitation(container_id, kills - held.told, fatal=True)

    def cleanup(self, container_id: str) -> None:
        self._watch.remove(container_id)
        for place in self.layout.distinct:
            remove(place.agent.child(container_id))
        for each in self.controllers:
            each.forget(container_id)
        self._held.pop(container_id, None)
        self._past.pop(container_id, None)

    # ---- Pause --------------------------------------------------------------------------

    def pause(self, container_id: str) -> bool:
        """Stop all its processes where they are; whether all of them stand still."""
        return self.ending.freeze(self._frozen(container_id))

    def resume(self, container_id: str) -> None:
        self.ending.thaw(self._frozen(container_id))

    def _frozen(self, container_id: str) -> Group:
        return self.layout.kill.agent.child(container_id)

    # ---- Out of memory ------------------------------------------------------------------

    def _look(self, container_id: str, woken: bool) -> float | None:
        """Count whom the kernel has killed; when to do so again (OomWatch)."""
        held = self._held.get(container_id)
        if held is None:
            return None
        with held.lock:
            kills = self._memory.kills(container_id)
            if kills is None or held.ended or held.exceeded is None:
                return None
            if kills <= held.told:
                held.vain = 1 if woken else held.vain + 1
                return COUNT_AGAIN_S[held.vain - 1] if held.vain <= len(COUNT_AGAIN_S) else None
            held.vain = 0
            threads = self.ending.threads(self.layout.kill.agent.child(container_id))
            news, held.seen = kills > held.seen, kills
            before, held.dying = held.dying, any(self._is_dying(each) for each in threads)
            if news or before or held.dying or held.pid not in threads:
                # If the first process is or will be among the victims, `end` will tell.
                return SETTLE_S
            more, held.told = kills - held.told, kills
            limitation = self._memory.limitation(container_id, more, fatal=False)
        log.warning("out of memory", container=container_id, message=limitation.message)
        held.exceeded(limitation)
        return None
