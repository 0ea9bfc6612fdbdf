"""Executors on a cluster: each is a task, started as there is work and room for it.

The link between driver and executors is their own: while there is no master, what runs goes
on, and only new executors have to wait.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from frameworks.common.pool import PoolRules
from frameworks.rdd import properties
from frameworks.rdd.backend import BlockServer, Listener
from frameworks.rdd.core.fleet import REFUSE_S, Fleet, Orders, Shape, Start
from frameworks.rdd.executor.settings import HASHES, Settings
from frameworks.rdd.link import Link
from frameworks.rdd.messages import FromDriver, FromExecutor, Hello, Leave
from frameworks.runtime.addresses import address_of, own_address
from frameworks.runtime.rounds import Rounds
from mesos_py import (
    AskedBack,
    FrameworkInfo,
    InverseOffer,
    MasterInfo,
    MesosPyError,
    Need,
    Offer,
    Scheduler,
    SchedulerDriver,
    TaskInfo,
    TaskStatus,
    asked_back,
    command_task,
    docker_container,
    logs,
)
from mesos_py.operator import OperatorClient

log = logs.get("rdd.mesos")

# Without a driver the executors end by themselves: nothing is to be taken over.
_FAILOVER_S: Final = 60.0
_CONNECT_S: Final = 30.0
_KILL_GRACE_S: Final = 5.0
# After the end of a link, for the agent to say how the executor has ended.
_HOW_S: Final = 3.0
_LEAVE_S: Final = 10.0
_EXPLAIN_EVERY_S: Final = 10.0
_MB: Final = 2**20
_MODULE: Final = ["-m", "frameworks.rdd.executor"]


def shape_of(conf: Mapping[str, str]) -> Shape:
    """Of the executors.  Raises InvalidValue."""
    slots = properties.EXECUTOR_CORES.of(conf)
    mem_mb = properties.EXECUTOR_MEMORY.of(conf) // _MB
    overhead_mb = properties.EXECUTOR_OVERHEAD.of(conf) // _MB
    return Shape(slots, mem_mb, overhead_mb or max(64 * (slots + 1), mem_mb // 10))


def rules_of(conf: Mapping[str, str]) -> PoolRules:
    """How many executors.  Raises InvalidValue."""
    most = properties.MAX_EXECUTORS.of(conf)
    if cores := properties.MAX_CORES.of(conf):
        most = min(most, max(1, cores // properties.EXECUTOR_CORES.of(conf)))
    return PoolRules(
        least=min(properties.MIN_EXECUTORS.of(conf), most),
        most=most,
        start_s=properties.START_S.of(conf),
        backoff_first_s=1.0,
        backoff_cap_s=60.0,
    )


class _Callbacks(Scheduler):
    """Each returns at once: what it says is taken in by the thread of the rounds."""

    def __init__(self, backend: MesosBackend) -> None:
        self._backend = backend

    def registered(
        self, driver: SchedulerDriver, framework_id: str, master_info: MasterInfo
    ) -> None:
        self.reregistered(driver, master_info)

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        where = master_info.address.ip or master_info.address.hostname
        self._backend.post(lambda: self._backend.subscribed(where))

    def disconnected(self, driver: SchedulerDriver) -> None:
        self._backend.post(self._backend.unlinked)

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        listed = list(offers)
        self._backend.post(lambda: self._backend.fleet.offered(listed))

    def offer_rescinded(self, driver: SchedulerDriver, offer_id: str) -> None:
        self._backend.post(lambda: self._backend.fleet.rescinded(offer_id))

    def inverse_offers(self, driver: SchedulerDriver, offers: Sequence[InverseOffer]) -> None:
        for offer in offers:
            if (asked := asked_back(offer)) is not None:
                driver.accept_inverse_offers([asked.offer_id])
                self._backend.post(functools.partial(self._backend.asked_back, asked))

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        kept = TaskStatus()
        kept.CopyFrom(status)
        self._backend.post(lambda: self._backend.ended(kept))

    def agent_lost(self, driver: SchedulerDriver, agent_id: str) -> None:
        self._backend.listener.agent_lost(agent_id, "its agent is lost")

    def error(self, driver: SchedulerDriver, message: str) -> None:
        self._backend.listener.refused(message)


class MesosBackend:
    """Implements backend.Backend, and link.Ends."""

    elastic = True

    def __init__(self, master: str, conf: Mapping[str, str]) -> None:
        """Starts nothing.  Raises InvalidValue that names the property."""
        self.listener: Listener
        name = properties.APP_NAME.of(conf) or "rdd"
        self._conf = conf
        self._secret = secrets.token_hex(32)
        self._master = master
        self._shape = shape_of(conf)
        self._host = properties.DRIVER_HOST.of(conf)
        self._image = properties.IMAGE.of(conf)
        own = "python3" if self._image else sys.executable
        self._python = properties.PYTHON.of(conf) or own
        self._uris = properties.URIS.of(conf)
        word = "".join(letter if letter.isalnum() else "-" for letter in name)[:40].strip("-")
        # Ids of tasks are of one framework: no other has these.
        self.fleet = Fleet(word or "rdd", self._shape, rules_of(conf))
        self._link = Link(self._secret, self)
        self._rounds = Rounds(self._settle, self._failed, "rdd cluster")
        framework = FrameworkInfo(
            name=name,
            user=properties.USER.of(conf) or getpass.getuser(),
            roles=[properties.ROLE.of(conf)],
            failover_timeout=_FAILOVER_S,
            checkpoint=True,
        )
        self._driver = SchedulerDriver(
            _Callbacks(self), framework, master, connect_timeout_s=_CONNECT_S
        )
        self._env = properties.executor_environment(conf)
        # Executors that have said hello: id -> when the link ended, None while it holds.
        self._joined: dict[str, float | None] = {}
        self._left_why: dict[str, str] = {}
        self._master_host = ""
        self._lacking = 0
        self._told = ""
        self._explained = ""
        self._explain_at_s = 0.0
        self._started = False
        self._stopping = False
        self._none_left = threading.Event()
        self._none_left.set()

    # ---- backend.Backend: any thread -----------------------------------------------------

    @property
    def blocks(self) -> BlockServer:
        return self._link

    def start(self, listener: Listener) -> None:
        self.listener = listener
        host = self._host
        port = properties.DRIVER_PORT.of(self._conf)
        # Without a word of the user's: whatever address leads to the agent that is to call.
        self._link.start(host or "0.0.0.0", host or "127.0.0.1", port)
        self._started = True
        self._rounds.start()
        self._driver.start()

    def send(self, executor_id: str, message: FromDriver) -> None:
        self._link.send(executor_id, message)

    def want(self, slots: int) -> None:
        self.post(lambda: self.fleet.want(slots))

    def drop(self, executor_id: str, reason: str) -> None:
        self._link.send(executor_id, Leave(reason))
        self.post(lambda: self.carry_out(self.fleet.drop(executor_id, time.monotonic())))

    def stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        if self._started:
            for executor_id in list(self._joined):
                self._link.send(executor_id, Leave("the context was stopped", for_good=True))
            # So that they remove what they have; the rest the master ends with the framework.
            self._none_left.wait(_LEAVE_S)
            self._driver.stop()
            with contextlib.suppress(MesosPyError):
                self._driver.join()
            self._rounds.stop()
            self._rounds.join()
        self._link.stop()

    # ---- link.Ends: the link's thread ------------------------------------------------------

    def joined(self, hello: Hello) -> str:
        if self._stopping:
            return "the context was stopped"
        self._none_left.clear()
        self.post(lambda: self._join(hello))
        return ""

    def heard(self, executor_id: str, message: FromExecutor) -> None:
        # Told in the order in which things came, of which its joining was the first.
        self.post(lambda: self.listener.heard(executor_id, message))

    def left(self, executor_id: str, reason: str) -> None:
        self.post(lambda: self._left(executor_id, reason))

    # ---- The thread of the rounds ---------------------------------------------------------------

    def post(self, work: Callable[[], object]) -> None:
        self._rounds.post(work)

    def subscribed(self, master_host: str) -> None:
        self._master_host = master_host
        # What has happened meanwhile.
        self._driver.reconcile_tasks()

    def unlinked(self) -> None:
        self.fleet.unlinked()

    def ended(self, status: TaskStatus) -> None:
        self.carry_out(self.fleet.status(status, time.monotonic()))

    def asked_back(self, asked: AskedBack) -> None:
        self.carry_out(self.fleet.asked_back(asked))

    def carry_out(self, orders: Orders) -> None:
        driver = self._driver
        for gone in orders.gone:
            if gone.executor_id in self._joined:
                self._tell_lost(gone.executor_id, gone.reason, gone.outputs_lost, gone.blame)
        by_offer: dict[str, list[Start]] = {}
        for start in orders.starts:
            by_offer.setdefault(start.offer.id.value, []).append(start)
        for starts in by_offer.values():
            tasks = [self._task(start) for start in starts]
            driver.launch_tasks(starts[0].offer, tasks)
            for task in tasks:
                log.info(
                    "executor starts", executor=task.task_id.value, host=starts[0].offer.hostname
                )
        if orders.declined:
            driver.decline_offers(orders.declined, REFUSE_S)
        for task_id, agent_id in orders.kills:
            driver.kill_task(task_id, agent_id or None)
        for executor_id in orders.leaving:
            self.listener.executor_leaving(executor_id, "its place is wanted back")
        if orders.needs_offers is not None:
            driver.set_needs_offers(orders.needs_offers)
        if orders.given_up:
            self.listener.refused(orders.given_up)

    def _settle(self) -> float | None:
        now_s = time.monotonic()
        if not self._stopping:
            self.carry_out(self.fleet.look(now_s))
        for executor_id, since_s in list(self._joined.items()):
            if since_s is not None and now_s >= since_s + _HOW_S:
                # Its agent has not said how it has ended; perhaps it has not.
                self.carry_out(self.fleet.drop(executor_id, now_s))
                self._tell_lost(executor_id, self._left_why[executor_id], False, False)
        self._say_what_is_waited_for(now_s)
        wakes = [self.fleet.wake_s(now_s)]
        wakes += [since_s + _HOW_S for since_s in self._joined.values() if since_s is not None]
        if self._told:
            wakes.append(now_s + 1)
        return min((at_s - now_s for at_s in wakes if at_s is not None), default=None)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, MesosPyError):
            self.listener.refused(error.message)
        else:
            self.listener.refused(f"internal error: {error!r}")

    def _join(self, hello: Hello) -> None:
        if not self.fleet.joined(hello.executor_id, time.monotonic()):
            self._link.send(hello.executor_id, Leave("it is not wanted any more"))
            if not self._joined:
                self._none_left.set()
            return
        self._joined[hello.executor_id] = None
        log.info("executor has joined", executor=hello.executor_id, host=hello.host)
        self.listener.executor_joined(hello)

    def _left(self, executor_id: str, reason: str) -> None:
        if executor_id not in self._joined:
            return
        if self._stopping:
            del self._joined[executor_id]
            if not self._joined:
                self._none_left.set()
            return
        self._joined[executor_id] = time.monotonic()
        self._left_why[executor_id] = reason

    def _tell_lost(self, executor_id: str, reason: str, outputs_lost: bool, blame: bool) -> None:
        del self._joined[executor_id]
        self._left_why.pop(executor_id, None)
        self._link.cut(executor_id, reason)
        self.listener.executor_lost(executor_id, reason, outputs_lost=outputs_lost, blame=blame)
        if not self._joined:
            self._none_left.set()

    # ---- What is waited for -----------------------------------------------------------------

    def _say_what_is_waited_for(self, now_s: float) -> None:
        lacking = self.fleet.missing_executors
        if lacking != self._lacking:
            self._lacking = lacking
            needs = [Need("executor", self._shape.resources, count=lacking)] if lacking else []
            self._driver.state_waiting(needs)
        text = self.fleet.waiting(now_s)
        if not self.fleet.asks:
            self._explained = ""
        elif now_s >= self._explain_at_s and self._driver.framework_id:
            self._explain_at_s = now_s + _EXPLAIN_EVERY_S
            threading.Thread(target=self._explain, name="rdd explain", daemon=True).start()
        if self._explained and text:
            text = f"{text}; {self._explained}"
        if text != self._told:
            self._told = text
            self.listener.waiting(text)

    def _explain(self) -> None:
        """What keeps us from getting more, in the master's words."""
        try:
            with OperatorClient(self._master, timeout_s=_EXPLAIN_EVERY_S / 2) as master:
                told = master.explain(self._driver.framework_id)
        except MesosPyError as error:
            log.debug("reasons are not known", why=error.message)
            return
        found = next((text for each in told for text in each.findings), "")

        def keep() -> None:
            self._explained = found

        self.post(keep)

    # ---- One executor -----------------------------------------------------------------------

    def _worker_memory_bytes(self, shape: Shape) -> int:
        """What is kept and what all tasks hold is to fit into the executor's memory."""
        beside = shape.mem_mb * _MB * (1 - properties.MEMORY_FRACTION.of(self._conf))
        return min(properties.WORKER_MEMORY.of(self._conf), max(int(beside / shape.slots), _MB))

    def _task(self, start: Start) -> TaskInfo:
        offer, shape = start.offer, self._shape
        settings = Settings(
            executor_id=start.executor_id,
            driver=self._address_for(offer.hostname),
            # In its sandbox, wherever that is.
            directory="",
            slots=shape.slots,
            storage_bytes=int(shape.mem_mb * _MB * properties.MEMORY_FRACTION.of(self._conf)),
            host=offer.hostname,
            ip="",
            agent_id=offer.agent_id.value,
            worker_memory_bytes=self._worker_memory_bytes(shape),
            reuse=properties.WORKER_REUSE.of(self._conf),
        )
        return command_task(
            f"executor {start.executor_id}",
            start.executor_id,
            offer,
            _MODULE if self._image else [self._python, *_MODULE],
            resources=shape.resources,
            env={**HASHES, **self._env, **settings.variables(self._secret)},
            uris=self._uris,
            # What is executed takes the place of what the image would start by itself.
            container=docker_container(self._image, parameters=[("entrypoint", self._python)])
            if self._image
            else None,
            kill_grace_s=_KILL_GRACE_S,
        )

    def _address_for(self, hostname: str) -> str:
        """Of the link, as that host reaches it."""
        if self._host:
            return self._link.address
        port = self._link.address.rpartition(":")[2]
        # A name that means nothing here: as the master is reached.
        towards = address_of(hostname) or self._master_host
        return f"{own_address(towards, properties.DRIVER_HOST.name)}:{port}"


__all__ = ["MesosBackend", "rules_of", "shape_of"]
