"""A cluster in which each master, agent and scheduler is a host of its own.

::

    with ChaosCluster(tmp_path, Plan(short=100)) as cluster:
        cluster.agents[0].kill()
        ...
        cluster.prove()
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from agent.isolation.network import namespaces
from tests.kit.chaos import checker, leaders, ledger, marks, probe, writer
from tests.kit.chaos.checker import View
from tests.kit.chaos.daemons import (
    Anything,
    Disk,
    HostDaemon,
    SchedulerDaemon,
    WriterDaemon,
    ZooKeeperDaemon,
)
from tests.kit.chaos.hosts import Host, Network
from tests.kit.chaos.ledger import Entry
from tests.kit.chaos.wires import Wires
from tests.kit.chaos.workload import Plan
from tests.kit.cluster import internal_errors
from tests.kit.zookeeper import Ensemble, Place

MASTER_PORT: Final = "5050"
ZOOKEEPER_PORT: Final = 2181
SESSION_S: Final = 4.0
# Short, so that a cut of seconds is one that everybody notices.
MASTER_FLAGS: Final = {
    "port": MASTER_PORT,
    "heartbeat": "1s",
    "agent_ping_interval": "1s",
    "max_agent_ping_timeouts": "5",
    "agent_reregister_timeout": "8s",
    "offer_timeout": "10s",
}
AGENT_FLAGS: Final = {
    "resources": "cpus:4;mem:1024;disk:0;ports:[21000-21099]",
    "registration_backoff": "200ms",
    "executor_shutdown_grace_period": "1s",
}
DISK_SIZE: Final = "32m"
# All that was lost has to be found again within this time after everything is healed.
DONE_S: Final = 120.0
REST_S: Final = 90.0
_LOOK_S: Final = 0.2


class ChaosCluster:
    """See the module's docstring.  When the block begins all are ready and work is done;
    when it ends all have to end in peace."""

    def __init__(
        self,
        directory: Path,
        plan: Plan | None = None,
        *,
        masters: int = 1,
        zookeepers: int = 0,
        agents: int = 2,
        disks: Collection[str] = (),
        start_scheduler: bool = True,
        master_flags: dict[str, str] | None = None,
    ) -> None:
        self.directory = directory
        # Tasks may run as other users: they must reach their sandboxes.
        directory.chmod(0o755)
        self._start_scheduler = start_scheduler
        self._stack = ExitStack()
        self.network = self._stack.enter_context(Network())
        self.wires = Wires(self.network)
        self._ensemble, self.zookeepers = self._zookeepers(zookeepers)
        self.masters = [self._master(f"master{n}", master_flags or {}) for n in range(masters)]
        self._addresses = ",".join(map(_where, self.masters))
        # What everybody is told.
        self.address = self._url() if zookeepers else self._addresses
        self.agents = [self._agent(f"agent{n}", disks) for n in range(agents)]
        given = plan or Plan("", "")
        self.plan = replace(given, master=self.address, directory=str(directory))
        host = self.network.host("scheduler0")
        self.scheduler = SchedulerDaemon(host, directory, self.plan)
        self._operator = self.network.host("operator")
        self._writer = WriterDaemon(self._operator, directory, self._addresses)
        # Daemons that are down on purpose, and what ended without having been asked to.
        self._down: set[str] = set()
        self.ended: list[str] = []

    def _zookeepers(self, count: int) -> tuple[Ensemble, list[ZooKeeperDaemon]]:
        hosts = [self.network.host(f"zookeeper{n}") for n in range(count)]
        places = [
            Place(host.address, ("nsenter", f"--net={namespaces.path_of(host.namespace)}"))
            for host in hosts
        ]
        ensemble = Ensemble(self.directory / "zookeeper", places=places)
        return ensemble, [ZooKeeperDaemon(each, ensemble, n) for n, each in enumerate(hosts)]

    def _url(self) -> str:
        addresses = [f"{each.host.address}:{ZOOKEEPER_PORT}" for each in self.zookeepers]
        return f"zk://{','.join(addresses)}/mesos"

    def _master(self, name: str, given: dict[str, str]) -> HostDaemon:
        flags = dict(MASTER_FLAGS)
        if self.zookeepers:
            flags |= {"zk": self._url(), "zk_session_timeout": f"{SESSION_S:g}s"}
        return self._daemon("master", name, {**flags, **given})

    def _daemon(self, kind: str, name: str, flags: dict[str, str]) -> HostDaemon:
        return HostDaemon(kind, self.network.host(name), self.directory, flags)

    def _agent(self, name: str, disks: Collection[str]) -> HostDaemon:
        flags = {**AGENT_FLAGS, "master": self.address, "hostname": name}
        agent = self._daemon("agent", name, flags)
        if name in disks:
            agent.disk = Disk(agent.work_dir, DISK_SIZE)
            self._stack.callback(agent.disk.close)
        return agent

    @property
    def daemons(self) -> list[Anything]:
        return [*self.zookeepers, *self.masters, *self.agents, self.scheduler]

    @property
    def hosts(self) -> dict[str, Host]:
        return self.network.hosts

    def daemon(self, name: str) -> Anything:
        (found,) = [daemon for daemon in self.daemons if daemon.name == name]
        return found

    def disk(self, name: str) -> Disk:
        disk = self.daemon(name).disk
        assert disk is not None, f"{name} has no disk of its own"
        return disk

    # ---- Life --------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            if self.zookeepers:
                self._stack.enter_context(self._ensemble)
            for group in (self.masters, self.agents):
                for daemon in group:
                    daemon.launch()
                for daemon in group:
                    daemon.ready()
            self._writer.launch()
            if self._start_scheduler:
                self.scheduler.start()
            self.wait_until(lambda: any(write.accepted for write in self.writes()))
        except BaseException:
            self._kill_all()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            codes = self._end() if kind is None else {}
        finally:
            self._kill_all()
        assert set(codes.values()) <= {0}, codes

    def _end(self) -> dict[str, int]:
        codes = {self.scheduler.name: self.scheduler.stop()}
        codes |= {agent.name: agent.end() for agent in self.agents}
        return codes | {master.name: master.stop() for master in self.masters}

    def _kill_all(self) -> None:
        """Whatever has been started, tasks too."""
        for daemon in (self._writer, self.scheduler, *self.agents, *self.masters):
            if daemon.alive:
                daemon.kill()
        end = time.monotonic() + REST_S
        # Those who end by themselves get no signal; those who start others go first.
        while (strays := self._strays()) and time.monotonic() < end:
            for pid in strays:
                _kill(pid)
            time.sleep(0.01)
        self._stack.close()

    def _strays(self) -> list[int]:
        """Processes that work in this cluster's directory."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                here = process.joinpath("cwd").readlink().is_relative_to(self.directory)
            except OSError:
                continue
            if here and not _is_zombie(process):
                found.append(int(process.name))
        return found

    # ---- Faults ---------------------------------------------------------------------

    def take_down(self, name: str, how: str) -> None:
        """End a daemon ("kill": by SIGKILL, "stop": by SIGTERM); it stays down."""
        self._down.add(name)
        daemon = self.daemon(name)
        if not daemon.alive:
            return
        if how == "kill":
            daemon.kill()
        else:
            # Before it is up it knows of no signals.
            peaceful = {0} if _is_up(daemon) else {0, -signal.SIGTERM}
            code = daemon.stop()
            assert code in peaceful, f"{name} ended with {code} when asked to"

    def bring_up(self, name: str) -> None:
        """Start a daemon again; waits for nothing."""
        self._down.discard(name)
        self.daemon(name).launch()

    def supervise(self) -> None:
        """Start again what has ended by itself, as an operator's supervisor does."""
        for daemon in self.daemons:
            if daemon.started and not daemon.alive and daemon.name not in self._down:
                self.ended.append(f"{daemon.name} ended by itself")
                daemon.launch()

    # ---- What has come of it -------------------------------------------------------

    def ledger(self) -> list[Entry]:
        return ledger.read(self.plan.ledger)

    def count(self, kind: str, **fields: Any) -> int:
        """How many entries of this kind with these fields are in the ledger."""
        wanted = {"kind": kind, **fields}.items()
        return sum(wanted <= entry.items() for entry in self.ledger())

    def wait_for(self, kind: str, count: int = 1, limit_s: float = REST_S, **fields: Any) -> None:
        self.wait_until(lambda: self.count(kind, **fields) >= count, limit_s)

    def wait_until(self, done: Callable[[], object], limit_s: float = REST_S) -> None:
        assert self._patiently(done, limit_s), f"not within {limit_s:g} s; {self.summary()}"

    def sleep(self, seconds: float) -> None:
        """Let it work."""
        self._patiently(lambda: False, seconds)

    def finished_on(self, host: str, since_s: float) -> bool:
        """Whether a task that was launched there after this moment has finished."""
        entries = [entry for entry in self.ledger() if entry["at"] > since_s]
        there = {e["task"] for e in entries if e["kind"] == "launch" and e["host"] == host}
        return any(
            e["kind"] == "update" and e["state"] == "FINISHED" and e["task"] in there
            for e in entries
        )

    def runs(self) -> list[marks.Run]:
        return marks.read(self.plan.marks)

    def summary(self) -> str:
        """How many tasks there were, and how many statuses of each kind."""
        entries = self.ledger()
        counts = Counter(entry.get("state", entry["kind"]) for entry in entries)
        return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))

    def runs_since(self, moment_s: float) -> list[marks.Run]:
        """Those that began after this moment of `boottime_s`."""
        return [run for run in self.runs() if run.begun > moment_s]

    def view(self) -> View | None:
        return probe.ask(self._operator, self._addresses)

    def finish(self, limit_s: float = DONE_S) -> None:
        """No new work, and wait until the framework has heard of everything's end."""
        self.plan.release.touch()
        self.plan.enough.touch()
        self._patiently(lambda: self.count("enough") and self.count("done"), limit_s)

    def findings(self, limit_s: float = DONE_S) -> list[str]:
        """What is wrong after all has been healed; see `checker`."""
        self.finish(limit_s)
        self._writer.stop()
        view, found = self._at_rest()
        found += self._of_leaders(view)
        plan = self.plan
        # Where there is no room for a sandbox a task fails, and should.
        may_fail = [agent.name for agent in self.agents if agent.disk is not None]
        found += self.ended
        found += checker.findings(
            plan.short, plan.long, self.ledger(), self.runs(), may_fail=may_fail
        )
        return found + [
            f"{daemon.name} failed: {record}"
            for daemon in self.daemons
            for record in internal_errors(daemon.log)
        ]

    def prove(self, limit_s: float = DONE_S) -> None:
        found = self.findings(limit_s)
        assert not found, "\n".join(found)

    def _at_rest(self) -> tuple[View | None, list[str]]:
        """The last view of it, and what is not as it should be."""
        view: View | None = None
        found: list[str] = []

        def at_rest() -> bool:
            nonlocal view
            view = self.view()
            found[:] = ["no master answers"]
            if view is not None:
                found[:] = checker.of_rest(view, len(self.agents))
            return not found

        self._patiently(at_rest, REST_S)
        return view, found

    def terms(self) -> list[leaders.Term]:
        """All leaderships there were, of each master in order."""
        return [term for m in self.masters for term in leaders.terms(_where(m), m.log)]

    def leader(self) -> HostDaemon:
        """The master that began to lead last."""
        last = max(self.terms(), key=lambda term: term.epoch)
        (found,) = [master for master in self.masters if _where(master) == last.master]
        return found

    def offers_between(self, begin_s: float, end_s: float) -> list[Entry]:
        """What the scheduler was offered between two moments of the monotonic clock."""
        # A machine that was suspended since its boot has lost some of that one.
        ahead_s = ledger.boottime_s() - time.monotonic()
        return [
            entry
            for entry in self.ledger()
            if entry["kind"] == "offers" and begin_s < entry["at"] - ahead_s < end_s
        ]

    def writes(self) -> list[leaders.Write]:
        return writer.read(self._writer.file)

    def last_write_s(self, master: HostDaemon) -> float:
        """When the master was asked for the last thing that it took."""
        taken = [
            each.sent_s for each in self.writes() if each.accepted and each.master == _where(master)
        ]
        return max(taken, default=-math.inf)

    def _of_leaders(self, view: View | None) -> list[str]:
        obeyed = {agent.name: leaders.epochs_obeyed(agent.log) for agent in self.agents}
        stored = None if view is None else view.stored
        return leaders.findings(self.terms(), self.writes(), stored, obeyed)

    def _patiently(self, done: Callable[[], object], limit_s: float) -> bool:
        """Wait, but not longer than that; whether it came to be so."""
        end = time.monotonic() + limit_s
        while not (is_done := bool(done())) and time.monotonic() < end:
            self.supervise()
            time.sleep(_LOOK_S)
        return is_done


def _where(master: HostDaemon) -> str:
    return f"{master.host.address}:{MASTER_PORT}"


def _is_up(daemon: Anything) -> bool:
    return isinstance(daemon, ZooKeeperDaemon) or daemon.is_ready


def _is_zombie(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
