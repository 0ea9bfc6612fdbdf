"""Hierarchies of control groups made of plain files: what a kernel would put into a new
group is put there by `make`, and what it would refuse is refused.

tree = FakeTree(tmp_path)
layout = tree.v1()          # or v2(), or hybrid()
"""

from __future__ import annotations

import errno
from pathlib import Path

from agent.isolation.base import AgentFacts, Container
from agent.isolation.cgroups import layout as places
from agent.isolation.cgroups.files import CgroupError, Group
from agent.isolation.cgroups.layout import Layout
from agent.isolation.cgroups.options import Options
from mesos_py.resources import Resources

NO_LIMIT = "9223372036854771712\n"
EVERYWHERE = {"cgroup.procs": "", "tasks": "", "cgroup.threads": ""}
# Controllers that threads of one process can share unequally.
THREADED = {"cpu", "pids", "cpuset", "perf_event"}
V1 = {
    "cpu": {
        "cpu.shares": "1024\n",
        "cpu.cfs_period_us": "100000\n",
        "cpu.cfs_quota_us": "-1\n",
        "cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
    },
    "cpuacct": {"cpuacct.usage_user": "0\n", "cpuacct.usage_sys": "0\n"},
    "memory": {
        "memory.limit_in_bytes": NO_LIMIT,
        "memory.memsw.limit_in_bytes": NO_LIMIT,
        "memory.soft_limit_in_bytes": NO_LIMIT,
        "memory.usage_in_bytes": "0\n",
        "memory.max_usage_in_bytes": "0\n",
        "memory.failcnt": "0\n",
        "memory.stat": "cache 0\nrss 0\ntotal_cache 0\ntotal_rss 0\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
        "cgroup.event_control": "",
    },
    "pids": {"pids.max": "max\n", "pids.current": "0\n"},
    "cpuset": {"cpuset.cpus": "\n", "cpuset.mems": "\n"},
    "blkio": {
        "blkio.throttle.io_service_bytes_recursive": "Total 0\n",
        "blkio.throttle.io_serviced_recursive": "Total 0\n",
        "blkio.throttle.read_bps_device": "",
        "blkio.throttle.write_bps_device": "",
        "blkio.throttle.read_iops_device": "",
        "blkio.throttle.write_iops_device": "",
    },
    "freezer": {"freezer.state": "THAWED\n"},
}
V2 = {
    "cpu": {"cpu.weight": "100\n", "cpu.max": "max 100000\n"},
    "memory": {
        "memory.max": "max\n",
        "memory.low": "0\n",
        "memory.swap.max": "max\n",
        "memory.current": "0\n",
        "memory.peak": "0\n",
        "memory.stat": "anon 0\nfile 0\n",
        "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    },
    "pids": {"pids.max": "max\n", "pids.current": "0\n"},
    "cpuset": {"cpuset.cpus": "\n", "cpuset.cpus.effective": "0-3\n"},
    "io": {"io.max": "", "io.weight": "default 100\n", "io.stat": ""},
}
V2_ALWAYS = {
    "cgroup.controllers": "",
    "cgroup.subtree_control": "\n",
    "cgroup.kill": "",
    "cgroup.freeze": "0\n",
    "cgroup.events": "populated 0\nfrozen 0\n",
    "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0\n",
}


class FakeTree:
    """Everything beneath `root`: `root/cpu` and so on for v1, `root/unified` for v2."""

    def __init__(self, root: Path, own_v2: str = "/", v2: tuple[str, ...] = tuple(V2)) -> None:
        self.root = root
        self.own_v2 = own_v2
        self.v2_controllers = v2
        # (name, value) of writes, in order; by file: what a write is answered.
        self.writes: list[tuple[str, str]] = []
        self.refuse: dict[str, int] = {}
        self.killed: list[int] = []
        # Processes that no signal ends, or that are on their way out; groups that stay in use
        # for so many tries.
        self.immortal: set[int] = set()
        self.dying: set[int] = set()
        self.busy: dict[str, int] = {}
        tree = self

        class FakeGroup(Group):
            __slots__ = ()

            def make(self) -> None:
                super().make()
                tree.populate(Path(self.path))

            def remove(self) -> bool:
                return tree.remove(Path(self.path))

            def write(self, name: str, value: str | int) -> None:
                tree.write(self, name, str(value), super().write)

        self.group: type[Group] = FakeGroup

    # ---- Mounts -------------------------------------------------------------------------

    def v1(self, options: Options | None = None, agent_id: str = "agent-S0") -> Layout:
        return self.layout(options, agent_id, v1=tuple(V1), v2=False)

    def v2(
        self, options: Options | None = None, agent_id: str = "agent-S0", privileged: bool = True
    ) -> Layout:
        return self.layout(options, agent_id, v1=(), v2=True, privileged=privileged)

    def hybrid(self, v1: tuple[str, ...], agent_id: str = "agent-S0") -> Layout:
        return self.layout(None, agent_id, v1=v1, v2=True)

    def layout(
        self,
        options: Options | None,
        agent_id: str,
        *,
        v1: tuple[str, ...],
        v2: bool,
        privileged: bool = True,
    ) -> Layout:
        mounts, own = [], []
        for number, name in enumerate(v1, start=1):
            top = self.root / name
            if not top.exists():
                top.mkdir()
                self.populate(top)
                if name == "cpuset":
                    (top / "cpuset.cpus").write_text("0-3\n")
                    (top / "cpuset.mems").write_text("0\n")
            mounts.append(f"3{number} 31 0:3{number} / {top} rw - cgroup cgroup rw,{name}")
            own.append(f"{number}:{name}:/somewhere")
        if v2:
            top = self.root / "unified"
            if not top.exists():
                top.mkdir()
                self.populate(top)
            mounts.append(f"50 31 0:50 / {top} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate")
            own.append(f"0::{self.own_v2}")
        return places.find(
            options or Options(),
            agent_id,
            "\n".join(mounts),
            "\n".join(own),
            privileged=privileged,
            group=self.group,
        )

    # ---- What a kernel would do -------------------------------------------------------------

    def populate(self, path: Path) -> None:
        kind = path.relative_to(self.root).parts[0]
        files = dict(EVERYWHERE)
        if kind in V1:
            files |= V1[kind]
        else:
            files |= V2_ALWAYS
            files["cgroup.controllers"] = " ".join(self._available(path)) + "\n"
            for name in self._available(path):
                files |= V2.get(name, {})
        for name, text in files.items():
            if not (path / name).exists():
                (path / name).write_text(text)

    def _available(self, path: Path) -> list[str]:
        above = path.parent / "cgroup.subtree_control"
        return above.read_text().split() if above.exists() else list(self.v2_controllers)

    def remove(self, path: Path) -> bool:
        if not path.exists():
            return True
        if self.busy.get(path.name, 0) > 0:
            self.busy[path.name] -= 1
            return False
        if (path / "cgroup.procs").read_text().strip() or any(p.is_dir() for p in path.iterdir()):
            return False
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
        return True

    def write(self, group: Group, name: str, value: str, plain) -> None:
        self.writes.append((name, value))
        number = self.refuse.get(name)
        if number is not None:
            raise CgroupError("write", group.file(name), number, value)
        if name == "cgroup.subtree_control":
            self._hand_down(group, value)
        elif name == "cgroup.procs":
            self.move(int(value), group)
        elif name == "cgroup.kill":
            for each in group.tree():
                for pid in each.pids():
                    self.kill(pid, 9)
        elif name == "cgroup.freeze":
            plain(name, value)
            Path(group.path, "cgroup.events").write_text(f"populated 1\nfrozen {value}\n")
        else:
            plain(name, f"{value}\n")

    def _hand_down(self, group: Group, value: str) -> None:
        path = Path(group.path)
        if path != self.root / "unified" and group.pids():
            self._vet(group, value)
        if value.removeprefix("+") not in (path / "cgroup.controllers").read_text().split():
            raise CgroupError("write", group.file("cgroup.subtree_control"), errno.ENOENT, value)
        file = path / "cgroup.subtree_control"
        file.write_text(" ".join([*file.read_text().split(), value.removeprefix("+")]) + "\n")
        for below in path.iterdir():
            if below.is_dir():
                (below / "cgroup.controllers").unlink()
                self.populate(below)

    def _vet(self, group: Group, value: str) -> None:
        """As the kernel: processes beside groups are a threaded subtree, if all that is
        switched on can be shared by threads."""
        on = {*group.read("cgroup.subtree_control").split()}
        if value.removeprefix("+") in THREADED:
            below = [each for each in group.tree() if each != group and each.pids()]
            if on <= THREADED and not below:
                return
            number = errno.EBUSY
        else:
            number = errno.EOPNOTSUPP if on & THREADED else errno.EBUSY
        raise CgroupError("write", group.file("cgroup.subtree_control"), number, value)

    def enter(self, pid: int, *files: str) -> None:
        """A process writes 0 into these."""
        for file in files:
            for name in EVERYWHERE:
                path = Path(file).with_name(name)
                path.write_text(path.read_text() + f"{pid}\n")

    def move(self, pid: int, group: Group) -> None:
        hierarchy = self.root / Path(group.path).relative_to(self.root).parts[0]
        self._leave(pid, hierarchy)
        self.enter(pid, group.file("cgroup.procs"))

    def kill(self, pid: int, number: int) -> None:
        self.killed.append(pid)
        if pid not in self.immortal:
            self._leave(pid, self.root)

    def _leave(self, pid: int, below: Path) -> None:
        for file in (file for name in EVERYWHERE for file in below.rglob(name)):
            pids = file.read_text().split()
            if str(pid) in pids:
                file.write_text("".join(f"{each}\n" for each in pids if each != str(pid)))

    # ---- Reading ------------------------------------------------------------------------

    def text(self, *names: str) -> str:
        return self.root.joinpath(*names).read_text().strip()

    def groups(self) -> list[str]:
        """All that are not the tops of hierarchies."""
        found = [path.relative_to(self.root) for path in self.root.rglob("*") if path.is_dir()]
        return sorted(str(path) for path in found if len(path.parts) > 1)


def facts(work_dir: str = "/", agent_id: str = "agent-S0", **flags: object) -> AgentFacts:
    return AgentFacts(agent_id, work_dir, Resources.parse("cpus:4;mem:1024"), flags)


def container(
    container_id: str = "c1", resources: str = "cpus:1;mem:64", **labels: str
) -> Container:
    return Container(
        container_id=container_id,
        framework_id="f",
        executor_id="e",
        sandbox="/",
        uid=0,
        gid=0,
        resources=Resources.parse(resources),
        info=None,
        labels={f"mesos_py.{name}": value for name, value in labels.items()},
    )
