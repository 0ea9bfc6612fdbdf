"""The parent process of an executor: the link, the workers and what they ask for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Coroutine, Iterator
from typing import Any, Final

import grpc

from frameworks.rdd import wire
from frameworks.rdd.executor import keeping, orders, page, shared
from frameworks.rdd.executor.added import Added
from frameworks.rdd.executor.forks import ForkServer, Gone
from frameworks.rdd.executor.pool import Pool, Worker
from frameworks.rdd.executor.settings import Settings
from frameworks.rdd.executor.uplink import Peers, Uplink
from frameworks.rdd.executor.worker import UNPLUGGED
from frameworks.rdd.messages import (
    AddFiles,
    Beat,
    BlockId,
    CancelTask,
    DefineStage,
    Died,
    Forget,
    FromDriver,
    Hello,
    Killed,
    Leave,
    Outcome,
    Raised,
    RunTask,
    TaskEnded,
)
from frameworks.runtime import exits
from mesos_py import logs, rpc
from mesos_py.errors import MesosPyError, Unavailable

_BEAT_S: Final = 2.0
_STOP_S: Final = 0.5
# Workers that end before they could take a task, in a row: something is wrong here.
_MAX_FALSE_STARTS: Final = 5
_AGAIN_S: Final = 0.2
_ORPHAN_LOOKS: Final = 20
_ORPHAN_LOOK_S: Final = 0.05
_CLOSED: Final = "did the task close files that are not its own?"
_log = logs.get("rdd.executor")


def run(settings: Settings, secret: str, forks: ForkServer) -> int:
    """Until the driver has no use for it, or is gone.  The exit code."""
    logs.setup(os.environ.get("MESOS_PY_RDD_LOG_LEVEL", "warning"))
    code = 1
    try:
        code = asyncio.run(_main(settings, secret, forks))
    finally:
        forks.close()
        if settings.remove:
            shutil.rmtree(settings.place, ignore_errors=True)
            if _is_orphan(settings, wait=code != 0):
                # Whoever else would do it is gone.
                with contextlib.suppress(OSError):
                    settings.place.parent.rmdir()
    return code


def _is_orphan(settings: Settings, *, wait: bool) -> bool:
    """Whether its parent is gone.  wait: a process that ends closes its links some time before."""
    for _ in range(_ORPHAN_LOOKS if wait else 1):
        if os.getppid() != settings.parent_pid:
            return True
        if wait:
            time.sleep(_ORPHAN_LOOK_S)
    return False


async def _main(settings: Settings, secret: str, forks: ForkServer) -> int:
    executor = Executor(settings, secret, forks)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, executor.leave, f"signal {number}", 0)
    return await executor.run()


class _Service(wire.Blocks):
    def __init__(self, secret: str, executor: Executor) -> None:
        super().__init__(secret)
        self._executor = executor

    def find(self, block: BlockId) -> tuple[int, Iterator[bytes | memoryview]] | None:
        return self._executor.find(block)


class Executor:
    def __init__(self, settings: Settings, secret: str, forks: ForkServer) -> None:
        self._settings = settings
        self._forks = forks
        self._peers = Peers(secret)
        self._uplink = Uplink(self._peers.channel(settings.driver), settings.driver, secret)
        self._service = _Service(secret, self)
        self._blocks = keeping.Keeper(settings, self._uplink, self._peers)
        self._broadcasts = shared.Broadcasts(settings.driver, self._uplink, self._peers)
        self._stages: dict[str, orders.Define] = {}
        self._waiting: deque[RunTask] = deque()
        self._files: asyncio.Task[None] | None = None
        self._added = Added(settings.place / "files", settings.driver, self._peers)
        self._false_starts = 0
        self._for_good = False
        self._work: set[asyncio.Task[Any]] = set()
        self._left: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
        self._pool = Pool(forks, self._said, self._ended, self._broken)

    async def run(self) -> int:
        """The exit code."""
        settings = self._settings
        server = rpc.new_server()
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(wire.SERVICE, self._service.handlers()),)
        )
        port = rpc.bind(server, settings.ip, 0)
        await server.start()
        hello = Hello(
            executor_id=settings.executor_id,
            host=settings.host,
            slots=settings.slots,
            block_address=wire.address(settings.ip, port),
            python=sys.version_info[:3],
            agent_id=settings.agent_id,
        )
        parent = self._watch_parent()
        try:
            for _ in range(settings.slots):
                self._pool.add()
            link = self._begin(self._be_linked(hello))
            self._begin(self._beat())
            reason, code = await self._left
            _log.info("executor leaves", reason=reason)
            del link
        finally:
            if parent >= 0:
                asyncio.get_running_loop().remove_reader(parent)
                os.close(parent)
            self._pool.close()
            for task in self._work:
                task.cancel()
            if self._work:
                await asyncio.wait(self._work)
            await self._broadcasts.close()
            await server.stop(_STOP_S)
            await self._peers.close()
            self._blocks.close()
            self._tidy()
        return code

    def _tidy(self) -> None:
        """A sandbox lasts longer than its executor: only outputs that may be read are left."""
        place = self._settings.place
        left = [place / each for each in ("blocks", "files", "scratch")]
        if self._for_good:
            left.append(self._settings.outputs)
        for directory in left:
            shutil.rmtree(directory, ignore_errors=True)

    def leave(self, reason: str, code: int) -> None:
        if not self._left.done():
            self._left.set_result((reason, code))

    def find(self, block: BlockId) -> tuple[int, Iterator[bytes | memoryview]] | None:
        if block[0] == "broadcast":
            return self._broadcasts.find(block)
        return self._blocks.find(block)

    # ---- the driver ------------------------------------------------------------------------

    async def _be_linked(self, hello: Hello) -> None:
        try:
            await self._uplink.run(hello, self._hear)
        except MesosPyError as error:
            self.leave(f"the link to the driver broke: {error.message}", 1)
        except Exception as error:
            # Something of ours; without a link it must not live on.
            _log.exception("driver's message not understood")
            self.leave(f"what the driver has said is not understood: {error!r}", 1)
        else:
            self.leave("the driver has ended the link", 0)

    def _watch_parent(self) -> int:
        """For whoever has started this: ends when that has."""
        pid = self._settings.parent_pid
        if not pid:
            return -1
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self.leave("whoever has started it is gone", 1)
            return -1
        if os.getppid() != pid:
            # Another may have its number by now.
            self.leave("whoever has started it is gone", 1)
        loop = asyncio.get_running_loop()
        loop.add_reader(fd, self.leave, "whoever has started it is gone", 1)
        return fd

    async def _beat(self) -> None:
        beats = 0
        while True:
            await asyncio.sleep(_BEAT_S)
            beats += 1
            store = self._blocks.store
            running = {
                worker.task.task_id: page.records(worker.shared)
                for worker in self._pool.workers.values()
                if worker.task is not None
            }
            self._uplink.send(
                Beat(
                    memory_bytes=store.memory_bytes + self._broadcasts.memory_bytes,
                    disk_bytes=store.disk_bytes,
                    running=running,
                    peak_bytes=store.peak_bytes,
                    beats=beats,
                )
            )

    def _hear(self, message: FromDriver) -> None:
        if isinstance(message, RunTask):
            self._waiting.append(message)
            self._dispatch()
        elif isinstance(message, DefineStage):
            self._stages[message.key] = orders.Define(message.key, message.blob, message.outputs)
        elif isinstance(message, CancelTask):
            self._cancel(message)
        elif isinstance(message, Forget):
            self._forget(message)
        elif isinstance(message, AddFiles):
            self._added.add(message)
            self._fetch_files()
        elif isinstance(message, Leave):
            self._for_good = message.for_good
            self.leave(message.reason, 0)

    def _cancel(self, message: CancelTask) -> None:
        for task in self._waiting:
            if task.task_id == message.task_id:
                self._waiting.remove(task)
                self._tell(task, Killed(message.reason))
                return
        for worker in self._pool.workers.values():
            if worker.task is not None and worker.task.task_id == message.task_id:
                worker.cancelled = worker.cancelled or message.reason
                self._pool.end(worker, message.reason)

    def _forget(self, message: Forget) -> None:
        for key in message.stages:
            self._stages.pop(key, None)
        for number in message.broadcasts:
            self._broadcasts.forget(number)
        self._blocks.forget(message)
        for shuffle in message.shuffles:
            directory = self._settings.outputs / "shuffle" / str(shuffle)
            self._begin(asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True))
        drop = orders.Drop(message.stages, message.broadcasts, message.rdds)
        for worker in self._pool.workers.values():
            worker.stages.difference_update(message.stages)
            self._pool.send(worker, drop)

    def _fetch_files(self) -> None:
        if self._files is None:
            self._files = self._begin(self._add_files())

    async def _add_files(self) -> None:
        """Tasks wait for it.  When it fails those do that wait; the next one has it tried again."""
        try:
            await self._added.fetch()
        except Unavailable as error:
            for task in self._waiting:
                self._tell(task, Raised("Unavailable", error.message, error.message))
            self._waiting.clear()
        self._files = None
        for worker in self._pool.workers.values():
            if worker.ready:
                self._pool.send(worker, self._added.paths)
        self._dispatch()

    # ---- tasks -----------------------------------------------------------------------------

    def _dispatch(self) -> None:
        if self._waiting and not self._added.whole:
            self._fetch_files()
        if self._files is not None:
            return
        idle = deque(worker for worker in self._pool.workers.values() if worker.idle)
        while self._waiting and idle:
            self._start(self._waiting.popleft(), idle.popleft())

    def _start(self, task: RunTask, worker: Worker) -> None:
        stage = self._stages.get(task.stage_key)
        if stage is None:
            # Forgotten meanwhile: nobody wants it any more.
            self._tell(task, Killed("its stage has ended"))
            return
        if task.stage_key not in worker.stages:
            worker.stages.add(task.stage_key)
            self._pool.send(worker, stage)
        worker.task = task
        worker.told = False
        self._pool.send(worker, orders.Run(task))

    def _tell(self, task: RunTask, outcome: Outcome) -> None:
        self._uplink.send(TaskEnded(task.task_id, outcome))

    def _said(self, worker: Worker, record: Any, fds: list[int]) -> None:
        """What a worker has sent, with files."""
        try:
            self._take(worker, record, fds)
        except Exception as error:
            _log.exception("a worker's message is not understood")
            self._pool.kill(worker, f"what it has said is not understood: {error!r}")
        finally:
            for fd in fds:
                os.close(fd)

    def _take(self, worker: Worker, record: Any, fds: list[int]) -> None:
        """Takes those out of `fds` that are kept."""
        if isinstance(record, orders.Done):
            self._done(worker, record, fds)
        elif isinstance(record, orders.Ready):
            worker.ready = True
            self._false_starts = 0
            self._pool.send(worker, self._added.paths)
            self._dispatch()
        elif isinstance(record, orders.Keep):
            self._blocks.keep(worker.number, record, fds)
        elif isinstance(record, orders.Reserve):
            self._begin(self._answer(worker, self._blocks.reserve(worker.number, record)))
        elif isinstance(record, orders.WantBlock):
            self._begin(self._give(worker, self._blocks.get(record.block)))
        elif isinstance(record, orders.WantBroadcast):
            self._begin(self._broadcast(worker, record.id))

    def _done(self, worker: Worker, record: orders.Done, fds: list[int]) -> None:
        task = worker.task
        if task is None or task.task_id != record.task_id or worker.told:
            return
        if fds:
            self._blocks.keep_result(record.task_id, fds)
        worker.told = True
        worker.task = None
        self._blocks.store.release(worker.number)
        self._tell(task, record.outcome)
        if not self._settings.reuse:
            self._pool.end(worker, "spark.python.worker.reuse is false")
        self._dispatch()

    def _ended(self, worker: Worker, gone: Gone) -> None:
        self._blocks.store.release(worker.number)
        if worker.task is not None and not worker.told:
            self._blocks.remove_unfinished(worker.task.task_id)
            self._tell(worker.task, _end_of(worker, gone))
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= _MAX_FALSE_STARTS:
                self.leave(f"workers cannot start: one {exits.exit_worded(gone.code)}", 1)
                return
        # Not at once if something is wrong, which may pass.
        asyncio.get_running_loop().call_later(_AGAIN_S * self._false_starts, self._add)

    def _add(self) -> None:
        if self._left.done():
            return
        try:
            self._pool.add()
        except OSError as error:
            self.leave(f"workers cannot be started: {error}", 1)

    def _broken(self) -> None:
        self.leave("the process that starts workers is gone", 1)

    # ---- what workers ask for --------------------------------------------------------------

    async def _answer(self, worker: Worker, work: Coroutine[Any, Any, Any]) -> None:
        try:
            answer = orders.Answer(await work)
        except Exception as error:
            answer = orders.Answer(None, Unavailable(str(error)))
        if worker.number not in self._pool.workers:
            # It has died meanwhile, and what it had reserved is reserved for nobody.
            self._blocks.store.release(worker.number)
        self._pool.send(worker, answer)

    async def _give(self, worker: Worker, work: Coroutine[Any, Any, int]) -> None:
        """work: gives a file, or -1; the file is closed here."""
        fd = -1
        try:
            fd = await work
        except Exception as error:
            _log.warning("a block cannot be had", reason=str(error))
        if fd < 0:
            self._pool.send(worker, orders.Answer(False))
            return
        try:
            self._pool.send(worker, orders.Answer(True), (fd,))
        finally:
            os.close(fd)

    async def _broadcast(self, worker: Worker, number: int) -> None:
        try:
            fd = await self._broadcasts.get(number)
        except (Exception, asyncio.CancelledError) as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            reason = str(error) or "it was destroyed"
            answer = orders.Answer(None, Unavailable(f"broadcast {number}: {reason}"))
            self._pool.send(worker, answer)
            return
        self._pool.send(worker, orders.Answer(True), (fd,))

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("executor's own work failed", reason=repr(error))


def _end_of(worker: Worker, gone: Gone) -> Outcome:
    if worker.cancelled:
        return Killed(worker.cancelled)
    if worker.leaving:
        return Died(f"its worker was ended: {worker.leaving}")
    if gone.code == UNPLUGGED:
        return Died(f"its worker process {gone.pid} lost its connection: {_CLOSED}")
    how = exits.exit_worded(gone.code)
    return Died(f"its worker process {gone.pid} {how}{exits.memory_hint(gone.code)}")
