"""The driver's engine: a thread that owns the core, between callers and a backend."""

from __future__ import annotations

import functools
import itertools
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from frameworks.rdd import closures
from frameworks.rdd.backend import CHUNK_BYTES, Backend, cut
from frameworks.rdd.core.core import Core
from frameworks.rdd.core.effects import (
    Added,
    Deliver,
    Drop,
    Effect,
    Ended,
    Failure,
    Fetch,
    Send,
    Want,
)
from frameworks.rdd.core.patience import Patience
from frameworks.rdd.core.rules import Rules
from frameworks.rdd.core.stages import Plan
from frameworks.rdd.core.views import View
from frameworks.rdd.files import named_and_sized
from frameworks.rdd.messages import AddFiles, BlockId, FromExecutor, Hello
from frameworks.rdd.nodes import ShuffleDependency
from frameworks.rdd.page import Page
from frameworks.rdd.runner import Job
from frameworks.rdd.running import End, Event, Partition, Run, Sums
from frameworks.runtime.rounds import Rounds
from mesos_py import logs
from mesos_py.errors import Conflict, InvalidValue, Unavailable

if TYPE_CHECKING:
    from frameworks.rdd.bars import Bars

log = logs.get("rdd.engine")

STOPPED: Final = "the context was stopped"
# What is to happen in a year is looked at again meanwhile.
LONGEST_S: Final = 3600.0


