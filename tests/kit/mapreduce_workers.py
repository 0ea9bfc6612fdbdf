"""A pretended cluster whose workers pretend to run attempts: for tests of the tracker.

A map of a job with reduces keeps one empty segment per reduce; whatever else writes its part
file, for real: a line with the attempt's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.messages import Forget, Forgotten
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.records import encode, to_worker
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone, Segment, Work
from mesos_py import (
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_RUNNING,
    Resources,
    TaskInfo,
    TaskStatus,
)
from mesos_py.testing.builders import make_status
from mesos_py.testing.fake_cluster import FakeCluster, States, _Task
from mesos_py.testing.fake_master import update_event
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import AgentID, InverseOffer, OfferID

Result = MapDone | ReduceDone | Failure

JOB = "job_20261128141500_0001"


def job(
    tmp_path: Path, job_id: str = JOB, maps: int = 2, reduces: int = 1, **more: object
) -> JobSpec:
    """With so many files to read."""
    source = tmp_path / f"in-{job_id}"
    source.mkdir(exist_ok=True)
    for number in range(maps):
        (source / f"{number}.txt").write_text(f"{number}\n")
    spec = JobSpec(
        job_id=job_id,
        name="a job",
        user="somebody",
        inputs=(str(source),),
        output=str(tmp_path / f"out-{job_id}"),
        mapper=Program(command="cat"),
        reducer=Program(command="cat") if reduces else None,
        reduces=reduces,
    )
    return msgspec.structs.replace(spec, **more)


def written(spec: JobSpec) -> dict[str, str]:
    """The output: names, and what is in the files."""
    files = (one for one in Path(spec.output).rglob("*") if one.is_file())
    return {str(one.relative_to(spec.output)): one.read_text() for one in files}


class FakeWorkers(FakeCluster):
    """does: what an attempt comes to; None: it runs until it is killed.  By default it succeeds.

    works: of attempts that were launched.  forgotten: jobs, as workers were told.
    """

    def __init__(
        self,
        agents: Mapping[str, Resources],
        does: Callable[[Work], Result | None] | None = None,
    ) -> None:
        super().__init__(agents, self._states)
        self._does = does or succeed
        self._freed: set[str] = set()
        self._results: dict[str, Result] = {}
        self.works: dict[str, Work] = {}
        self.commands: list[TaskInfo] = []
        self.forgotten: list[tuple[str, str, str]] = []
        self.answers_forget = True

    def lose_worker(self, agent_id: str, worker_id: str, why: str) -> None:
        """It ends: its agent says so, and then what became of its tasks."""
        self.failure(agent_id, worker_id, 9)
        for task_id, task in list(self._tasks.items()):
            if task.info.executor.executor_id.value == worker_id:
                del self._tasks[task_id]
                reason = TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
                status = make_status(
                    task_id, TASK_FAILED, agent_id=agent_id, message=why, reason=reason
                )
                self.update(status)

    def ask_back(self, agent_id: str, resources: Resources) -> None:
        offer = InverseOffer(id=OfferID(value="asked"), agent_id=AgentID(value=agent_id))
        offer.resources.extend(resources.to_proto())
        offer.revocation.deadline.nanoseconds = 2**62
        self.inverse_offer(offer)

    def _states(self, info: TaskInfo) -> States:
        if info.HasField("command"):
            self.commands.append(info)
            return [TASK_RUNNING, TASK_FINISHED]
        work = msgspec.json.decode(info.data, type=Work)
        self.works[work.attempt] = work
        result = self._does(work)
        if result is None:
            return [TASK_RUNNING]
        self._results[work.attempt] = result
        return [TASK_RUNNING, TASK_FAILED if isinstance(result, Failure) else TASK_FINISHED]

    def _report(self, task: _Task) -> None:
        if task.status is not None or not task.states:
            return
        task_id, state = task.info.task_id.value, task.states.pop(0)
        task.past.append(state)
        result = self._results.get(task_id) if state in (TASK_FAILED, TASK_FINISHED) else None
        task.status = make_status(task_id, state, agent_id=task.agent_id)
        if result is not None:
            task.status.data = encode(result)
        self.reply(update_event(task.status))
        if state in (TASK_FAILED, TASK_FINISHED, TASK_KILLED):
            agent = self._agents[task.agent_id]
            agent.free = agent.free + task.resources
            agent.refused = False
            if agent.offer_id is not None:
                self._freed.add(task.agent_id)
            self._offer()

    def _decline(self, offer_ids: list[str]) -> None:
        super()._decline(offer_ids)
        self._offer_freed()

    def _accept(self, accept: Call.Accept) -> None:
        super()._accept(accept)
        self._offer_freed()

    def _offer_freed(self) -> None:
        """What has become free beside an offer was not refused with it."""
        for agent_id in self._freed:
            self._agents[agent_id].refused = False
        self._freed.clear()
        self._offer()

    def _on_call(self, call: Call) -> None:
        super()._on_call(call)
        if call.type == Call.MESSAGE:
            self._message(call.message)

    def _message(self, message: Call.Message) -> None:
        agent_id, worker_id = message.agent_id.value, message.executor_id.value
        said = to_worker(message.data)
        if isinstance(said, Forget):
            self.forgotten.append((agent_id, worker_id, said.job_id))
            if self.answers_forget:
                answer = Event.Message(
                    agent_id=message.agent_id,
                    executor_id=message.executor_id,
                    data=encode(Forgotten(said.job_id)),
                )
                self.reply(Event(type=Event.MESSAGE, message=answer))


def succeed(work: Work) -> Result:
    name = parse_attempt(work.attempt)
    assert name is not None
    if work.out:
        path = Path(work.out.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{work.attempt}\n")
        if name.kind == "map":
            return MapDone(part=path.stat().st_size)
        return ReduceDone(part=path.stat().st_size)
    spec = msgspec.json.decode(
        Path(work.job_url.removeprefix("file://")).read_bytes(), type=JobSpec
    )
    kept = f"/sandboxes/published/{name.job_id}/{work.attempt}.out"
    return MapDone(
        url=f"http://agent/{work.attempt}.out",
        path=kept,
        segments=(Segment(0, 0, 0, 0),) * spec.reduces,
    )


def fail(work: Work) -> Result:
    return Failure(blame="program", message="it raised ValueError")
