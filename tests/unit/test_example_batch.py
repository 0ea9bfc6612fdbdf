"""What the example of a batch scheduler counts as its jobs' own failures."""

from typing import Any

import pytest

from examples.batch import Batch, Job
from mesos_py.resources import Resources
from mesos_py.states import TASK_FAILED, TASK_KILLED, TASK_LOST
from mesos_py.testing.builders import make_status
from mesos_py.v1.types_pb2 import TaskStatus

PREEMPTED = TaskStatus.REASON_CONTAINER_PREEMPTED


class Deaf:
    """A driver whose calls do nothing."""

    def __getattr__(self, name):
        return lambda *args, **kw: None


@pytest.mark.parametrize(
    ("state", "reason", "failures"),
    [(TASK_KILLED, PREEMPTED, 0), (TASK_LOST, None, 0), (TASK_FAILED, None, 1)],
)
def test_a_job_whose_room_was_taken_back_has_not_failed(state, reason, failures):
    job = Job(1, "true", task_id="t1")
    batch = Batch([], Resources.of(cpus=1), retries=0, limit_s=None)
    batch.running["t1"] = job
    deaf: Any = Deaf()
    more = {} if reason is None else {"reason": reason}
    batch.status_update(deaf, make_status("t1", state, **more))
    assert job.failures == failures
    assert (job in batch.waiting) is (failures == 0)
