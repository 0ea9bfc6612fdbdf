"""AgentOperatorService: what operators, and the master for them, ask of one agent.

Over gRPC here; over HTTP by `agent.api.http.operator`, which asks the same `answer`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import grpc.aio

from agent.api.virtual_files import VirtualFiles
from agent.containers.nested import Nested
from agent.core import listing
from agent.core.effects import Signal
from agent.core.nested import Wanted, wanted
from agent.core.state import AgentState
from agent.usage.collector import UsageCollector
from mesos_py import logs, rpc
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.operations import with_statuses
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call, Response
from mesos_py.v1.agent_operator_pb2_grpc import AgentOperatorServiceServicer
from mesos_py.verbosity import Verbosity
from mesos_py.version import VERSION

log = logs.get("agent.operator")

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
_NS: Final = 10**9


class AgentOperator(AgentOperatorServiceServicer):
    """Unary calls: all only read but SET_LOGGING_LEVEL and those that launch and end containers
    within others."""

    def __init__(
        self,
        state: AgentState,
        usage: UsageCollector,
        numbers: Callable[[], Mapping[str, float]],
        flags: Mapping[str, str],
        files: VirtualFiles,
        nested: Nested,
    ) -> None:
        """`numbers`: what GET_METRICS tells; `flags`: what the agent was told, as texts."""
        self._s = state
        self._usage = usage
        self._numbers = numbers
        self._flags = flags
        self._files = files
        self.nested = nested
        self._verbosity = Verbosity()

    async def Execute(self, request: Call, context: Context) -> Response:
        try:
            return await self.answer(request)
        except MesosPyError as error:
            await rpc.abort(context, error)
        except Exception as error:
            log.exception("operator call failed", call=request.type)
            await rpc.abort(context, error)

    async def answer(self, call: Call) -> Response:
        """Raises MesosPyError."""
        handler = _HANDLERS.get(call.type)
        if handler is None:
            name = name_of(Call.Type, call.type)
            raise InvalidValue("type", name, "is not supported by this agent")
        made = handler(self, call)
        return made if isinstance(made, Response) else await made

    def close(self) -> None:
        """What was changed for a time is as before."""
        self._verbosity.end()

    # ---- The agent itself ----------------------------------------------------------

    def get_health(self, _: Call) -> Response:
        return Response(type=Response.GET_HEALTH, get_health=Response.GetHealth(healthy=True))

    def get_flags(self, _: Call) -> Response:
        told = [pb.Flag(name=name, value=self._flags[name]) for name in sorted(self._flags)]
        return Response(type=Response.GET_FLAGS, get_flags=Response.GetFlags(flags=told))

    def get_version(self, _: Call) -> Response:
        version = pb.VersionInfo(
            version=VERSION,
            protocol_version=rpc.PROTOCOL_VERSION,
            oldest_protocol_version=rpc.OLDEST_PROTOCOL_VERSION,
        )
        found = Response.GetVersion(version_info=version)
        return Response(type=Response.GET_VERSION, get_version=found)

    def get_metrics(self, _: Call) -> Response:
        numbers = self._numbers()
        metrics = [pb.Metric(name=name, value=numbers[name]) for name in sorted(numbers)]
        found = Response.GetMetrics(metrics=metrics)
        return Response(type=Response.GET_METRICS, get_metrics=found)

    def get_logging_level(self, _: Call) -> Response:
        found = Response.GetLoggingLevel(level=self._verbosity.level)
        return Response(type=Response.GET_LOGGING_LEVEL, get_logging_level=found)

    def set_logging_level(self, call: Call) -> Response:
        asked = call.set_logging_level
        self._verbosity.set(asked.level, asked.duration.nanoseconds / _NS)
        return Response(type=Response.DONE)

    def get_agent(self, _: Call) -> Response:
        return Response(type=Response.GET_AGENT, get_agent=listing.agent(self._s))

    # ---- What it has ---------------------------------------------------------------

    def get_state(self, _: Call) -> Response:
        found = Response.GetState(
            get_tasks=listing.tasks(self._s),
            get_executors=listing.executors(self._s),
            get_frameworks=listing.frameworks(self._s),
        )
        return Response(type=Response.GET_STATE, get_state=found)

    def get_frameworks(self, _: Call) -> Response:
        found = listing.frameworks(self._s)
        return Response(type=Response.GET_FRAMEWORKS, get_frameworks=found)

    def get_executors(self, _: Call) -> Response:
        found = listing.executors(self._s)
        return Response(type=Response.GET_EXECUTORS, get_executors=found)

    def get_tasks(self, _: Call) -> Response:
        return Response(type=Response.GET_TASKS, get_tasks=listing.tasks(self._s))

    async def get_containers(self, call: Call) -> Response:
        found = Response.GetContainers(containers=await self._usage.collect())
        if call.get_containers.show_nested:
            found.containers.extend(self.nested.shown())
        return Response(type=Response.GET_CONTAINERS, get_containers=found)

    def get_operations(self, _: Call) -> Response:
        found = Response.GetOperations(operations=with_statuses(self._s.operations))
        return Response(type=Response.GET_OPERATIONS, get_operations=found)

    def get_resource_providers(self, _: Call) -> Response:
        none = Response.GetResourceProviders()
        return Response(type=Response.GET_RESOURCE_PROVIDERS, get_resource_providers=none)

    def prune_images(self, _: Call) -> Response:
        """No images are kept but dockerd's, which are the business of who runs that."""
        return Response(type=Response.DONE)

    # ---- Containers within others --------------------------------------------------

    async def launch_nested_container(self, call: Call) -> Response:
        asked = call.launch_nested_container
        command = asked.command if asked.HasField("command") else None
        return await self._launch(asked.container_id, wanted(command, asked.container))

    async def launch_container(self, call: Call) -> Response:
        asked = call.launch_container
        command = asked.command if asked.HasField("command") else None
        what = wanted(command, asked.container, asked.resources, asked.limits)
        return await self._launch(asked.container_id, what)

    async def _launch(self, container_id: pb.ContainerID, what: Wanted) -> Response:
        launched = await self.nested.launch(container_id, what)
        return Response(type=Response.DONE if launched else Response.DONE_BEFORE)

    async def wait_nested_container(self, call: Call) -> Response:
        exit = await self.nested.wait(call.wait_nested_container.container_id)
        found = Response.WaitNestedContainer(exit_status=exit.status, message=exit.unknown or None)
        return Response(type=Response.WAIT_NESTED_CONTAINER, wait_nested_container=found)

    async def wait_container(self, call: Call) -> Response:
        exit = await self.nested.wait(call.wait_container.container_id)
        found = Response.WaitContainer(exit_status=exit.status, message=exit.unknown or None)
        return Response(type=Response.WAIT_CONTAINER, wait_container=found)

    def kill_nested_container(self, call: Call) -> Response:
        return self._kill(call.kill_nested_container)

    def kill_container(self, call: Call) -> Response:
        return self._kill(call.kill_container)

    def _kill(self, asked: Call.KillNestedContainer | Call.KillContainer) -> Response:
        number = asked.signal if asked.HasField("signal") else int(Signal.KILL)
        self.nested.kill(asked.container_id, number)
        return Response(type=Response.DONE)

    async def remove_nested_container(self, call: Call) -> Response:
        await self.nested.remove(call.remove_nested_container.container_id)
        return Response(type=Response.DONE)

    async def remove_container(self, call: Call) -> Response:
        await self.nested.remove(call.remove_container.container_id)
        return Response(type=Response.DONE)

    # ---- Files ---------------------------------------------------------------------

    async def list_files(self, call: Call) -> Response:
        infos = await self._files.entries(call.list_files.path)
        found = Response.ListFiles(file_infos=infos)
        return Response(type=Response.LIST_FILES, list_files=found)

    async def read_file(self, call: Call) -> Response:
        asked = call.read_file
        length = asked.length if asked.HasField("length") else None
        size, data = await self._files.read(asked.path, asked.offset, length)
        found = Response.ReadFile(size=size, data=data)
        return Response(type=Response.READ_FILE, read_file=found)


