"""A master that only operators can see: answers from lists that a test fills."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import grpc

from mesos_py import rpc
from mesos_py.errors import MesosPyError, NotFound
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2, maintenance_pb2, types_pb2
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1.operator_pb2_grpc import (
    OperatorServiceServicer,
    add_OperatorServiceServicer_to_server,
)
from mesos_py.v1.types_pb2 import TASK_RUNNING, TaskState, TaskStatus

CLUSTER = "11111111-2222-3333-4444-555555555555"


def agent(number: int, **fields) -> pb.Response.GetAgents.Agent:
    return pb.Response.GetAgents.Agent(
        agent_info=types_pb2.AgentInfo(
            id=types_pb2.AgentID(value=f"{CLUSTER}-S{number}"),
            hostname=f"host{number}",
            ip="127.0.0.1",
            port=6000 + number,
        ),
        **{
            "active": True,
            "state": "connected",
            "version": "0.1.0",
            "registered_time": types_pb2.TimeInfo(nanoseconds=1_500_000_000),
            "total_resources": Resources.parse("cpus:4;mem:1024;ports:[1000-1009]").to_proto(),
            "allocated_resources": Resources.parse("cpus:1.5;ports:[1000-1001]").to_proto(),
            "offered_resources": Resources.parse("cpus:1").to_proto(),
            **fields,
        },
    )


def framework(number: int, name: str, **fields) -> pb.Response.GetFrameworks.Framework:
    return pb.Response.GetFrameworks.Framework(
        framework_info=types_pb2.FrameworkInfo(
            id=types_pb2.FrameworkID(value=f"{CLUSTER}-{number:04d}"), name=name, user="ann"
        ),
        **{"active": True, "connected": True, **fields},
    )


def task(task_id: str, *, state=TASK_RUNNING, framework=0, name=None, **fields) -> types_pb2.Task:
    return types_pb2.Task(
        task_id=types_pb2.TaskID(value=task_id),
        name=name or task_id,
        framework_id=types_pb2.FrameworkID(value=f"{CLUSTER}-{framework:04d}"),
        state=state,
        **{
            "agent_id": types_pb2.AgentID(value=f"{CLUSTER}-S0"),
            "resources": Resources.parse("cpus:1;mem:32").to_proto(),
            "statuses": [status(task_id, state)],
            **fields,
        },
    )


def status(task_id: str, state: TaskState.ValueType, **fields) -> TaskStatus:
    return TaskStatus(task_id=types_pb2.TaskID(value=task_id), state=state, **fields)


class FakeMaster(OperatorServiceServicer):
    """Fill its lists; `calls` holds what was asked; `failure` is raised instead of answering."""

    def __init__(self) -> None:
        self.agents: list[pb.Response.GetAgents.Agent] = []
        self.frameworks: list[pb.Response.GetFrameworks.Framework] = []
        self.completed: list[pb.Response.GetFrameworks.Framework] = []
        self.tasks: list[types_pb2.Task] = []
        self.roles: list[types_pb2.Role] = []
        self.explanations: list[pb.Response.Explain.Framework] = []
        self.explained_roles: list[pb.Response.Explain.Role] = []
        self.schedule = maintenance_pb2.Schedule()
        self.maintenance = maintenance_pb2.ClusterStatus()
        self.files: dict[tuple[str, str], bytes] = {}
        self.calls: list[pb.Call] = []
        self.reads: list[agent_pb2.ReadLogRequest] = []
        self.failure: MesosPyError | None = None
        # Called before each chunk of a log with its offset; may raise.
        self.before_chunk: Callable[[int], None] = lambda offset: None
        # Called with each request for a log, before it is looked for.
        self.before_read: Callable[[agent_pb2.ReadLogRequest], None] = lambda request: None
        # Called with each call, before it is answered; may raise.
        self.before_call: Callable[[pb.Call], None] = lambda call: None
        self.chunk = 1 << 16
        self.port = 0

    def Execute(self, request, context):
        self.calls.append(request)
        self.before_call(request)
        if self.failure is not None:
            abort(context, self.failure)
        kind = pb.Call.Type.Name(request.type)
        return getattr(self, f"_{kind.lower()}")(request)

    def ReadLog(self, request, context) -> Iterator[agent_pb2.LogChunk]:
        self.reads.append(agent_pb2.ReadLogRequest.FromString(request.SerializeToString()))
        self.before_read(request)
        data = self.files.get((request.task_id.value, request.path))
        if data is None:
            abort(context, NotFound("file", request.path))
        start = request.offset if request.offset >= 0 else max(0, len(data) + request.offset)
        end = start + request.length if request.length else len(data)
        for at in range(start, min(end, len(data)), self.chunk):
            try:
                self.before_chunk(at)
            except MesosPyError as error:
                abort(context, error)
            yield agent_pb2.LogChunk(offset=at, data=data[at : min(end, at + self.chunk)])

    def _get_health(self, _):
        return pb.Response(get_health=pb.Response.GetHealth(healthy=True))

    def _get_version(self, _):
        info = types_pb2.VersionInfo(version="9.9.9", protocol_version=1, oldest_protocol_version=1)
        return pb.Response(get_version=pb.Response.GetVersion(version_info=info))

    def _get_agents(self, _):
        return pb.Response(get_agents=pb.Response.GetAgents(agents=self.agents))

    def _get_frameworks(self, _):
        answer = pb.Response.GetFrameworks(
            frameworks=self.frameworks, completed_frameworks=self.completed
        )
        return pb.Response(get_frameworks=answer)

    def _get_tasks(self, call):
        wanted = call.get_tasks.framework_id.value
        tasks = [t for t in self.tasks if not wanted or t.framework_id.value == wanted]
        return pb.Response(get_tasks=pb.Response.GetTasks(tasks=tasks))

    def _get_weights(self, _):
        return pb.Response(type=pb.Response.GET_WEIGHTS)

    def _get_roles(self, _):
        return pb.Response(get_roles=pb.Response.GetRoles(roles=self.roles))

    def _update_roles(self, call):
        """Takes what it is told, whole: what a master makes of it is not shown here."""
        for change in call.update_roles.changes:
            self.roles = [each for each in self.roles if each.name != change.role]
            if change.policy.ByteSize():
                role = types_pb2.Role(name=change.role, policy=change.policy)
                role.weight = change.policy.weight or 1.0
                self.roles.append(role)
        return pb.Response(type=pb.Response.DONE)

    def _explain(self, call):
        if call.explain.role:
            named = [each for each in self.explained_roles if each.name == call.explain.role]
            return pb.Response(explain=pb.Response.Explain(roles=named))
        wanted = call.explain.framework_id.value
        found = [e for e in self.explanations if not wanted or e.framework_id.value == wanted]
        return pb.Response(explain=pb.Response.Explain(frameworks=found))

    def _teardown(self, _):
        return pb.Response(type=pb.Response.DONE)

    _kill_task = _teardown
    _create_volumes = _destroy_volumes = _grow_volume = _shrink_volume = _teardown
    _deactivate_agent = _reactivate_agent = _mark_agent_gone = _teardown
    _reserve_resources = _unreserve_resources = _teardown
    _create_volumes = _destroy_volumes = _grow_volume = _shrink_volume = _teardown

    def _get_maintenance_schedule(self, _):
        answer = pb.Response.GetMaintenanceSchedule(schedule=self.schedule)
        return pb.Response(get_maintenance_schedule=answer)

    def _get_maintenance_status(self, _):
        answer = pb.Response.GetMaintenanceStatus(status=self.maintenance)
        return pb.Response(get_maintenance_status=answer)

    def _update_maintenance_schedule(self, call):
        self.schedule = call.update_maintenance_schedule.schedule
        return pb.Response(type=pb.Response.DONE)

    _start_maintenance = _stop_maintenance = _teardown

    def _drain_agent(self, call):
        for each in self.agents:
            if each.agent_info.id == call.drain_agent.agent_id:
                each.drain_info.state = types_pb2.DRAINING
        return pb.Response(type=pb.Response.DONE)


def abort(context, error: MesosPyError) -> NoReturn:
    code, details, metadata = rpc.to_status(error)
    context.set_trailing_metadata(metadata)
    context.abort(code, details)
    raise AssertionError("abort() of gRPC returned")


def serve(master: FakeMaster) -> tuple[grpc.Server, ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(4)
    server = grpc.server(pool, options=rpc.server_options())
    add_OperatorServiceServicer_to_server(master, server)
    master.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, pool
