"""The operator's side of the master: a synchronous client of `OperatorService`.

::

    with OperatorClient("127.0.0.1:5060") as master:
        for task in master.tasks():
            print(task.task_id.value)

Every method raises MasterUnreachable when no master of the list answers in time,
and otherwise the error that the master raised (errors.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Final, NamedTuple, TypeVar, cast

import grpc

from mesos_py import rpc, volumes
from mesos_py.address import Address, parse_address
from mesos_py.election.parse import parse_where
from mesos_py.election.search import new_search
from mesos_py.errors import (
    MasterUnreachable,
    MesosPyError,
    NotFound,
    NotLeader,
    Unavailable,
)
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2, maintenance_pb2, types_pb2
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1.operator_pb2_grpc import OperatorServiceStub

T = TypeVar("T")

DEFAULT_MASTER: Final = "127.0.0.1:5060"
# A log that is being followed survives a master or agent that is away this long.
FOLLOW_PATIENCE_S: Final = 30.0
_FIRST_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 2.0


class LogPart(NamedTuple):
    """Bytes of a file and where in it they stand."""

    offset: int
    data: bytes


class OperatorClient:
    """The master that leads: among `host:port[,host:port...]`, or by `zk://.../path`.

    `timeout_s` is for each call as a whole, whatever it takes to find the leader.
    Not thread-safe; `close` it, or use it in a `with`.
    """

    def __init__(self, master: str = DEFAULT_MASTER, *, timeout_s: float = 10.0) -> None:
        self._where = parse_where(master)
        self.timeout_s = timeout_s
        self._leader: Address | None = None
        self._channels: dict[Address, grpc.Channel] = {}

    def __enter__(self) -> OperatorClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections.  Idempotent."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    # ---- Questions -------------------------------------------------------

    def version(self) -> types_pb2.VersionInfo:
        return self.execute(pb.Call(type=pb.Call.GET_VERSION)).get_version.version_info

    def agents(self) -> list[pb.Response.GetAgents.Agent]:
        return list(self.execute(pb.Call(type=pb.Call.GET_AGENTS)).get_agents.agents)

    def frameworks(self) -> pb.Response.GetFrameworks:
        """Those that are there and those that are not any more, each with its offers."""
        return self.execute(pb.Call(type=pb.Call.GET_FRAMEWORKS)).get_frameworks

    def tasks(
        self, framework_id: str | None = None, task_id: str | None = None
    ) -> list[types_pb2.Task]:
        """Tasks of all three kinds: active, unreachable and ended ones, in this order."""
        call = pb.Call(type=pb.Call.GET_TASKS)
        if framework_id is not None:
            call.get_tasks.framework_id.value = framework_id
        if task_id is not None:
            call.get_tasks.task_id.value = task_id
        answer = self.execute(call).get_tasks
        return [*answer.tasks, *answer.unreachable_tasks, *answer.completed_tasks]

    def roles(self) -> list[types_pb2.Role]:
        return list(self.execute(pb.Call(type=pb.Call.GET_ROLES)).get_roles.roles)

    def explain(
        self, framework_id: str | None = None, task_id: str | None = None
    ) -> list[pb.Response.Explain.Framework]:
        """Why a framework gets what it gets; without ids: all that are connected."""
        call = pb.Call(type=pb.Call.EXPLAIN, explain=pb.Call.Explain())
        if framework_id is not None:
            call.explain.framework_id.value = framework_id
        if task_id is not None:
            call.explain.task_id.value = task_id
        return list(self.execute(call).explain.frameworks)

    def explain_role(self, role: str) -> pb.Response.Explain.Role:
        """Where a role stands, and what its frameworks wait for.  Raises NotFound."""
        call = pb.Call(type=pb.Call.EXPLAIN, explain=pb.Call.Explain(role=role))
        return self.execute(call).explain.roles[0]

    def usage(
        self,
        framework_id: str | None = None,
        agent_id: str | None = None,
        *,
        agents_s: float | None = None,
    ) -> pb.Response.GetUsage:
        """What containers use: all, or those of one framework or on one agent.

        Agents that do not answer within `agents_s` (None: 2) are named in `missing`.
        """
        call = pb.Call(type=pb.Call.GET_USAGE, get_usage=pb.Call.GetUsage())
        if framework_id is not None:
            call.get_usage.framework_id.value = framework_id
        if agent_id is not None:
            call.get_usage.agent_id.value = agent_id
        if agents_s is not None:
            call.get_usage.timeout_seconds = agents_s
        return self.execute(call).get_usage

    # ---- Orders ----------------------------------------------------------

    def kill_task(self, framework_id: str, task_id: str, *, grace_s: float | None = None) -> None:
        """Ask for the task's end; returns when the master has taken the order."""
        call = pb.Call(type=pb.Call.KILL_TASK)
        call.kill_task.framework_id.value = framework_id
        call.kill_task.task_id.value = task_id
        if grace_s is not None:
            nanoseconds = round(grace_s * 1e9)
            call.kill_task.kill_policy.grace_period.nanoseconds = nanoseconds
        self.execute(call)

    def teardown(self, framework_id: str) -> None:
        """End the framework and all its tasks."""
        call = pb.Call(type=pb.Call.TEARDOWN)
        call.teardown.framework_id.value = framework_id
        self.execute(call)

    def reserve_resources(
        self, agent_id: str, resources: Resources, source: Resources = EMPTY
    ) -> None:
        """Reserve a part of an agent: `resources` as they are to be (`mesos_py.reserved_for`).

        source: how they are reserved now, if that is not the same without the last
            reservation.
        Offers of what it takes are rescinded.  Raises NotFound, InvalidValue, and Conflict
        where there is not as much that nobody uses.
        """
        call = pb.Call(type=pb.Call.RESERVE_RESOURCES)
        call.reserve_resources.agent_id.value = agent_id
        call.reserve_resources.resources.extend(resources.to_proto())
        call.reserve_resources.source.extend(source.to_proto())
        self.execute(call)

    def unreserve_resources(self, agent_id: str, resources: Resources) -> None:
        """Take their last reservation from `resources`, which was made while the agent ran.

        Raises as `reserve_resources`.
        """
        call = pb.Call(type=pb.Call.UNRESERVE_RESOURCES)
        call.unreserve_resources.agent_id.value = agent_id
        call.unreserve_resources.resources.extend(resources.to_proto())
        self.execute(call)

    def create_volumes(self, agent_id: str, volumes: Resources) -> None:
        """Make persistent volumes of reserved disk (`mesos_py.volume_on`).

        Raises as `reserve_resources`.
        """
        call = pb.Call(type=pb.Call.CREATE_VOLUMES)
        call.create_volumes.agent_id.value = agent_id
        call.create_volumes.volumes.extend(volumes.to_proto())
        self.execute(call)

    def destroy_volumes(self, agent_id: str, volumes: Resources) -> None:
        """Erase volumes that nobody uses, as the agent has them; their disk stays reserved.

        Raises as `reserve_resources`.
        """
        call = pb.Call(type=pb.Call.DESTROY_VOLUMES)
        call.destroy_volumes.agent_id.value = agent_id
        call.destroy_volumes.volumes.extend(volumes.to_proto())
        self.execute(call)

    def grow_volume(self, agent_id: str, volume: Resources, addition: Resources) -> None:
        """Make a volume that nobody uses larger by disk that is reserved in the same way.

        Raises as `reserve_resources`.
        """
        asked = volumes.grow_volume(volume, addition).grow_volume
        call = pb.Call(type=pb.Call.GROW_VOLUME)
        call.grow_volume.agent_id.value = agent_id
        call.grow_volume.volume.CopyFrom(asked.volume)
        call.grow_volume.addition.CopyFrom(asked.addition)
        self.execute(call)

    def shrink_volume(self, agent_id: str, volume: Resources, subtract_mb: float) -> None:
        """Make a volume that nobody uses smaller by so much, which is reserved disk then.

        Raises as `reserve_resources`.
        """
        asked = volumes.shrink_volume(volume, subtract_mb).shrink_volume
        call = pb.Call(type=pb.Call.SHRINK_VOLUME)
        call.shrink_volume.agent_id.value = agent_id
        call.shrink_volume.volume.CopyFrom(asked.volume)
        call.shrink_volume.subtract.CopyFrom(asked.subtract)
        self.execute(call)

    def update_role(
        self,
        role: str,
        policy: types_pb2.RolePolicy,
        fields: Iterable[str] = (),
        *,
        force: bool = False,
    ) -> None:
        """Say what the role may have, under the names of `policy` in `fields` (none: all).

        Returns when that is stored and in effect.  `force`: take guarantees that the
        agents of now cannot keep together.
        """
        call = pb.Call(type=pb.Call.UPDATE_ROLES)
        call.update_roles.changes.add(role=role, policy=policy, fields=fields)
        call.update_roles.force = force
        self.execute(call)

    # ---- Agents out of service and back ------------------------------------

    def drain_agent(
        self, agent_id: str, *, max_grace_s: float | None = None, mark_gone: bool = False
    ) -> None:
        """Have all tasks on the agent end; nothing is offered there any more.

        Returns when that is stored; `agents` says when the agent is drained.
        `max_grace_s` replaces a grace of a task that is longer, or that it does not have.
        With `mark_gone` the agent can never come back once it is drained.
        """
        call = pb.Call(type=pb.Call.DRAIN_AGENT)
        call.drain_agent.agent_id.value = agent_id
        call.drain_agent.mark_gone = mark_gone
        if max_grace_s is not None:
            call.drain_agent.max_grace_period.FromNanoseconds(round(max_grace_s * 1e9))
        self.execute(call)

    def deactivate_agent(self, agent_id: str) -> None:
        """Offer nothing of the agent any more; its tasks go on."""
        call = pb.Call(type=pb.Call.DEACTIVATE_AGENT)
        call.deactivate_agent.agent_id.value = agent_id
        self.execute(call)

    def reactivate_agent(self, agent_id: str) -> None:
        """Offer the agent again, which was deactivated or has been drained."""
        call = pb.Call(type=pb.Call.REACTIVATE_AGENT)
        call.reactivate_agent.agent_id.value = agent_id
        self.execute(call)

    def mark_agent_gone(self, agent_id: str) -> None:
        """The agent never comes back: it is told to end, and its tasks count as ended."""
        call = pb.Call(type=pb.Call.MARK_AGENT_GONE)
        call.mark_agent_gone.agent_id.value = agent_id
        self.execute(call)

    # ---- Machines that are to be absent ------------------------------------

    def maintenance_schedule(self) -> maintenance_pb2.Schedule:
        answer = self.execute(pb.Call(type=pb.Call.GET_MAINTENANCE_SCHEDULE))
        return answer.get_maintenance_schedule.schedule

    def maintenance_status(self) -> maintenance_pb2.ClusterStatus:
        """Machines that are to go, with what frameworks say to that, and those that are down."""
        answer = self.execute(pb.Call(type=pb.Call.GET_MAINTENANCE_STATUS))
        return answer.get_maintenance_status.status

    def update_maintenance_schedule(self, schedule: maintenance_pb2.Schedule) -> None:
        """Replace the whole schedule."""
        call = pb.Call(type=pb.Call.UPDATE_MAINTENANCE_SCHEDULE)
        call.update_maintenance_schedule.schedule.CopyFrom(schedule)
        self.execute(call)

    def start_maintenance(self, machines: Iterable[types_pb2.MachineID]) -> None:
        """Take these machines away, which are in the schedule: their tasks are lost."""
        call = pb.Call(type=pb.Call.START_MAINTENANCE)
        call.start_maintenance.machines.extend(machines)
        self.execute(call)

    def stop_maintenance(self, machines: Iterable[types_pb2.MachineID]) -> None:
        """These machines are back; they are in the schedule no more."""
        call = pb.Call(type=pb.Call.STOP_MAINTENANCE)
        call.stop_maintenance.machines.extend(machines)
        self.execute(call)

    # ---- Files -----------------------------------------------------------

    def read_log(
        self,
        framework_id: str,
        task_id: str,
        path: str = "stdout",
        *,
        offset: int = 0,
        length: int = 0,
        follow: bool = False,
    ) -> Iterator[LogPart]:
        """Yield the file as it is and, with `follow`, as it grows until the task ends.

        `offset` below zero counts from the end; `length` 0 is all there is.  When the
        link breaks it goes on where it was; raises Unavailable when that does not
        succeed within `timeout_s`, or FOLLOW_PATIENCE_S with `follow`.
        """
        request = agent_pb2.ReadLogRequest(path=path, offset=offset, length=length, follow=follow)
        request.framework_id.value = framework_id
        request.task_id.value = task_id
        retry = _Retry(FOLLOW_PATIENCE_S if follow else self.timeout_s)
        # Before the first byte a plain reader is better told at once.
        again = follow
        # A master that has just started learns of the task when its agent comes back.
        known = False
        while True:
            try:
                for chunk in self._chunks(request):
                    again = known = True
                    retry.reset()
                    yield LogPart(chunk.offset, chunk.data)
                    if not advance(request, chunk):
                        return
                return
            except (Unavailable, NotLeader, NotFound) as error:
                lost = not isinstance(error, NotFound)
                if not again or not (lost or known) or not retry.pause():
                    raise error
                known = known or lost
                self._leader = None

    def _chunks(self, request: agent_pb2.ReadLogRequest) -> Iterator[agent_pb2.LogChunk]:
        if self._leader is None:
            # Whether a stream is answered shows only with its first chunk, which
            # may take for ever: so who leads is found out beforehand,
            # by a call that only a leader answers.
            self.execute(pb.Call(type=pb.Call.GET_WEIGHTS))
        leader = cast(Address, self._leader)
        stream = self._stub(leader).ReadLog(request)
        try:
            yield from stream
        except grpc.RpcError as error:
            raise _converted(error, leader) from error
        finally:
            stream.cancel()

    # ---- Finding the leader ----------------------------------------------

    def execute(self, call: pb.Call) -> pb.Response:
        """One call in the form of the wire, for what has no method here."""
        return self._at_leader(lambda stub, within_s: stub.Execute(call, timeout=within_s))

    def _at_leader(self, use: Callable[[OperatorServiceStub, float], T]) -> T:
        deadline = time.monotonic() + self.timeout_s
        search = new_search(self._where, self._leader, deadline)
        failures: list[str] = []
        while (address := search.next()) is not None:
            # One address that swallows packets must leave time for the others.
            share_s = max(deadline - time.monotonic(), 0.0) / (search.others + 1)
            try:
                answer = use(self._stub(address), share_s)
            except grpc.RpcError as raw:
                error = _converted(raw, address)
                if not isinstance(error, (MasterUnreachable, NotLeader)):
                    raise error from raw
                failures.append(str(error))
                if isinstance(error, NotLeader) and error.leader:
                    search.redirected(parse_address(error.leader))
            else:
                self._leader = address
                return answer
        self._leader = None
        raise MasterUnreachable("; ".join(dict.fromkeys([*failures, *search.failures])))

    def _stub(self, address: Address) -> OperatorServiceStub:
        if address not in self._channels:
            self._channels[address] = grpc.insecure_channel(
                str(address), options=rpc.channel_options()
            )
        return OperatorServiceStub(self._channels[address])


class _Retry:
    """Growing pauses, for at most `patience_s` since the last sign of life."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self.reset()

    def reset(self) -> None:
        self._until = time.monotonic() + self._patience_s
        self._pause_s = _FIRST_PAUSE_S

    def pause(self) -> bool:
        """Wait a little; False, at once, if there is no more time."""
        if time.monotonic() + self._pause_s > self._until:
            return False
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _MAX_PAUSE_S)
        return True


def advance(request: agent_pb2.ReadLogRequest, chunk: agent_pb2.LogChunk) -> bool:
    """Make `request` ask for what follows `chunk`; False if that was all it wanted."""
    request.offset = chunk.offset + len(chunk.data)
    if request.length:
        request.length -= min(len(chunk.data), request.length)
        return request.length > 0
    return True


def _converted(raw: grpc.RpcError, peer: Address) -> MesosPyError:
    # The synchronous errors have the methods of the asynchronous ones.
    call = cast(grpc.aio.AioRpcError, raw)
    error = rpc.from_rpc_error(call, peer)
    told = any(key == rpc.ERROR_KEY for key, _ in call.trailing_metadata() or ())
    if isinstance(error, Unavailable) and not told:
        return MasterUnreachable(error.message, **error.fields)
    return error