class Engine:
    """A Runner on a backend.  `start` before anything else; `stop` ends both.

    page and bars show how things stand, from the start to the end.
    """

    def __init__(
        self,
        backend: Backend,
        rules: Rules,
        *,
        clock: Callable[[], float] = time.monotonic,
        page: Page | None = None,
        bars: Bars | None = None,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._page = page
        self._bars = bars
        self._core = Core(rules, _pack, elastic=backend.elastic)
        self._rounds = Rounds(self._settle, self._failed, "rdd engine")
        self._runs: dict[int, queue.SimpleQueue[Event]] = {}
        self._numbers = itertools.count()
        self._broadcasts = itertools.count()
        self._chunks: dict[int, list[BlockId]] = {}
        self._files = itertools.count()
        # What the user's program has let go of.  Garbage is collected anywhere, also while
        # this very thread holds a lock: nothing but appending is safe there.
        self._garbage: deque[tuple[str, int]] = deque()
        self._watched: set[tuple[str, int]] = set()
        self._stopping = threading.Lock()
        self._started = False
        self._patience = Patience()

    def start(self) -> None:
        """Raises what the backend raises; then nothing is left.  The page that cannot be
        served is told in the log."""
        self._started = True
        self._rounds.start()
        try:
            self._backend.start(Ears(self))
        except BaseException:
            self.stop()
            raise
        if self._page is not None:
            self._page.start(self.view)
        if self._bars is not None:
            self._bars.start(lambda: self._call(self._core.active_stages))

    # ---- Runner ----------------------------------------------------------------------------

    @property
    def page_url(self) -> str | None:
        """See Runner."""
        return self._page.url if self._page is not None else None

    def run(self, job: Job) -> Run:
        """See Runner.  What is to be sent is pickled here, in the caller's thread, now."""
        for split in job.splits:
            if not 0 <= split < job.node.partitions:
                raise InvalidValue("splits", split, f"there are {job.node.partitions} partitions")
        plan = Plan(job.node)
        blob = closures.pack(plan, function=job.function, what=job.action)
        unmade = self._call(lambda: self._core.unmade(plan))
        packed = {
            shuffle.shuffle_id: closures.pack(before, shuffle=shuffle, what=before.node.name)
            for shuffle, before in unmade
        }
        run = Run(next(self._numbers), job, self._cancel, self._abandon, self._ended)
        number, events = run.number, run.events
        try:
            self._call(lambda: self._submit(number, events, job, plan, blob, packed))
        except BaseException:
            # Ctrl-C, say: nobody will hear of it.
            run.close()
            raise
        self._watch(plan, *(before for _, before in unmade))
        return run

    def _ended(self) -> None:
        if self._bars is not None:
            self._bars.job_ended()

    def cancel(self, group: str | None, reason: str) -> None:
        """Returns when no more of their tasks will be begun."""
        self._call(lambda: self._core.cancel_group(group, reason, self._clock()))

    def cancel_tag(self, tag: str, reason: str) -> None:
        """As `cancel`."""
        self._call(lambda: self._core.cancel_tag(tag, reason, self._clock()))

    def unpersist(self, rdd_id: int, *, blocking: bool) -> None:
        """blocking: return when executors were told."""
        self._do(lambda: self._core.unpersist(rdd_id), blocking)

    def broadcast(self, value: Any) -> int:
        """Raises NotPicklable."""
        number = next(self._broadcasts)
        blocks: list[BlockId] = []
        for chunk, content in enumerate(cut(closures.pack_value(value))):
            blocks.append(("broadcast", number, chunk))
            self._backend.blocks.put(blocks[-1], content)
        self._chunks[number] = blocks
        self._call(lambda: self._core.add_broadcast(number))
        return number

    def destroy(self, broadcast_id: int) -> None:
        """Nothing if it was before."""
        self._do(lambda: self._core.destroy_broadcast(broadcast_id), wait=False)
        self._backend.blocks.remove(self._chunks.pop(broadcast_id, ()))

    def release(self, broadcast_id: int) -> None:
        """See Runner."""
        self._garbage.append(("broadcast", broadcast_id))

    def add_file(self, path: str, *, python: bool) -> None:
        """Tasks of later jobs find it; one of the same name takes the other's place."""
        name, size = named_and_sized(path)
        number = next(self._files)
        blocks: list[BlockId] = []
        for chunk, start in enumerate(range(0, size, CHUNK_BYTES)):
            blocks.append(("file", number, chunk))
            length = min(CHUNK_BYTES, size - start)
            self._backend.blocks.put_file(blocks[-1], path, start, length)
        message = AddFiles({name: tuple(blocks)}, (name,) if python else ())
        try:
            self._call(lambda: self._core.add_files(message))
        except BaseException:
            self._backend.blocks.remove(blocks)
            raise

    def stop(self) -> None:
        """See Runner.  A second caller returns when the first one is done."""
        with self._stopping:
            # They ask the engine, and must not wait for what has ended.
            if self._bars is not None:
                self._bars.stop()
            if self._page is not None:
                self._page.stop()
            if self._started:
                self._rounds.post(
                    lambda: self._core.refuse(Failure(STOPPED, cancelled=True), self._clock())
                )
                self._rounds.stop()
                self._rounds.join()
            self._backend.stop()

    def view(self) -> View:
        """How everything stands.  Raises Conflict once stopped."""
        view: View = self._call(lambda: self._core.view(self._clock()))
        return view

    @property
    def slots(self) -> int:
        """How many tasks can run at once now."""
        slots: int = self._call(lambda: self._core.slots)
        return slots

    # ---- From callers ------------------------------------------------------------------------

    def _call(self, work: Callable[[], Any]) -> Any:
        try:
            return self._rounds.call(work)
        except Unavailable:
            raise Conflict(STOPPED) from None

    def _do(self, work: Callable[[], object], wait: bool) -> None:
        """Nothing once it was stopped."""
        if wait:
            try:
                self._rounds.call(work)
            except Unavailable:
                pass
        else:
            self._rounds.post(work)

    def _cancel(self, number: int, reason: str) -> None:
        self._rounds.post(lambda: self._core.cancel(number, reason, self._clock()))

    def _abandon(self, number: int) -> None:
        self._garbage.append(("job", number))

    def _watch(self, *plans: Plan) -> None:
        """Notice when the program has let go of what is persisted and of shuffles."""
        for plan in plans:
            for shuffle_id, shuffle in plan.shuffles.items():
                self._finalize(("shuffle", shuffle_id), shuffle)
            for node in plan.nodes:
                if node.storage:
                    self._finalize(("rdd", node.id), node)

    def _finalize(self, what: tuple[str, int], referent: object) -> None:
        if what not in self._watched:
            self._watched.add(what)
            weakref.finalize(referent, self._garbage.append, what).atexit = False

    # ---- On the engine's thread ----------------------------------------------------------------

    def _submit(
        self,
        number: int,
        events: queue.SimpleQueue[Event],
        job: Job,
        plan: Plan,
        blob: bytes,
        packed: dict[int, bytes],
    ) -> None:
        self._runs[number] = events
        self._core.submit(number, job, plan, blob, packed, self._clock())

    def _settle(self) -> float | None:
        """The end of a round: what came of it is done."""
        self._sweep()
        now_s = self._clock()
        effects, wake_s = self._core.settle(now_s)
        for effect in effects:
            self._carry_out(effect)
        if why := self._patience.due(now_s):
            log.warning("jobs wait for executors", why=why)
        wakes = [each for each in (wake_s, self._patience.wake_s) if each is not None]
        return min(max(0.0, min(wakes) - now_s), LONGEST_S) if wakes else None

    def _sweep(self) -> None:
        while self._garbage:
            kind, number = self._garbage.popleft()
            self._watched.discard((kind, number))
            if kind == "job":
                self._core.cancel(number, "nobody waits for it", self._clock())
            elif kind == "rdd":
                self._core.unpersist(number)
            elif kind == "broadcast":
                self._core.destroy_broadcast(number)
                self._backend.blocks.remove(self._chunks.pop(number, ()))
            else:
                self._core.forget_shuffle(number)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._backend.send(effect.executor_id, effect.message)
        elif isinstance(effect, Deliver):
            self._tell(effect.job, Partition(effect.index, effect.result))
        elif isinstance(effect, Added):
            self._tell(effect.job, Sums(effect.accumulators))
        elif isinstance(effect, Ended):
            self._tell(effect.job, End(effect.failure))
            self._runs.pop(effect.job, None)
        elif isinstance(effect, Fetch):
            fetched = self._backend.blocks.fetch(effect.address, effect.block)
            fetched.add_done_callback(functools.partial(self._fetched, effect.task_id))
        elif isinstance(effect, Want):
            self._backend.want(effect.slots)
        elif isinstance(effect, Drop):
            self._backend.drop(effect.executor_id, effect.reason)

    def _tell(self, number: int, event: Event) -> None:
        events = self._runs.get(number)
        if events is not None:
            events.put(event)

    def _fetched(self, task_id: int, fetched: Future[bytes]) -> None:
        """On any thread."""
        if fetched.cancelled() or (error := fetched.exception()) is not None:
            reason = "cancelled" if fetched.cancelled() else str(error)
            log.warning("result cannot be fetched", task_id=task_id, error=reason)
            result = None
        else:
            result = fetched.result()
        self._rounds.post(lambda: self._core.fetched(task_id, result, self._clock()))

    def _failed(self, error: BaseException) -> None:
        """The engine's thread has ended, by a bug: nobody is to wait for ever."""
        failure = Failure(f"the engine has failed: {type(error).__name__}: {error}")
        for events in self._runs.values():
            events.put(End(failure))
        self._runs.clear()

    # ---- What the backend tells -------------------------------------------------------------

    def heard(self, work: Callable[[float], object]) -> None:
        """Have it done with the time, on the engine's thread."""
        self._rounds.post(lambda: work(self._clock()))

    def joined(self, hello: Hello, now_s: float) -> None:
        """On the engine's thread."""
        mismatch = closures.python_mismatch(hello.python)
        if not mismatch:
            log.info(
                "executor joined", executor=hello.executor_id, host=hello.host, slots=hello.slots
            )
            self._core.executor_joined(hello, now_s)
            return
        log.error(
            "executor of another python", executor=hello.executor_id, host=hello.host, why=mismatch
        )
        self._backend.drop(hello.executor_id, mismatch)
        if not self._core.slots:
            self._core.refuse(Failure(f"executor on {hello.host}: {mismatch}"), now_s)

    def waits_for(self, text: str, now_s: float) -> None:
        """On the engine's thread."""
        self._patience.waits_for(text, now_s)

    @property
    def waiting(self) -> str:
        """Why no executor comes at the moment; "" if none is waited for."""
        return self._patience.text

    @property
    def core(self) -> Core:
        """For its own thread."""
        return self._core


class Ears:
    """The engine as a Listener."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def executor_joined(self, hello: Hello) -> None:
        """See Listener, as for the others."""
        self._engine.heard(lambda now_s: self._engine.joined(hello, now_s))

    def heard(self, executor_id: str, message: FromExecutor) -> None:
        self._engine.heard(lambda now_s: self._engine.core.heard(executor_id, message, now_s))

    def executor_lost(
        self, executor_id: str, reason: str, *, outputs_lost: bool, blame: bool
    ) -> None:
        def lose(now_s: float) -> None:
            log.warning("executor lost", executor=executor_id, reason=reason)
            self._engine.core.executor_lost(
                executor_id, reason, now_s, outputs_lost=outputs_lost, blame=blame
            )

        self._engine.heard(lose)

    def executor_leaving(self, executor_id: str, reason: str) -> None:
        log.info("executor leaves", executor=executor_id, reason=reason)
        self._engine.heard(lambda _: self._engine.core.executor_leaving(executor_id))

    def agent_lost(self, agent_id: str, reason: str) -> None:
        log.warning("agent lost", agent=agent_id, reason=reason)
        self._engine.heard(lambda now_s: self._engine.core.agent_lost(agent_id, now_s))

    def refused(self, text: str) -> None:
        self._engine.heard(lambda now_s: self._engine.core.refuse(Failure(text), now_s))

    def waiting(self, text: str) -> None:
        self._engine.heard(lambda now_s: self._engine.waits_for(text, now_s))


def _pack(plan: Plan, shuffle: ShuffleDependency | None, function: Any) -> bytes:
    return closures.pack(plan, shuffle=shuffle, function=function)


__all__ = ["Ears", "Engine"]
