"""A batch server and a cluster in memory, for the engine of `mesos-py torque`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from frameworks.torque.backend import BatchError, Daemon
from frameworks.torque.book import Book, read
from frameworks.torque.core.records import Job, Node, Size
from frameworks.torque.engine import Engine
from frameworks.torque.options import TorqueOptions
from mesos_py import TASK_KILLED, TASK_RUNNING, Need, Offer, Resources, TaskInfo, TaskStatus


class FakeBatch:
    """A `Backend` whose nodes are there as soon as the test says so."""

    overhead_mb = 10
    keeps_time = True

    def __init__(self, one_per_agent: bool = False) -> None:
        self.one_per_agent = one_per_agent
        self.queue: list[Job] = []
        self.known: dict[str, Node] = {}
        self.registered: dict[str, Size] = {}
        self.lives: dict[str, float | None] = {}
        self.notes: dict[str, str] = {}
        self.lost: list[str] = []
        self.starts = 0
        self.is_alive = True
        self.broken = ""

    def start(self) -> None:
        self.starts += 1
        self._answer()
        self.is_alive = True

    def alive(self) -> bool:
        return self.is_alive

    def stop(self) -> None:
        self.is_alive = False

    def user_environment(self) -> dict[str, str]:
        return {}

    def _answer(self) -> None:
        if self.broken:
            raise BatchError(self.broken)

    def jobs(self) -> list[Job]:
        self._answer()
        return list(self.queue)

    def nodes(self) -> list[Node]:
        return list(self.known.values())

    def daemon(self, name: str, size: Size, address: str) -> Daemon:
        return Daemon(("daemon", name), {}, None)

    def place(self, number: int, hostname: str) -> str:
        return f"address-{number}"

    def register(self, name: str, size: Size, address: str, life_s: float | None) -> None:
        self.registered[name] = size
        self.lives[name] = life_s

    def drain(self, name: str, why: str) -> None:
        if self.known[name].state == "up":
            self.change(name, state="draining")

    def resume(self, name: str) -> None:
        self.change(name, state="up")

    def lose(self, name: str, why: str) -> None:
        self.lost.append(name)
        del self.known[name]

    def tell(self, job_id: str, why: str) -> None:
        self.notes[job_id] = why
        self.queue = [replace(j, note=why) if j.job_id == job_id else j for j in self.queue]

    # ---- What happens there ------------------------------------------------------

    def submit(self, job_id: str, cpus: int = 1, nodes: int = 1, **more: Any) -> None:
        given = {"mem_mb": 100, **more}
        self.queue.append(Job(job_id, "job", "me", "waiting", nodes=nodes, cpus=cpus, **given))

    def comes(self, name: str) -> None:
        """Its daemon has reported."""
        size = self.registered[name]
        node = Node(name, "up", size.cpus, size.mem_mb, size.cpus, size.mem_mb, busy=False)
        self.known[name] = node

    def runs(self, job_id: str, name: str) -> None:
        self.queue = [replace(j, state="running") if j.job_id == job_id else j for j in self.queue]
        self.change(name, busy=True, free_cpus=0)

    def ends(self, job_id: str, name: str) -> None:
        self.queue = [job for job in self.queue if job.job_id != job_id]
        self.change(name, busy=False, free_cpus=self.known[name].cpus)

    def change(self, name: str, **changes: object) -> None:
        self.known[name] = replace(self.known[name], **changes)  # type: ignore[arg-type]


class FakeCluster:
    """What the engine calls of a driver."""

    def __init__(self, share: Resources) -> None:
        self.share = share
        self.wants = False
        self.revived = 0
        self.launched: list[TaskInfo] = []
        self.declined: list[str] = []
        self.killed: list[str] = []
        self.asked: list[list[tuple[str, str]]] = []
        self.waiting: list[Need] = []

    def launch_tasks(self, offers: Offer, tasks: Sequence[TaskInfo]) -> None:
        self.launched += tasks
        if not tasks:
            self.declined.append(offers.id.value)

    def decline_offers(self, offers: Iterable[Offer], filters: float | None = None) -> None:
        self.declined += [offer.id.value for offer in offers]

    def kill_task(self, task: str, agent: str | None = None) -> None:
        self.killed.append(task)

    def set_needs_offers(self, needs: bool) -> None:
        self.wants = needs
        self.revived += needs

    def state_waiting(self, waiting: Iterable[Need]) -> None:
        self.waiting = list(waiting)

    def reconcile_tasks(self, tasks: Iterable[tuple[str, str]] = ()) -> None:
        self.asked.append(list(tasks))

    def guaranteed_share(self) -> Resources:
        return self.share


class Scene:
    """An engine, its surroundings, and a clock."""

    def __init__(self, directory: Path, *, one_per_agent: bool = False, **options: object) -> None:
        given = {"idle_s": 10.0, "start_s": 20.0, "max_nodes": 4, **options}
        self.options = TorqueOptions(master="m:1", state_dir=directory, **given)  # type: ignore[arg-type]
        self.batch = FakeBatch(one_per_agent)
        self.now_s = 1000.0
        self.offers = 0
        self.path = directory / "wrapper.json"
        self.share = Resources.of(cpus=100, mem=100_000)
        self.restart()

    def restart(self) -> None:
        """Another wrapper, with what the last one has left."""
        self.cluster = FakeCluster(self.share)
        self.book: Book = read(self.path)
        self.engine = Engine(self.options, self.batch, self.book, self.cluster, self.now_s)
        self.engine.subscribed("framework-1", self.now_s)

    def round(self, after_s: float = 1.0) -> None:
        self.now_s += after_s
        self.engine.round(self.now_s, self.now_s)

    def offer(self, agent: str = "a", cpus: float = 4, mem: float = 4000, most_s: int = 0) -> Offer:
        self.offers += 1
        offer = Offer(hostname=f"{agent}.example.org")
        offer.id.value = f"offer-{self.offers}"
        offer.agent_id.value = agent
        offer.resources.extend(Resources.of(cpus=cpus, mem=mem).to_proto())
        if most_s:
            offer.max_task_duration.nanoseconds = most_s * 10**9
        self.engine.offered([offer], self.now_s)
        return offer

    def status(self, task: str, state: int, reason: int | None = None) -> None:
        status = TaskStatus(state=state, reason=reason)  # type: ignore[arg-type]
        status.task_id.value = task
        self.engine.status(status, self.now_s)

    def node(self, job_id: str = "1", **job: int) -> str:
        """A job, and the node that has come for it; it does not run there yet."""
        self.batch.submit(job_id, **job)
        self.round()
        self.offer()
        self.round()
        name = self.cluster.launched[-1].task_id.value
        self.status(name, TASK_RUNNING)
        self.batch.comes(name)
        self.round()
        return name

    def idle_node(self) -> str:
        """One on which a job has run."""
        name = self.node()
        self.batch.runs("1", name)
        self.round()
        self.batch.ends("1", name)
        self.round()
        return name

    def killed(self, name: str) -> None:
        assert name in self.cluster.killed
        self.status(name, TASK_KILLED)


__all__ = ["FakeBatch", "FakeCluster", "Scene"]
