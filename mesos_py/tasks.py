"""Tasks, executors and statuses from few words.

These only build messages; whatever they do not cover is set on the message itself.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from mesos_py.containers import fit
from mesos_py.errors import InvalidValue
from mesos_py.health import health_plan
from mesos_py.ids import check_id
from mesos_py.resources import EMPTY, Resources
from mesos_py.states import TaskState
from mesos_py.v1.types_pb2 import (
    AgentID,
    CheckInfo,
    CommandInfo,
    ContainerInfo,
    Environment,
    ExecutorID,
    ExecutorInfo,
    HealthCheck,
    Label,
    NetworkInfo,
    Offer,
    TaskID,
    TaskInfo,
    TaskStatus,
)

# Where a task is to run: the offer that it uses, or the agent.
Place: TypeAlias = Offer | AgentID | str
# A text for `sh -c`, or the whole argv of a program.
Command: TypeAlias = str | Sequence[str]
# What is to be in the sandbox before the command starts: see `uri`.
Uri: TypeAlias = CommandInfo.URI | str


def command_task(
    name: str,
    task_id: str,
    offer: Place,
    command: Command,
    *,
    cpus: float | None = None,
    mem: float | None = None,
    resources: Resources | None = None,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    kill_grace_s: float | None = None,
    labels: Mapping[str, str] | None = None,
    uris: Iterable[Uri] = (),
    container: ContainerInfo | None = None,
    health: HealthCheck | None = None,
    check: CheckInfo | None = None,
) -> TaskInfo:
    """A task that is a command.

    command: a text for the shell, or a list that is executed as it is.
    cpus, mem (MB), resources: what it needs; they add up (`resources` for ports, disk).
    env: added to what the agent sets.
    user: who runs it (None: the framework's user).
    kill_grace_s: from SIGTERM to SIGKILL (None: the agent's default).
    uris: what the agent fetches into the sandbox first; a text is `uri(text)`.
    container: what it runs in, see `docker_container` (None: nothing but its sandbox).
    health: when it counts as healthy, and when it is killed (`health_http` and so on).
    check: what else the agent is to look at and report, in the form of the wire.

    Raises InvalidValue for an unusable id, no resources at all, wrong amounts and an
    empty command.
    """
    task = _task(name, task_id, offer, cpus, mem, resources)
    task.command.CopyFrom(command_info(command, env=env, user=user, uris=uris))
    if container is not None:
        task.container.CopyFrom(container)
        fit(task.command, container)
    if kill_grace_s is not None:
        task.kill_policy.grace_period.nanoseconds = _nanoseconds("kill_grace_s", kill_grace_s)
    task.labels.labels.extend(_labels(labels))
    if health is not None:
        task.health_check.CopyFrom(health)
    if check is not None:
        task.check.CopyFrom(check)
    return task


def executor_task(
    name: str,
    task_id: str,
    offer: Place,
    executor: ExecutorInfo,
    *,
    data: bytes = b"",
    cpus: float | None = None,
    mem: float | None = None,
    resources: Resources | None = None,
    labels: Mapping[str, str] | None = None,
) -> TaskInfo:
    """A task for a custom executor, which gets `data` with it.

    All tasks with an equal `executor` on one agent go to the same executor process.
    """
    task = _task(name, task_id, offer, cpus, mem, resources)
    task.executor.CopyFrom(executor)
    if data:
        task.data = data
    task.labels.labels.extend(_labels(labels))
    return task


def custom_executor(
    executor_id: str,
    command: Command,
    *,
    name: str = "",
    cpus: float | None = 0.1,
    mem: float | None = 32,
    resources: Resources | None = None,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    data: bytes = b"",
    shutdown_grace_s: float | None = None,
    uris: Iterable[Uri] = (),
    container: ContainerInfo | None = None,
) -> ExecutorInfo:
    """An executor: what starts it, and what it needs beside its tasks."""
    executor = ExecutorInfo(
        executor_id=ExecutorID(value=check_id("executor_id", executor_id)),
        type=ExecutorInfo.CUSTOM,
        name=name or executor_id,
        command=command_info(command, env=env, user=user, uris=uris),
        resources=_needs(cpus, mem, resources).to_proto(),
    )
    if container is not None:
        executor.container.CopyFrom(container)
        fit(executor.command, container)
    if data:
        executor.data = data
    if shutdown_grace_s is not None:
        grace = _nanoseconds("shutdown_grace_s", shutdown_grace_s)
        executor.shutdown_grace_period.nanoseconds = grace
    return executor


def default_executor(
    executor_id: str,
    *,
    cpus: float | None = 0.1,
    mem: float | None = 64,
    disk: float | None = 32,
    shutdown_grace_s: float | None = None,
) -> ExecutorInfo:
    """The agent's own executor, for `launch_group`: each task is a command in a directory of
    its own, `tasks/ID` in the sandbox that they share; cgroups and network they share, too.

    cpus, mem (MB), disk (MB): what it needs beside its tasks, all of it more than nothing.
    """
    stored = None if disk is None else Resources.of(disk=disk)
    executor = ExecutorInfo(
        executor_id=ExecutorID(value=check_id("executor_id", executor_id)),
        type=ExecutorInfo.DEFAULT,
        resources=_needs(cpus, mem, stored).to_proto(),
    )
    if shutdown_grace_s is not None:
        grace = _nanoseconds("shutdown_grace_s", shutdown_grace_s)
        executor.shutdown_grace_period.nanoseconds = grace
    return executor


def command_info(
    command: Command,
    *,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    uris: Iterable[Uri] = (),
) -> CommandInfo:
    if isinstance(command, str):
        info = CommandInfo(value=command, shell=True)
    else:
        argv = list(command)
        info = CommandInfo(value=argv[0] if argv else "", shell=False, arguments=argv)
    if not info.value:
        raise InvalidValue("command", command, "must not be empty")
    for variable, value in (env or {}).items():
        if not isinstance(value, str):
            raise InvalidValue(f"env.{variable}", value, "must be a text")
        info.environment.variables.append(Environment.Variable(name=variable, value=value))
    if user is not None:
        info.user = user
    if isinstance(uris, str):
        raise InvalidValue("uris", uris, "must be a list of URIs, not a text")
    info.uris.extend(uri(each) if isinstance(each, str) else each for each in uris)
    return info


def uri(
    value: str,
    *,
    executable: bool = False,
    extract: bool = True,
    cache: bool = False,
    output_file: str | None = None,
    sha256: str | None = None,
) -> CommandInfo.URI:
    """Something that the agent puts into the sandbox before the command starts.

    value: http, https, ftp or file, what extras of the agent add (s3, hdfs ...), or a
    path on the agent.
    executable: the task may run it; it is not unpacked then.
    extract: unpack it if its name says that it is an archive (.tar.gz, .zip, .gz ...).
    cache: the agent keeps it for other tasks of the same user, and asks nobody again.
    output_file: what to call it in the sandbox (None: what stands after the last slash).
    sha256: hexadecimal digits that its content must have, else the task fails.

    Raises InvalidValue for an empty value and for digits that are none.
    """
    if not value:
        raise InvalidValue("uri", value, "must not be empty")
    if sha256 is not None:
        if len(sha256) != 64 or set(sha256) - set(string.hexdigits):
            raise InvalidValue("sha256", sha256, "must be 64 hexadecimal digits")
        value = f"{value}#sha256={sha256.lower()}"
    return CommandInfo.URI(
        value=value, executable=executable, extract=extract, cache=cache, output_file=output_file
    )


def health_command(
    command: Command,
    *,
    env: Mapping[str, str] | None = None,
    delay_s: float | None = None,
    interval_s: float | None = None,
    timeout_s: float | None = None,
    grace_s: float | None = None,
    failures: int | None = None,
) -> HealthCheck:
    """A health check: the task is healthy while `command`, run in its container, exits
    with 0.

    delay_s: pause before the first one (None: 15).
    interval_s: pause after each one (None: 10).
    timeout_s: one that takes longer has failed (None: 20; 0: no limit).
    grace_s: failures before the first success do not count so long (None: 10).
    failures: after so many in a row the task is killed, KILLED with healthy=False
        (None: 3).

    Each failure, the first success, and the first one after failures are told by a
    RUNNING status with `healthy`.  Raises InvalidValue.
    """
    health = HealthCheck(type=HealthCheck.COMMAND, command=command_info(command, env=env))
    return _timed(health, delay_s, interval_s, timeout_s, grace_s, failures)


def health_http(
    port: int,
    path: str = "/",
    *,
    scheme: str = "http",
    ipv6: bool = False,
    delay_s: float | None = None,
    interval_s: float | None = None,
    timeout_s: float | None = None,
    grace_s: float | None = None,
    failures: int | None = None,
) -> HealthCheck:
    """A health check: the task is healthy while GET of `path` at its own loopback
    address, redirects followed, is answered with 200 to 399.

    scheme: "http", or "https" (any certificate will do).
    The others are those of `health_command`.
    """
    http = HealthCheck.HTTPCheckInfo(port=_port(port), path=path, scheme=scheme)
    if ipv6:
        http.protocol = NetworkInfo.IPv6
    health = HealthCheck(type=HealthCheck.HTTP, http=http)
    return _timed(health, delay_s, interval_s, timeout_s, grace_s, failures)


def health_tcp(
    port: int,
    *,
    ipv6: bool = False,
    delay_s: float | None = None,
    interval_s: float | None = None,
    timeout_s: float | None = None,
    grace_s: float | None = None,
    failures: int | None = None,
) -> HealthCheck:
    """A health check: the task is healthy while `port` at its own loopback address can be
    connected to.  The others are those of `health_command`."""
    tcp = HealthCheck.TCPCheckInfo(port=_port(port))
    if ipv6:
        tcp.protocol = NetworkInfo.IPv6
    health = HealthCheck(type=HealthCheck.TCP, tcp=tcp)
    return _timed(health, delay_s, interval_s, timeout_s, grace_s, failures)


def launch(tasks: TaskInfo | Iterable[TaskInfo]) -> Offer.Operation:
    """The operation that launches tasks, for `accept_offers`."""
    listed = [tasks] if isinstance(tasks, TaskInfo) else list(tasks)
    return Offer.Operation(
        type=Offer.Operation.LAUNCH, launch=Offer.Operation.Launch(task_infos=listed)
    )


def task_status(
    task: TaskInfo | TaskID | str,
    state: TaskState.ValueType,
    *,
    message: str = "",
    data: bytes = b"",
    reason: TaskStatus.Reason.ValueType | None = None,
    healthy: bool | None = None,
) -> TaskStatus:
    """What an executor reports of a task; the driver completes it."""
    if isinstance(task, TaskInfo):
        task_id = task.task_id.value
    else:
        task_id = task if isinstance(task, str) else task.value
    return TaskStatus(
        task_id=TaskID(value=check_id("task_id", task_id)),
        state=state,
        message=message or None,
        data=data or None,
        reason=reason,
        healthy=healthy,
    )


def _task(
    name: str,
    task_id: str,
    place: Place,
    cpus: float | None,
    mem: float | None,
    resources: Resources | None,
) -> TaskInfo:
    if isinstance(place, Offer):
        agent_id = place.agent_id.value
    else:
        agent_id = place if isinstance(place, str) else place.value
    return TaskInfo(
        name=name,
        task_id=TaskID(value=check_id("task_id", task_id)),
        agent_id=AgentID(value=check_id("agent_id", agent_id)),
        resources=_needs(cpus, mem, resources).to_proto(),
    )


def _needs(cpus: float | None, mem: float | None, resources: Resources | None) -> Resources:
    given = {"cpus": cpus, "mem": mem}
    amounts = {name: amount for name, amount in given.items() if amount is not None}
    needs = Resources.of(None, **amounts) + (resources or EMPTY)
    if not needs:
        raise InvalidValue("resources", "", "must ask for something, such as cpus and mem")
    return needs


def _timed(
    health: HealthCheck,
    delay_s: float | None,
    interval_s: float | None,
    timeout_s: float | None,
    grace_s: float | None,
    failures: int | None,
) -> HealthCheck:
    for field, seconds in (
        ("delay", delay_s),
        ("interval", interval_s),
        ("timeout", timeout_s),
        ("grace_period", grace_s),
    ):
        if seconds is not None:
            setattr(health, f"{field}_seconds", seconds)
    if failures is not None:
        if type(failures) is not int or not 0 < failures < 2**32:
            raise InvalidValue("failures", failures, "must be a whole number above zero")
        health.consecutive_failures = failures
    health_plan("health", health)
    return health


def _port(port: int) -> int:
    if type(port) is not int or not 0 < port < 2**16:
        raise InvalidValue("port", port, "must be a port from 1 to 65535")
    return port


def _nanoseconds(field: str, seconds: float) -> int:
    if not 0 <= seconds < 2**33:
        raise InvalidValue(field, seconds, "must be zero or more seconds")
    return int(seconds * 1e9)


def _labels(labels: Mapping[str, str] | None) -> list[Label]:
    return [Label(key=key, value=value) for key, value in (labels or {}).items()]


__all__ = [
    "command_info",
    "command_task",
    "custom_executor",
    "executor_task",
    "health_command",
    "health_http",
    "health_tcp",
    "launch",
    "task_status",
    "uri",
]