_Handler: TypeAlias = Callable[[AgentOperator, Call], Response | Awaitable[Response]]
_HANDLERS: Final[dict[int, _Handler]] = {
    Call.GET_HEALTH: AgentOperator.get_health,
    Call.GET_FLAGS: AgentOperator.get_flags,
    Call.GET_VERSION: AgentOperator.get_version,
    Call.GET_METRICS: AgentOperator.get_metrics,
    Call.GET_LOGGING_LEVEL: AgentOperator.get_logging_level,
    Call.SET_LOGGING_LEVEL: AgentOperator.set_logging_level,
    Call.LIST_FILES: AgentOperator.list_files,
    Call.READ_FILE: AgentOperator.read_file,
    Call.GET_STATE: AgentOperator.get_state,
    Call.GET_CONTAINERS: AgentOperator.get_containers,
    Call.LAUNCH_NESTED_CONTAINER: AgentOperator.launch_nested_container,
    Call.LAUNCH_CONTAINER: AgentOperator.launch_container,
    Call.WAIT_NESTED_CONTAINER: AgentOperator.wait_nested_container,
    Call.WAIT_CONTAINER: AgentOperator.wait_container,
    Call.KILL_NESTED_CONTAINER: AgentOperator.kill_nested_container,
    Call.KILL_CONTAINER: AgentOperator.kill_container,
    Call.REMOVE_NESTED_CONTAINER: AgentOperator.remove_nested_container,
    Call.REMOVE_CONTAINER: AgentOperator.remove_container,
    Call.GET_FRAMEWORKS: AgentOperator.get_frameworks,
    Call.GET_EXECUTORS: AgentOperator.get_executors,
    Call.GET_OPERATIONS: AgentOperator.get_operations,
    Call.GET_TASKS: AgentOperator.get_tasks,
    Call.GET_AGENT: AgentOperator.get_agent,
    Call.GET_RESOURCE_PROVIDERS: AgentOperator.get_resource_providers,
    Call.PRUNE_IMAGES: AgentOperator.prune_images,
}
