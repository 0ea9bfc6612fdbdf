"""Running one task."""

from __future__ import annotations

import os
import pickle
from typing import Final

from frameworks.rdd import accumulators
from frameworks.rdd.errors import FetchFailed
from frameworks.rdd.executor import failures, packets, pickling, shuffle_out
from frameworks.rdd.executor.ending import Cancelled, Gone
from frameworks.rdd.executor.environment import TaskEnvironment
from frameworks.rdd.executor.orders import Define
from frameworks.rdd.executor.state import WorkerState
from frameworks.rdd.messages import Outcome, RunTask, StageWork, Succeeded
from frameworks.rdd.taskcontext import TaskContext

# A result that is bigger is left as a block.
DIRECT_BYTES: Final = 1 << 20


def run(task: RunTask, stage: Define, state: WorkerState) -> tuple[Outcome, int]:
    """How it has ended, and the file of its big result, or -1."""
    try:
        # Each task has its own copy: what functions keep in themselves is not to pass on.
        work: StageWork = pickle.loads(stage.blob)
        payloads = pickle.loads(task.payloads) if task.payloads else {}
    except Exception as error:
        return failures.raised(error, fatal=True), -1
    env = TaskEnvironment(task, payloads, stage.outputs, state)
    context = TaskContext(
        task.stage_id, task.split, task.attempt, task.task_id, dict(task.properties)
    )
    accumulators.begin()
    TaskContext.enter(context)
    try:
        outcome = _compute(work, env)
    except (Cancelled, Gone):
        raise
    except BaseException as error:
        lost = _lost(env, error)
        if lost is not None:
            return failures.lost(lost), -1
        return failures.raised(error), -1
    finally:
        TaskContext.leave()
    lost = _lost(env, None)
    return outcome if lost is None else (failures.lost(lost), -1)


def _lost(env: TaskEnvironment, error: BaseException | None) -> FetchFailed | None:
    """The fetch that has failed: also if user code has caught or wrapped what it raised."""
    if env.lost:
        return env.lost[0]
    return error if isinstance(error, FetchFailed) else None


def _compute(work: StageWork, env: TaskEnvironment) -> tuple[Outcome, int]:
    split = env.task.split
    elements = env.iterate(work.node, split)
    if work.shuffle is not None:
        output = shuffle_out.write(env, work.shuffle, elements)
        return Succeeded(output=output, accumulators=_added()), -1
    value = work.function(split, elements)
    data = pickling.dumps(value)
    added = _added()
    if len(data) <= DIRECT_BYTES:
        return Succeeded(result=data, accumulators=added), -1
    fd = packets.memory_file("result")
    try:
        packets.write_all(fd, data, 0)
    except BaseException:
        os.close(fd)
        raise
    block = ("result", env.task.task_id, 0)
    return Succeeded(result_block=block, result_bytes=len(data), accumulators=added), fd


def _added() -> bytes:
    """Pickled here: its classes are the user's, and whoever passes it on may not have them."""
    added = accumulators.added()
    return pickling.dumps(added) if added else b""
