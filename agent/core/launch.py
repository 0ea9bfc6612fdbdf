"""RUN_TASKS: what the master ordered is checked once more, then started."""

from __future__ import annotations

from collections.abc import Sequence

from agent.core import environment, executors, probing, volumes
from agent.core.effects import ContainerSpec, ExecutorKey, TaskKey
from agent.core.records import Executor, Exit, Framework, Reason, State, Task
from agent.core.state import AgentState
from agent.core.supported import missing_for
from agent.core.volume_uses import uses_in
from mesos_py.clock import Now
from mesos_py.descriptions import same_executor
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.ids import check_id
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb

SHELL = "/bin/sh"


class _Refused(Exception):
    """The task is not started.  Without a state it is DROPPED, or LOST."""

    def __init__(self, reason: Reason, message: str, state: State | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.state = state


def run_tasks(s: AgentState, order: agent_pb2.Event.RunTasks, now: Now) -> None:
    """Start each task of the order, in its order; one bad task does not stop the others,
    unless they are a group."""
    framework = s.framework(order.framework_info)
    if order.group:
        _run_group(s, framework, order, now)
    for info in () if order.group else order.tasks:
        key = (framework.framework_id, info.task_id.value)
        # The same order may come twice, and a task must not run twice.
        if key in s.tasks or key in s.updates:
            s.drop("task is here already", framework=key[0], task=key[1])
            continue
        try:
            _run(s, framework, key, info, now)
        except _Refused as refused:
            s.answer(
                key,
                framework.partition_aware,
                now,
                refused.reason,
                refused.message,
                state=refused.state,
            )
    for executor_id in order.new_executors:
        if (framework.framework_id, executor_id.value) not in s.executors:
            # The master has charged it, and would for ever.
            executors.exited(s, (framework.framework_id, executor_id.value), Exit(None))


def _run(s: AgentState, framework: Framework, key: TaskKey, info: pb.TaskInfo, now: Now) -> None:
    _require_welcome(s)
    try:
        check_id("framework_id", key[0])
        check_id("task_id", key[1])
        if info.HasField("command") == info.HasField("executor"):
            raise InvalidValue("task", key[1], "must have either a command or an executor")
        if info.HasField("executor"):
            _run_in_executor(s, framework, key, info, now)
        else:
            _run_command(s, framework, key, info, now)
    except MesosPyError as error:
        raise _Refused(pb.TaskStatus.REASON_TASK_INVALID, error.message, pb.TASK_ERROR) from None


def _require_welcome(s: AgentState) -> None:
    if s.stop is not None:
        raise _Refused(pb.TaskStatus.REASON_AGENT_REMOVED, "the agent is shutting down")
    if s.drain is not None:
        raise _Refused(pb.TaskStatus.REASON_AGENT_DRAINING, "the agent is being drained")


def _require_volumes(s: AgentState, info: pb.TaskInfo) -> None:
    """The master takes an operation to be done before the agent's word, which may be that it
    was not."""
    if not volumes.asked(info):
        return
    unknown = volumes.unknown(s, [info, info.executor])
    if unknown is not None:
        raise _Refused(pb.TaskStatus.REASON_RESOURCES_UNKNOWN, unknown)
    volumes.require_visible(info)


def _refuse_unsupported(s: AgentState, info: pb.TaskInfo) -> None:
    if info.limits:
        # Mesos gives this very reason (docs/task-state-reasons.md).
        raise _Refused(
            pb.TaskStatus.REASON_GC_ERROR, "resource limits need isolators that enforce them"
        )
    lacking = missing_for(info, s.settings.provided)
    if lacking is not None:
        raise _Refused(pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED, lacking, pb.TASK_FAILED)


# ---- Commands -----------------------------------------------------------------------


def _run_command(
    s: AgentState, framework: Framework, key: TaskKey, info: pb.TaskInfo, now: Now
) -> None:
    if key in s.executors:
        raise _Refused(
            pb.TaskStatus.REASON_TASK_INVALID, f"an executor with the id {key[1]!r} is running"
        )
    _require_volumes(s, info)
    _refuse_unsupported(s, info)
    given = environment.of_command(info.command)
    probing.require_checks(info)
    executor = _executor(s, framework, key[1], None)
    spec = _spec(s, executor, info.command, [info])
    spec.volumes = uses_in(info.resources)
    spec.environment = environment.for_command(s, executor, info)
    spec.command_environment = given
    spec.container = info.container if info.HasField("container") else None
    task = _task(s, key, info, executor, now)
    task.checks = probing.of(task)
    s.report(task, pb.TASK_STARTING, now)
    s.launch(executor, spec)


# ---- Custom executors ---------------------------------------------------------------


def _run_in_executor(
    s: AgentState, framework: Framework, key: TaskKey, info: pb.TaskInfo, now: Now
) -> None:
    executor_id = check_id("executor.executor_id", info.executor.executor_id.value)
    _require_volumes(s, info)
    if not info.executor.HasField("framework_id"):
        # As Mesos has it, for the executor to read.
        info.executor.framework_id.value = key[0]
    executor = _running(s, (key[0], executor_id), info.executor)
    resources = Resources.from_proto("resources", info.resources)
    if executor is None:
        _refuse_unsupported(s, info)
        executor = _start_executor(s, framework, executor_id, [info])
    task = _task(s, key, info, executor, now)
    task.resources = resources
    executor.resources = executor.resources + resources
    if executor.connected:
        executors.deliver(s, executor, [task], now)


def _running(s: AgentState, key: ExecutorKey, info: pb.ExecutorInfo) -> Executor | None:
    """The executor that takes the tasks; None: it has to be started."""
    executor = s.executors.get(key)
    if executor is None:
        return None
    if executor.info is None:
        raise _Refused(
            pb.TaskStatus.REASON_TASK_INVALID,
            f"the executor id {key[1]!r} is that of a running command task",
        )
    if executor.ending:
        raise _Refused(
            pb.TaskStatus.REASON_EXECUTOR_TERMINATED, f"executor {key[1]!r} is terminating"
        )
    if not same_executor(executor.info, info):
        raise InvalidValue("executor", key[1], "differs from the executor that runs under this id")
    return executor


def _start_executor(
    s: AgentState, framework: Framework, executor_id: str, firsts: Sequence[pb.TaskInfo]
) -> Executor:
    """`firsts`: the tasks that it is started for, all of which its container has room for."""
    first = firsts[0]
    info = pb.ExecutorInfo()
    info.CopyFrom(first.executor)
    info.framework_id.value = framework.framework_id
    executor = _executor(s, framework, executor_id, info)
    if not executor.default and not info.HasField("command"):
        raise InvalidValue("executor.command", executor_id, "must be there")
    given = environment.of_command(info.command)
    executor.resources = Resources.from_proto("executor.resources", info.resources)
    holders: list[pb.TaskInfo | pb.ExecutorInfo] = [info, *firsts]
    if executor.default:
        executor.knows_volumes = True
        spec = _default_spec(s, executor, holders)
    else:
        spec = _spec(s, executor, info.command, holders)
    spec.volumes = uses_in(info.resources)
    spec.environment |= environment.for_executor(s, executor, info, first)
    spec.command_environment = given
    spec.container = info.container if info.HasField("container") else None
    s.launch(executor, spec)
    return executor


# ---- Groups -------------------------------------------------------------------------


def _run_group(
    s: AgentState, framework: Framework, order: agent_pb2.Event.RunTasks, now: Now
) -> None:
    """All tasks of the order, or none: what is wrong with one is said of each."""
    keys = [(framework.framework_id, info.task_id.value) for info in order.tasks]
    missing = [key for key in keys if key not in s.tasks and key not in s.updates]
    for key in keys:
        if key not in missing:
            s.drop("task is here already", framework=key[0], task=key[1])
    if not missing:
        return  # the same order has come twice
    try:
        if len(missing) < len(keys):
            text = "another task of its group is here already"
            raise _Refused(pb.TaskStatus.REASON_TASK_INVALID, text)
        _start_group(s, framework, order, now)
    except MesosPyError as error:
        invalid = pb.TaskStatus.REASON_TASK_GROUP_INVALID
        _refuse_group(s, framework, missing, _Refused(invalid, error.message, pb.TASK_ERROR), now)
    except _Refused as refused:
        _refuse_group(s, framework, missing, refused, now)


def _refuse_group(
    s: AgentState, framework: Framework, keys: list[TaskKey], refused: _Refused, now: Now
) -> None:
    aware = framework.partition_aware
    for key in keys:
        s.answer(key, aware, now, refused.reason, refused.message, state=refused.state)


def _start_group(
    s: AgentState, framework: Framework, order: agent_pb2.Event.RunTasks, now: Now
) -> None:
    """Nothing is changed before all that can be refused was looked at."""
    _require_welcome(s)
    check_id("framework_id", framework.framework_id)
    infos = list(order.tasks)
    described = infos[0].executor
    executor_id = check_id("executor.executor_id", described.executor_id.value)
    described.framework_id.value = framework.framework_id
    found: list[Resources] = []
    for info in infos:
        check_id("task_id", info.task_id.value)
        info.executor.framework_id.value = framework.framework_id
        if info.executor != described:
            raise InvalidValue("executor", info.task_id.value, "differs from that of its group")
        _require_volumes(s, info)
        _refuse_unsupported(s, info)
        if described.type == pb.ExecutorInfo.DEFAULT:
            probing.require_checks(info)
        found.append(Resources.from_proto("resources", info.resources))
    executor = _running(s, (framework.framework_id, executor_id), described)
    if executor is None:
        if executor_id not in {each.value for each in order.new_executors}:
            # It ended when the master did not know that yet: what it had is free there.
            text = f"executor {executor_id!r} has ended"
            raise _Refused(pb.TaskStatus.REASON_EXECUTOR_TERMINATED, text)
        executor = _start_executor(s, framework, executor_id, infos)
    elif executor.default and not executor.knows_volumes:
        _refuse_volumes(executor, infos)
    group = s.ids.container_id()
    tasks: list[Task] = []
    for info, resources in zip(infos, found, strict=True):
        key = (framework.framework_id, info.task_id.value)
        task = _task(s, key, info, executor, now)
        task.resources, task.group = resources, group
        if executor.default:
            task.checks = probing.of(task)
        executor.resources = executor.resources + resources
        tasks.append(task)
    if executor.connected:
        executors.deliver(s, executor, tasks, now)


def _refuse_volumes(executor: Executor, infos: Sequence[pb.TaskInfo]) -> None:
    for info in infos:
        if info.container.volumes or uses_in(info.resources):
            text = f"executor {executor.key[1]!r} is of an agent before an upgrade, and shows no"
            text += f" volumes (asked by task {info.task_id.value!r}): another executor does"
            raise _Refused(pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED, text, state=pb.TASK_FAILED)


# ---- What both need -----------------------------------------------------------------


def _executor(
    s: AgentState, framework: Framework, executor_id: str, info: pb.ExecutorInfo | None
) -> Executor:
    container_id = s.ids.container_id()
    sandbox = (
        *("agents", s.agent_id),
        *("frameworks", framework.framework_id),
        *("executors", executor_id),
        *("runs", container_id),
    )
    return Executor((framework.framework_id, executor_id), container_id, framework, sandbox, info)


def _task(s: AgentState, key: TaskKey, info: pb.TaskInfo, executor: Executor, now: Now) -> Task:
    task = Task(key, info, executor, now)
    executor.tasks[key[1]] = task
    s.tasks[key] = task
    s.journal.task(task)
    return task


def _spec(
    s: AgentState,
    executor: Executor,
    command: pb.CommandInfo,
    holders: list[pb.TaskInfo | pb.ExecutorInfo],
) -> ContainerSpec:
    # Of an image the program may be its own: docker takes it from `command`.
    image = holders[0].container.type == pb.ContainerInfo.DOCKER
    executable, argv = argv_of(command, image=image)
    return _described(s, executor, command, holders, executable, argv)


def _default_spec(
    s: AgentState, executor: Executor, holders: list[pb.TaskInfo | pb.ExecutorInfo]
) -> ContainerSpec:
    """Of our own executor: it starts each task as the task's user, and is the agent's."""
    argv = list(s.settings.default_executor)
    if not argv:
        raise InvalidValue("executor.type", "DEFAULT", "this agent has no executor of its own")
    spec = _described(s, executor, pb.CommandInfo(), holders, argv[0], argv)
    spec.environment = {"PYTHONPATH": s.settings.python_path}
    spec.as_agent = True
    return spec


def _described(
    s: AgentState,
    executor: Executor,
    command: pb.CommandInfo,
    holders: list[pb.TaskInfo | pb.ExecutorInfo],
    executable: str,
    argv: list[str],
) -> ContainerSpec:
    return ContainerSpec(
        container_id=executor.container_id,
        framework_id=executor.key[0],
        executor_id=executor.key[1],
        agent_id=s.agent_id,
        user=command.user or executor.framework.info.user,
        executable=executable,
        argv=argv,
        environment={},
        command_environment={},
        sandbox=executor.sandbox,
        command=command,
        holders=holders,
    )


def argv_of(command: pb.CommandInfo, *, image: bool = False) -> tuple[str, list[str]]:
    """The program to run and its argv; "" for that of an image.  Raises InvalidValue."""
    if command.shell or not command.HasField("shell"):
        if not command.HasField("value"):
            raise InvalidValue("command.value", "", "must be there: it is given to the shell")
        executable, argv = SHELL, ["sh", "-c", command.value]
    elif command.value or image:
        executable, argv = command.value, list(command.arguments) or [command.value]
    else:
        raise InvalidValue("command.value", "", "must name what to run")
    if any("\0" in text for text in (executable, *argv)):
        raise InvalidValue("command", command.value, "has a null character")
    return executable, argv
