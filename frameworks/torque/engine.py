"""The rounds of the wrapper: look at the queue and at the nodes, give back, start.

All that it needs to know it reads anew in each round: of jobs and nodes from the batch server,
of tasks from the master.  So whatever it misses, or does twice, the next round puts right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from frameworks.common.endings import has_ended, is_fault, words_of
from frameworks.common.pool import Backoff, Member, Phase, Pool
from frameworks.torque.backend import Backend, BatchError
from frameworks.torque.book import Book, Entry
from frameworks.torque.cluster import (
    NO_LIMIT,
    Cluster,
    node_name,
    resources_for,
    room_of,
    size_in,
    task_of,
)
from frameworks.torque.core.planning import Limits, Plan, Room, Start, plan
from frameworks.torque.core.records import Job, Node, Size, size_of
from frameworks.torque.core.verdicts import Bounds, never
from frameworks.torque.options import TorqueOptions
from frameworks.torque.views import NodeView, View
from mesos_py import Need, Offer, Resources, TaskStatus, logs

log = logs.get("torque")

# What is offered is kept so long for a job that needs more than one agent.
HOLD_S: Final = 3.0
# What was of no use is not offered again for so long, unless other jobs come.
REFUSE_S: Final = 10.0
# Tasks of which nothing was heard are asked for again after so long.
ASK_AGAIN_S: Final = 15.0
# Without any jobs, as large as this are those of --min-nodes; on a machine of their own, larger.
_LEAST_CPUS: Final = 1
NOTE: Final = "mesos-py: "
_NO_LIMIT: Final = Size(NO_LIMIT, NO_LIMIT)


@dataclass(frozen=True, slots=True)
class Census:
    """What the master says, and offers do not.

    agents: what a node on each could be; None: not known.
    limit: of the role; None: not known, or none.
    findings: why we have what we have, in the master's words.
    """

    agents: Sequence[Size] | None = None
    limit: Size | None = None
    findings: Sequence[str] = ()


class Engine:
    """Of one batch server.  One thread at a time; times are of a clock that does not go back,
    `wall_s` of the calendar's."""

    def __init__(
        self, options: TorqueOptions, backend: Backend, book: Book, cluster: Cluster, now_s: float
    ) -> None:
        self._options = options
        self._backend = backend
        self._book = book
        self._cluster = cluster
        self._pool = Pool(options.rules(backend.one_per_agent))
        self._offers: dict[str, tuple[Offer, float]] = {}
        # Shapes of jobs for which offers were asked for; None: none are wanted.
        self._wanted: frozenset[tuple[int, Size]] | None = None
        self._refused_until_s = 0.0
        self._unheard: set[str] = set()
        self._ask_at_s = now_s
        self._gone_since_s: dict[str, float] = {}
        self._server = Backoff(first_s=1.0, cap_s=60.0)
        self._linked = False
        self.census = Census()
        self.view = View()
        for entry in book.nodes.values():
            member = Member(
                entry.name,
                entry.agent_id,
                entry.hostname,
                self._resources(entry.size),
                Phase.STARTING,
                now_s,
            )
            self._pool.adopt(member)

    @property
    def wants_census(self) -> bool:
        """Whether `census` would help to say why jobs wait."""
        return self._linked and bool(self.view.waiting)

    @property
    def framework_id(self) -> str:
        """Empty before the first subscription."""
        return self._book.framework_id

    # ---- From the master ---------------------------------------------------------

    def subscribed(self, framework_id: str, now_s: float) -> None:
        """Also after a time without a master: what was offered before is dead."""
        self._linked = True
        self._offers.clear()
        self._wanted = None
        self._cluster.set_needs_offers(False)
        if framework_id != self._book.framework_id:
            self._book.framework_id = framework_id
            self._book.save()
        self._unheard = {member.task_id for member in self._pool}
        self._ask_at_s = now_s
        # And whatever of ours is not in the book.
        self._cluster.reconcile_tasks()

    def unlinked(self) -> None:
        self._linked = False
        self._offers.clear()

    def offered(self, offers: Iterable[Offer], now_s: float) -> None:
        self._offers.update((offer.id.value, (offer, now_s)) for offer in offers)
        if now_s < self._refused_until_s and any(nodes > 1 for nodes, _ in self._wanted or ()):
            # Together with what was refused it may do; one after the other they never would.
            self._refused_until_s = 0.0
            self._cluster.set_needs_offers(True)

    def rescinded(self, offer_id: str) -> None:
        self._offers.pop(offer_id, None)

    def status(self, status: TaskStatus, now_s: float) -> None:
        """May come twice, late, and of tasks that were forgotten."""
        task_id = status.task_id.value
        self._unheard.discard(task_id)
        if not has_ended(status):
            if task_id not in self._pool:
                log.warning("task of no node is killed", task=task_id)
                self._cluster.kill_task(task_id, status.agent_id.value or None)
            return
        member = self._pool.ended(task_id, now_s, fault=is_fault(status))
        if member is None:
            return
        asked = member.phase == Phase.ENDING
        told = log.info if asked else log.warning
        told("node has ended", node=task_id, host=member.hostname, how=words_of(status))
        self._gone_since_s.pop(task_id, None)
        del self._book.nodes[task_id]
        self._book.save()

    # ---- Rounds --------------------------------------------------------------------

    def round(self, now_s: float, wall_s: float) -> None:
        if not self._have_server(now_s):
            return
        try:
            jobs, nodes = self._backend.jobs(), self._backend.nodes()
            self._look_at(nodes, now_s)
            self._ask_for_unheard(now_s)
            done, nevers = self._plan(jobs, nodes, now_s, wall_s)
            self._give_back(nodes, done, now_s)
            self._start(done.starts, now_s)
            self._tell(jobs, nevers)
            self._state_wants(done, now_s)
            self._show(jobs, nevers, done, now_s)
        except BatchError as error:
            # It may be busy, or on its way down: the next round sees.
            log.warning("batch server does not answer", why=error.message)
            self.view.problem = error.message

    def _have_server(self, now_s: float) -> bool:
        if self._backend.alive():
            return True
        if now_s < self._server.until_s:
            return False
        log.warning("batch server is gone, it is started again")
        # Whatever comes of it: one that ends again at once is not to be started in a loop.
        self._server.failed(now_s)
        try:
            self._backend.start()
        except BatchError as error:
            log.error("batch server cannot be started", why=error.message)
            self.view.problem = error.message
            return False
        return True

    def _look_at(self, nodes: Sequence[Node], now_s: float) -> None:
        """What the server says of nodes, against the tasks that there are."""
        known = {node.name: node for node in nodes}
        for node in nodes:
            if node.name not in self._pool:
                self._remove(node.name)
        for member in self._pool:
            seen = known.get(member.task_id)
            if seen is None or seen.state == "down":
                self._not_there(member, now_s)
                continue
            self._gone_since_s.pop(member.task_id, None)
            if self._pool.serves(member.task_id, now_s):
                log.info("node serves", node=member.task_id, host=member.hostname)
            self._pool.works(member.task_id, seen.busy, now_s)
            if seen.state == "draining":
                self._pool.drain(member.task_id, now_s)
                if not seen.busy:
                    self._end(member, now_s)
            elif member.phase == Phase.DRAINING:
                # A server that was killed may have forgotten it.
                self._backend.drain(member.task_id, "idle")
        for member in self._pool.overdue(now_s):
            log.warning("node has not come in time", node=member.task_id, host=member.hostname)
            if self._pool.give_up(member.task_id, now_s):
                self._cluster.kill_task(member.task_id, member.agent_id)

    def _remove(self, name: str) -> None:
        try:
            self._backend.lose(name, "its task has ended")
        except BatchError as error:
            # A job is on its way out of there: the next round tries again.
            log.debug("node cannot be removed yet", node=name, why=error.message)
        else:
            log.info("node is removed", node=name)

    def _not_there(self, member: Member, now_s: float) -> None:
        """Its task runs, and the server does not hear from it."""
        if member.phase not in (Phase.SERVING, Phase.DRAINING):
            return
        since_s = self._gone_since_s.setdefault(member.task_id, now_s)
        if now_s - since_s >= self._options.start_s:
            log.warning("node does not answer, it is ended", node=member.task_id)
            self._end(member, now_s)

    def _end(self, member: Member, now_s: float) -> None:
        if self._pool.ending(member.task_id, now_s):
            self._cluster.kill_task(member.task_id, member.agent_id)

    def _ask_for_unheard(self, now_s: float) -> None:
        if self._unheard and now_s >= self._ask_at_s:
            self._ask_at_s = now_s + ASK_AGAIN_S
            members = [m for m in self._pool if m.task_id in self._unheard]
            self._cluster.reconcile_tasks([(m.task_id, m.agent_id) for m in members])

    # ---- How many nodes ------------------------------------------------------------------

    def _plan(
        self, jobs: Sequence[Job], nodes: Sequence[Node], now_s: float, wall_s: float
    ) -> tuple[Plan, dict[str, str]]:
        """The plan, and why jobs can never run."""
        waiting = [job for job in jobs if job.state == "waiting"]
        bounds = self._bounds()
        nevers = {job.job_id: why for job in waiting if (why := never(job, bounds))}
        wanted = [job for job in waiting if job.job_id not in nevers]
        lacking = self._options.min_nodes - self._pool.count(Phase.STARTING, Phase.SERVING)
        if lacking > 0:
            wanted.append(self._least(lacking))
        free = self._free(nodes)
        limits = Limits(
            nodes=self._pool.missing(self._options.max_nodes, now_s),
            size=self._left(),
            overhead=Size(0, self._backend.overhead_mb),
            one_per_agent=self._backend.one_per_agent,
        )
        return plan(wanted, free, self._rooms(now_s, wall_s), limits), nevers

    def _least(self, count: int) -> Job:
        mem_mb = self._options.job_mem_mb * _LEAST_CPUS
        # One by one: some are better than none.
        return Job("", "", "", "waiting", cpus=_LEAST_CPUS, mem_mb=mem_mb, count=count)

    def _free(self, nodes: Sequence[Node]) -> dict[str, Size]:
        """What jobs that wait may be given without another node.  Of those that are being drained
        they have nothing, unless they are needed: `_give_back`."""
        known = {node.name: node for node in nodes}
        free = {}
        for member in self._pool:
            node = known.get(member.task_id)
            if member.phase == Phase.STARTING:
                free[member.task_id] = self._book.nodes[member.task_id].size
            elif member.phase == Phase.SERVING and node is not None and node.state == "up":
                free[member.task_id] = Size(node.free_cpus, node.free_mem_mb)
        return free

    def _rooms(self, now_s: float, wall_s: float) -> list[Room]:
        rooms = []
        for offer, _ in self._offers.values():
            room = room_of(offer, wall_s)
            if room is None or not self._pool.allows(room.agent_id, now_s):
                continue
            if room.most_s is None or self._backend.keeps_time:
                rooms.append(room)
        return rooms

    def _share(self) -> Size | None:
        """What nodes may be together; None: there is no bound."""
        if self._options.beyond_guarantee:
            return None
        return size_in(self._cluster.guaranteed_share())

    def _left(self) -> Size:
        share = self._share()
        if share is None:
            return _NO_LIMIT
        taken = Size(0, 0)
        for member in self._pool:
            taken += size_in(member.size)
        return share - taken

    def _bounds(self) -> Bounds:
        overhead = Size(0, self._backend.overhead_mb)
        agents = self.census.agents
        share = self._share()
        # Without a subscription nobody knows what is guaranteed.
        return Bounds(
            most_nodes=self._options.max_nodes,
            share=share if share is not None and share.cpus else None,
            limit=self.census.limit,
            agents=None if agents is None else [size - overhead for size in agents],
            one_per_agent=self._backend.one_per_agent,
        )

    # ---- Giving back and starting -----------------------------------------------------------

    def _give_back(self, nodes: Sequence[Node], done: Plan, now_s: float) -> None:
        idle = {node.name for node in nodes if node.state == "up" and not node.busy}
        draining = {node.name for node in nodes if node.state == "draining"}
        for member in self._pool.unneeded(now_s):
            if member.task_id in idle and member.task_id not in done.used:
                self._backend.drain(member.task_id, "idle")
                self._pool.drain(member.task_id, now_s)
                log.info("idle node is drained", node=member.task_id, host=member.hostname)
        for member in self._pool:
            # It still has a job, or it would have been ended.
            back = member.phase == Phase.DRAINING and member.task_id in draining
            size = self._book.nodes[member.task_id].size
            if back and any(size.holds(size_of(job)) for job in done.unplaced):
                self._backend.resume(member.task_id)
                self._pool.resume(member.task_id, now_s)

    def _start(self, starts: Sequence[Start], now_s: float) -> None:
        by_offer: dict[str, list[Start]] = {}
        for start in starts:
            by_offer.setdefault(start.room.offer_id, []).append(start)
        for offer_id, there in by_offer.items():
            offer, _ = self._offers.pop(offer_id)
            begun = [self._begin(start, now_s) for start in there]
            entries = [entry for entry in begun if entry is not None]
            daemons = [self._backend.daemon(e.name, e.size, e.address) for e in entries]
            tasks = [
                task_of(entry, offer, daemon, self._backend.overhead_mb)
                for entry, daemon in zip(entries, daemons, strict=True)
            ]
            # Without any this declines it.
            self._cluster.launch_tasks(offer, tasks)

    def _begin(self, start: Start, now_s: float) -> Entry | None:
        """It is in the book before anybody else knows of it.  None if the server does not want
        it."""
        self._book.last += 1
        room, number = start.room, self._book.last
        name = node_name(room.hostname, number)
        address = self._backend.place(number, room.hostname)
        entry = Entry(name, room.agent_id, room.hostname, start.size, address)
        self._book.nodes[name] = entry
        self._book.save()
        try:
            self._backend.register(name, start.size, entry.address, room.most_s)
        except BatchError as error:
            log.warning("node is not accepted", node=name, why=error.message)
            del self._book.nodes[name]
            self._book.save()
            return None
        self._pool.begin(name, room.agent_id, room.hostname, self._resources(start.size), now_s)
        size = start.size
        log.info("node starts", node=name, host=room.hostname, cpus=size.cpus, mem_mb=size.mem_mb)
        return entry

    def _resources(self, size: Size) -> Resources:
        return resources_for(size, self._backend.overhead_mb)

    def _state_wants(self, done: Plan, now_s: float) -> None:
        """Whether offers are wanted, and what becomes of those that were of no use."""
        able = self._pool.missing(self._options.max_nodes, now_s) > 0
        shapes = Counter((job.nodes, size_of(job)) for job in done.unplaced)
        # Sent only if it differs from the last time.
        self._cluster.state_waiting(
            [
                Need("batch job", self._resources(size), count=nodes * times)
                for (nodes, size), times in shapes.items()
            ]
        )
        wanted = frozenset(shapes) if shapes and able else None
        if wanted is None and self._wanted is not None:
            self._cluster.set_needs_offers(False)
        elif wanted is not None and (self._wanted is None or wanted - self._wanted):
            self._cluster.set_needs_offers(True)
        self._wanted = wanted
        kept_s = now_s - HOLD_S if wanted is not None else now_s
        for offer_id, (offer, since_s) in list(self._offers.items()):
            if since_s <= kept_s:
                del self._offers[offer_id]
                self._cluster.decline_offers([offer], REFUSE_S)
                self._refused_until_s = now_s + REFUSE_S

    # ---- Telling -------------------------------------------------------------------------------

    def _tell(self, jobs: Sequence[Job], nevers: dict[str, str]) -> None:
        for job in jobs:
            if job.state not in ("waiting", "held"):
                continue
            why = nevers.get(job.job_id, "")
            note = f"{NOTE}{why}" if why else ""
            if note != job.note and (note or job.note.startswith(NOTE)):
                self._backend.tell(job.job_id, note)
                if why:
                    log.warning("job cannot run", job=job.job_id, user=job.user, why=why)

    def _show(self, jobs: Sequence[Job], nevers: dict[str, str], done: Plan, now_s: float) -> None:
        self.view = View(
            nodes=[
                NodeView(
                    name=member.task_id,
                    host=member.hostname,
                    agent_id=member.agent_id,
                    phase=member.phase.name.lower(),
                    cpus=self._book.nodes[member.task_id].size.cpus,
                    mem_mb=self._book.nodes[member.task_id].size.mem_mb,
                    idle_s=None if member.idle_since_s is None else now_s - member.idle_since_s,
                )
                for member in self._pool
            ],
            running=sum(job.state == "running" for job in jobs),
            waiting=sum(job.count for job in jobs if job.state == "waiting"),
            held=sum(job.count for job in jobs if job.state == "held"),
            never=dict(nevers),
            waits_for=self._waits_for(done, now_s),
        )

    def _waits_for(self, done: Plan, now_s: float) -> str:
        """Why there is no node for jobs that could have one, in words; empty: it is all right."""
        if not done.unplaced:
            return ""
        if not self._linked:
            return "a master: there is no link to one"
        pause_s = self._pool.paused_until_s(now_s) - now_s
        if pause_s > 0:
            return f"nodes have failed one after the other: none is started for {pause_s:.0f} s"
        if len(self._pool) >= self._options.max_nodes:
            return f"there are {len(self._pool)} nodes, as many as --max-nodes allows"
        return self._lacks_share(done.unplaced[0]) or next(
            iter(self.census.findings), "offers that are large enough"
        )

    def _lacks_share(self, job: Job) -> str:
        """Why no node for this job is within what is guaranteed, in words; empty: one is."""
        share, left, role = self._share(), self._left(), self._options.role
        if share == Size(0, 0):
            return (
                f"a guaranteed share: role {role} has none, and nodes are never beyond it "
                "(--beyond-guarantee: what is taken may be taken back, with the jobs there)"
            )
        if left.holds(size_of(job) + Size(0, self._backend.overhead_mb)):
            return ""
        return (
            f"{max(0, left.cpus)} cpus and {max(0, left.mem_mb)} MB of the guaranteed share "
            f"are left for role {role} (--beyond-guarantee takes more)"
        )


__all__ = ["Census", "Engine"]
