"""OperatorService: what operators and the command line ask."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
import grpc.aio

from master.api import explaining
from master.api.agents import UsageRelay
from master.api.changes import Changes
from master.api.events import Events
from master.api.exporter import gauges
from master.api.files import LogRelay
from master.api.maintenance import MaintenanceCalls
from master.api.roles import RoleCalls
from master.api.shell import Shell
from master.api.snapshots import Answer, Snapshots
from master.core import explain
from master.core.cluster import Cluster
from master.core.records import Framework, Task
from mesos_py import logs, rpc
from mesos_py.errors import Conflict, InvalidValue, MesosPyError, NotFound, Unavailable
from mesos_py.operations import with_statuses
from mesos_py.states import is_terminal, short_name
from mesos_py.v1 import agent_pb2, operator_pb2_grpc
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from mesos_py.verbosity import Verbosity
from mesos_py.version import VERSION

log = logs.get("master.operator")

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class Tenure(NamedTuple):
    """Since when this process runs and leads, and which leadership that is."""

    started_wall_s: float
    elected_wall_s: float
    epoch: int


class OperatorService(operator_pb2_grpc.OperatorServiceServicer):
    """Unary calls; each reads or changes the core in one step, or asks the agents; long
    lists take several (snapshots.py)."""

    def __init__(
        self,
        shell: Shell,
        relay: LogRelay,
        usage: UsageRelay,
        flags: Mapping[str, str],
        tenure: Tenure,
    ) -> None:
        self._shell = shell
        self._relay = relay
        self._usage = usage
        self.flags = flags
        self.tenure = tenure
        self._changes = Changes(shell)
        self.maintenance = MaintenanceCalls(shell, self._changes)
        self.roles = RoleCalls(shell, self._changes)
        self.verbosity = Verbosity()
        self.events = Events(lambda: self.cluster)
        self.snapshots = Snapshots(lambda: self.cluster)

    @property
    def cluster(self) -> Cluster:
        """What this leadership knows."""
        return self._shell.core.cluster

    async def certain(self) -> bool:
        """Wait until it is certain that this master leads; False: it does not any more."""
        return await self._shell.certainty.wait()

    async def answer(self, call: op.Call) -> op.Response:
        """What the call is answered with, by whatever way it came.

        Raises MesosPyError for what is refused; nothing has changed then.
        """
        handler = HANDLERS.get(call.type)
        try:
            if handler is None:
                raise InvalidValue("type", call.type, "is not supported by this master")
            if call.type in CHANGES and not await self._shell.certainty.wait():
                raise Unavailable("the leadership has ended; nothing was done")
            answer = handler(self, call)
            return answer if isinstance(answer, op.Response) else await answer
        finally:
            self._shell.rearm()

    async def Execute(self, request: op.Call, context: Context) -> op.Response:
        try:
            return await self.answer(request)
        except MesosPyError as error:
            await rpc.abort(context, error)
        except Exception as error:
            log.exception("operator call failed", call=request.type)
            await rpc.abort(context, error)

    async def ReadLog(
        self, request: agent_pb2.ReadLogRequest, context: Context
    ) -> AsyncIterator[agent_pb2.LogChunk]:
        try:
            task = self.find_task(request.framework_id.value, request.task_id.value)
            async for chunk in self._relay.read(self.cluster, task, request):
                yield chunk
        except MesosPyError as error:
            await rpc.abort(context, error)

    # ---- Reading -----------------------------------------------------------

    def get_health(self, _: op.Call) -> op.Response:
        return health_response()

    def get_flags(self, _: op.Call) -> op.Response:
        return flags_response(self.flags)

    def get_version(self, _: op.Call) -> op.Response:
        return version_response()

    def get_metrics(self, _: op.Call) -> op.Response:
        numbers = gauges(self.cluster, self._shell.failures)
        numbers.update(self.cluster.counters)
        metrics = [pb.Metric(name=f"master/{n}", value=v) for n, v in sorted(numbers.items())]
        return op.Response(
            type=op.Response.GET_METRICS, get_metrics=op.Response.GetMetrics(metrics=metrics)
        )

    def get_master(self, _: op.Call) -> op.Response:
        answer = op.Response.GetMaster(
            master_info=self.cluster.info,
            start_time=self.tenure.started_wall_s,
            elected_time=self.tenure.elected_wall_s,
            epoch=self.tenure.epoch,
            leading=True,
        )
        return op.Response(type=op.Response.GET_MASTER, get_master=answer)

    def get_logging_level(self, _: op.Call) -> op.Response:
        found = op.Response.GetLoggingLevel(level=self.verbosity.level)
        return op.Response(type=op.Response.GET_LOGGING_LEVEL, get_logging_level=found)

    def set_logging_level(self, call: op.Call) -> op.Response:
        asked = call.set_logging_level
        self.verbosity.set(asked.level, asked.duration.nanoseconds / 1e9)
        return op.Response(type=op.Response.DONE)

    def get_tasks(self, call: op.Call) -> Answer:
        wanted = call.get_tasks
        return self.snapshots.tasks(wanted.framework_id.value, wanted.task_id.value)

    def get_operations(self, _: op.Call) -> op.Response:
        agents = self.cluster.agents.values()
        found = op.Response.GetOperations(
            operations=with_statuses(
                each.message for agent in agents for each in agent.operations.values()
            )
        )
        return op.Response(type=op.Response.GET_OPERATIONS, get_operations=found)

    async def get_usage(self, call: op.Call) -> op.Response:
        answer = await self._usage.usage(self.cluster, call.get_usage)
        return op.Response(type=op.Response.GET_USAGE, get_usage=answer)

    def explain(self, call: op.Call) -> op.Response:
        c, now = self.cluster, self._shell.now()
        answer = op.Response.Explain()
        framework_id, task_id = call.explain.framework_id.value, call.explain.task_id.value
        if task_id:
            framework, task = self._find_waiting(framework_id, task_id)
            entry = explaining.framework_answer(c, framework, now)
            if task is not None:
                entry.findings[:] = explain.task_findings(c, framework, task)
            answer.frameworks.append(entry)
        elif call.explain.role:
            answer.roles.append(explaining.role_answer(c, call.explain.role, now))
        elif framework_id:
            found = self._framework(framework_id)
            answer.frameworks.append(explaining.framework_answer(c, found, now))
        else:
            answer.frameworks.extend(
                explaining.framework_answer(c, each, now) for each in c.frameworks.values()
            )
        log.debug("explained", frameworks=len(answer.frameworks), at=now.wall_s)
        return op.Response(type=op.Response.EXPLAIN, explain=answer)

    # ---- Finding -----------------------------------------------------------

    def _all_frameworks(self) -> list[Framework]:
        return [*self.cluster.frameworks.values(), *self.cluster.completed_frameworks.values()]

    def _framework(self, framework_id: str) -> Framework:
        c = self.cluster
        framework = c.frameworks.get(framework_id) or c.completed_frameworks.get(framework_id)
        if framework is None:
            raise NotFound("framework", framework_id)
        return framework

    def find_task(self, framework_id: str, task_id: str) -> Task:
        """A task by id, the live and newest first.

        Raises NotFound, or Conflict where several frameworks have one with the id.
        """
        if not task_id:
            raise InvalidValue("task_id", task_id, "must not be empty")
        owners = [self._framework(framework_id)] if framework_id else self._all_frameworks()
        found: list[Task] = []
        for framework in owners:
            task = framework.find(task_id)
            ended = (t for t in reversed(framework.completed_tasks) if t.task_id == task_id)
            task = task or next(ended, None)
            if task is not None:
                found.append(task)
        if not found:
            raise NotFound("task", task_id)
        live = [task for task in found if not is_terminal(task.state)]
        chosen = live or found
        if len(chosen) > 1:
            names = ", ".join(sorted(task.framework_id for task in chosen))
            raise Conflict(f"task {task_id!r}: several frameworks have it, name one: {names}")
        return chosen[0]

    def _find_waiting(self, framework_id: str, task_id: str) -> tuple[Framework, Task | None]:
        """A launched task, or a framework that states a need of that name."""
        try:
            task = self.find_task(framework_id, task_id)
        except NotFound:
            owners = [self._framework(framework_id)] if framework_id else self._all_frameworks()
            for framework in owners:
                if any(need.name == task_id for need in framework.requests):
                    return framework, None
            raise
        return self._framework(task.framework_id), task

    # ---- Changing ----------------------------------------------------------

    def teardown(self, call: op.Call) -> op.Response:
        self._shell.core.teardown(call.teardown.framework_id.value, self._shell.now())
        return op.Response(type=op.Response.DONE)

    def kill_task(self, call: op.Call) -> op.Response:
        wanted = call.kill_task
        task = self.find_task(wanted.framework_id.value, wanted.task_id.value)
        if is_terminal(task.state):
            state = short_name(task.state)
            raise Conflict(f"task {task.task_id!r} has ended already: {state}", state=state)
        policy = wanted.kill_policy if wanted.HasField("kill_policy") else None
        if policy is not None and policy.grace_period.nanoseconds < 0:
            given = policy.grace_period.nanoseconds
            raise InvalidValue("kill_policy.grace_period", given, "must not be negative")
        self._shell.core.kill_task(task, policy)
        return op.Response(type=op.Response.DONE)

    def reserve_resources(self, call: op.Call) -> op.Response:
        asked = call.reserve_resources
        operation = pb.Offer.Operation(type=pb.Offer.Operation.RESERVE)
        operation.reserve.resources.extend(asked.resources)
        operation.reserve.source.extend(asked.source)
        return self._operate(asked.agent_id.value, operation)

    def unreserve_resources(self, call: op.Call) -> op.Response:
        asked = call.unreserve_resources
        operation = pb.Offer.Operation(type=pb.Offer.Operation.UNRESERVE)
        operation.unreserve.resources.extend(asked.resources)
        return self._operate(asked.agent_id.value, operation)

    def create_volumes(self, call: op.Call) -> op.Response:
        asked = call.create_volumes
        operation = pb.Offer.Operation(type=pb.Offer.Operation.CREATE)
        operation.create.volumes.extend(asked.volumes)
        return self._operate(asked.agent_id.value, operation)

    def destroy_volumes(self, call: op.Call) -> op.Response:
        asked = call.destroy_volumes
        operation = pb.Offer.Operation(type=pb.Offer.Operation.DESTROY)
        operation.destroy.volumes.extend(asked.volumes)
        return self._operate(asked.agent_id.value, operation)

    def grow_volume(self, call: op.Call) -> op.Response:
        asked = call.grow_volume
        operation = pb.Offer.Operation(type=pb.Offer.Operation.GROW_VOLUME)
        operation.grow_volume.volume.CopyFrom(asked.volume)
        operation.grow_volume.addition.CopyFrom(asked.addition)
        return self._operate(asked.agent_id.value, operation)

    def shrink_volume(self, call: op.Call) -> op.Response:
        asked = call.shrink_volume
        operation = pb.Offer.Operation(type=pb.Offer.Operation.SHRINK_VOLUME)
        operation.shrink_volume.volume.CopyFrom(asked.volume)
        operation.shrink_volume.subtract.CopyFrom(asked.subtract)
        return self._operate(asked.agent_id.value, operation)

    def _operate(self, agent_id: str, operation: pb.Offer.Operation) -> op.Response:
        self._shell.core.operate(agent_id, operation, self._shell.now())
        return op.Response(type=op.Response.DONE)

    def end(self) -> None:
        """The leadership is over: nobody waits any longer.  Idempotent."""
        self._changes.end()
        self.verbosity.end()
        self.events.end()


def health_response() -> op.Response:
    """What GET_HEALTH answers."""
    health = op.Response.GetHealth(healthy=True)
    return op.Response(type=op.Response.GET_HEALTH, get_health=health)


def flags_response(flags: Mapping[str, str]) -> op.Response:
    """What GET_FLAGS answers."""
    found = [pb.Flag(name=name, value=value) for name, value in flags.items()]
    return op.Response(type=op.Response.GET_FLAGS, get_flags=op.Response.GetFlags(flags=found))


def version_response() -> op.Response:
    """What GET_VERSION answers."""
    info = pb.VersionInfo(
        version=VERSION,
        protocol_version=rpc.PROTOCOL_VERSION,
        oldest_protocol_version=rpc.OLDEST_PROTOCOL_VERSION,
    )
    return op.Response(
        type=op.Response.GET_VERSION, get_version=op.Response.GetVersion(version_info=info)
    )


Handler: TypeAlias = Callable[
    [OperatorService, op.Call], op.Response | Coroutine[Any, Any, op.Response]
]

HANDLERS: Final[dict[int, Handler]] = {
    op.Call.GET_HEALTH: OperatorService.get_health,
    op.Call.GET_FLAGS: OperatorService.get_flags,
    op.Call.GET_VERSION: OperatorService.get_version,
    op.Call.GET_METRICS: OperatorService.get_metrics,
    op.Call.GET_LOGGING_LEVEL: OperatorService.get_logging_level,
    op.Call.SET_LOGGING_LEVEL: OperatorService.set_logging_level,
    op.Call.GET_STATE: lambda service, _: service.snapshots.state(),
    op.Call.GET_AGENTS: lambda service, _: service.snapshots.agents(),
    op.Call.GET_FRAMEWORKS: lambda service, _: service.snapshots.frameworks(),
    op.Call.GET_EXECUTORS: lambda service, _: service.snapshots.executors(),
    op.Call.GET_OPERATIONS: OperatorService.get_operations,
    op.Call.GET_TASKS: OperatorService.get_tasks,
    op.Call.GET_ROLES: lambda service, call: service.roles.get_roles(call),
    op.Call.GET_WEIGHTS: lambda service, call: service.roles.get_weights(call),
    op.Call.UPDATE_WEIGHTS: lambda service, call: service.roles.update_weights(call),
    op.Call.GET_QUOTA: lambda service, call: service.roles.get_quota(call),
    op.Call.UPDATE_QUOTA: lambda service, call: service.roles.update_quota(call),
    op.Call.SET_QUOTA: lambda service, call: service.roles.set_quota(call),
    op.Call.REMOVE_QUOTA: lambda service, call: service.roles.remove_quota(call),
    op.Call.UPDATE_ROLES: lambda service, call: service.roles.update_roles(call),
    op.Call.GET_MASTER: OperatorService.get_master,
    op.Call.TEARDOWN: OperatorService.teardown,
    op.Call.KILL_TASK: OperatorService.kill_task,
    op.Call.RESERVE_RESOURCES: OperatorService.reserve_resources,
    op.Call.UNRESERVE_RESOURCES: OperatorService.unreserve_resources,
    op.Call.CREATE_VOLUMES: OperatorService.create_volumes,
    op.Call.DESTROY_VOLUMES: OperatorService.destroy_volumes,
    op.Call.GROW_VOLUME: OperatorService.grow_volume,
    op.Call.SHRINK_VOLUME: OperatorService.shrink_volume,
    op.Call.EXPLAIN: OperatorService.explain,
    op.Call.GET_USAGE: OperatorService.get_usage,
    op.Call.DRAIN_AGENT: lambda service, call: service.maintenance.drain(call),
    op.Call.DEACTIVATE_AGENT: lambda service, call: service.maintenance.deactivate(call),
    op.Call.REACTIVATE_AGENT: lambda service, call: service.maintenance.reactivate(call),
    op.Call.MARK_AGENT_GONE: lambda service, call: service.maintenance.mark_gone(call),
    op.Call.GET_MAINTENANCE_SCHEDULE: lambda service, call: service.maintenance.get_schedule(call),
    op.Call.GET_MAINTENANCE_STATUS: lambda service, call: service.maintenance.get_status(call),
    op.Call.UPDATE_MAINTENANCE_SCHEDULE: lambda service, call: service.maintenance.update_schedule(
        call
    ),
    op.Call.START_MAINTENANCE: lambda service, call: service.maintenance.start(call),
    op.Call.STOP_MAINTENANCE: lambda service, call: service.maintenance.stop(call),
}

# What a master does only while it is certain that it leads.
CHANGES: Final = frozenset(
    {
        op.Call.UPDATE_WEIGHTS,
        op.Call.UPDATE_ROLES,
        op.Call.UPDATE_QUOTA,
        op.Call.SET_QUOTA,
        op.Call.REMOVE_QUOTA,
        op.Call.TEARDOWN,
        op.Call.KILL_TASK,
        op.Call.RESERVE_RESOURCES,
        op.Call.UNRESERVE_RESOURCES,
        op.Call.CREATE_VOLUMES,
        op.Call.DESTROY_VOLUMES,
        op.Call.GROW_VOLUME,
        op.Call.SHRINK_VOLUME,
        op.Call.DRAIN_AGENT,
        op.Call.DEACTIVATE_AGENT,
        op.Call.REACTIVATE_AGENT,
        op.Call.MARK_AGENT_GONE,
        op.Call.UPDATE_MAINTENANCE_SCHEDULE,
        op.Call.START_MAINTENANCE,
        op.Call.STOP_MAINTENANCE,
    }
)
