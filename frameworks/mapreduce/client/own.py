"""Jobs on a cluster by a tracker in this process, which lives as long as it does."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from frameworks.mapreduce.client import Target
from frameworks.mapreduce.client.base import Client, has_ended
from frameworks.mapreduce.core.views import JobView, TaskView
from frameworks.mapreduce.data import files
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.tracker import Tracker
from mesos_py import logs
from mesos_py.errors import InternalError, MasterUnreachable, MesosPyError, Unavailable
from mesos_py.operator import OperatorClient
from mesos_py.v1.operator_pb2 import Call

T = TypeVar("T")

log = logs.get("mapreduce.client")

CONNECT_S: Final = 10.0
# Until the tracker has read what there was.
ACTIVE_S: Final = 60.0
# So long agents are waited for to be rid of the files of jobs that have ended.
REST_S: Final = 5.0
_ALL: Final = 1_000_000


class OwnClient(Client):
    """target: with a master.  state: URL of the tracker's state.

    temporary: the state is of no use once its jobs have ended, and is removed then.
    """

    def __init__(self, target: Target, state: str, *, temporary: bool) -> None:
        """Raises MasterUnreachable, and what is wrong with the state."""
        self._temporary = temporary
        master = target.master or ""
        options = TrackerOptions(
            master=master,
            state=state,
            role=target.role,
            connect_s=CONNECT_S,
        )
        self._tracker = Tracker(options)
        self.state = self._tracker.store.place.url
        self.resumed_by = f"mesos-py mapreduce resume --state {shlex.quote(self.state)}"
        self._closed = False
        try:
            self._tracker.start()
            if not self._tracker.wait_active(ACTIVE_S):
                raise MasterUnreachable(
                    f"the master {master} has not taken the tracker on within {ACTIVE_S:.0f} s"
                )
        except BaseException:
            self._tracker.stop(end=True)
            self._remove_state()
            raise

    def staging(self, job_id: str) -> str:
        return self._tracker.staging(job_id)

    def submit(self, spec: JobSpec) -> None:
        self._ask(lambda: self._tracker.submit(spec))

    def view(self, job_id: str) -> JobView:
        return self._ask(lambda: self._tracker.view(job_id))

    def views(self) -> list[JobView]:
        return self._ask(self._tracker.views)

    def tasks(self, job_id: str) -> Sequence[TaskView]:
        return self._ask(lambda: self._tracker.tasks(job_id, limit=_ALL))

    def kill(self, job_id: str, why: str) -> None:
        self._ask(lambda: self._tracker.kill(job_id, why))

    def _ask(self, question: Callable[[], T]) -> T:
        """Unavailable is for a tracker that answers again; one that has ended does not."""
        try:
            return question()
        except Unavailable as error:
            try:
                ended = self._tracker.join(0)
            except MesosPyError as cause:
                raise MesosPyError(f"the tracker has ended: {cause.message}") from cause
            except Exception as cause:
                raise InternalError(f"the tracker has ended: {cause!r}") from cause
            if ended:
                raise MesosPyError("the tracker has ended") from error
            raise

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        over = self._is_over()
        self._tracker.stop(end=True, rest_s=REST_S if over else 0.0)
        if over:
            self._remove_state()

    def _is_over(self) -> bool:
        """Whether nothing is left to be gone on with."""
        try:
            return all(has_ended(view) for view in self._tracker.views(0))
        except Exception as error:
            # It has ended by itself: what it has kept may be needed.
            log.warning("not known what is left of jobs", error=repr(error))
            return False

    def _remove_state(self) -> None:
        if not self._temporary:
            return
        fs, path = files.resolve(self.state, {}, "state")
        try:
            if files.is_local(fs):
                shutil.rmtree(path, ignore_errors=True)
            elif fs.exists(path):
                fs.rm(path, recursive=True)
        except Exception as error:
            log.warning("state not removed", state=self.state, error=files.why(error))


def check_master(master: str) -> None:
    """Nothing is begun where there is no cluster.  Raises MasterUnreachable."""
    with OperatorClient(master, timeout_s=CONNECT_S) as operator:
        operator.execute(Call(type=Call.GET_HEALTH))
