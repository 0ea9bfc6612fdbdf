"""The environment of tasks and executors: what Mesos sets, and nothing of the agent's own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from urllib.parse import quote

from agent.core.records import Executor, role_of
from agent.core.state import AgentState, Settings
from mesos_py import ranges
from mesos_py.errors import InvalidValue
from mesos_py.executor.environment import BACKOFF_MAX_S, ENDPOINT
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Ours: by it the processes of a container are known again, whatever they became.
CONTAINER_ID = "MESOS_CONTAINER_ID"
# A variable of its own (PORT0, PORT1, ...) is there for so many ports.
NUMBERED_PORTS = 100
# A list of more ports than that has ranges in it: the kernel takes 128 KB a variable.
LISTED_PORTS = 1000
# Ours: where others can read what is in the sandbox, also after the end.
FILES_URL = "MESOS_PY_FILES_URL"

_DURATION_UNITS = (
    ("weeks", 604_800 * 10**9),
    ("days", 86_400 * 10**9),
    ("hrs", 3_600 * 10**9),
    ("mins", 60 * 10**9),
    ("secs", 10**9),
    ("ms", 10**6),
    ("us", 10**3),
    ("ns", 1),
)


def duration_text(seconds: float) -> str:
    """As Mesos writes durations: in the largest unit that is reached ("5secs"), or in the
    one below it if only that is whole ("90secs"), or else as a fraction ("1.0000001secs")."""
    nanoseconds = round(seconds * 1e9)
    for place, (unit, size) in enumerate(_DURATION_UNITS):
        if nanoseconds >= size:
            for near, near_size in _DURATION_UNITS[place : place + 2]:
                if nanoseconds % near_size == 0:
                    return f"{nanoseconds // near_size}{near}"
            return f"{nanoseconds / size:.15g}{unit}"
    return "0ns"


def for_command(state: AgentState, executor: Executor, task: pb.TaskInfo) -> dict[str, str]:
    """What the agent sets for the process of a command task."""
    return {
        **common(state, executor),
        **of_ports(task.resources),
        "MESOS_TASK_ID": task.task_id.value,
        "MESOS_ALLOCATION_ROLE": role_of(task, executor.framework),
    }


def for_executor(
    state: AgentState, executor: Executor, info: pb.ExecutorInfo, first: pb.TaskInfo
) -> dict[str, str]:
    """What the agent sets for a custom executor."""
    timeout_s = state.settings.recovery_timeout_s
    checkpoint = executor.framework.info.checkpoint and timeout_s > 0
    return {
        **(_waiting(timeout_s) if checkpoint else {}),
        **common(state, executor),
        **of_ports(info.resources),
        **_agent(state.settings),
        "MESOS_ALLOCATION_ROLE": role_of(first, executor.framework),
        "MESOS_CHECKPOINT": "1" if checkpoint else "0",
        # Of command tasks, which have no executor here: Mesos sets it for all.
        "MESOS_HTTP_COMMAND_EXECUTOR": "0",
        "MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD": duration_text(shutdown_grace_s(state, info)),
    }


def _waiting(timeout_s: float) -> dict[str, str]:
    """How an executor waits for an agent that has gone."""
    return {
        "MESOS_RECOVERY_TIMEOUT": duration_text(timeout_s),
        "MESOS_SUBSCRIPTION_BACKOFF_MAX": duration_text(BACKOFF_MAX_S),
    }


def _agent(settings: Settings) -> dict[str, str]:
    """Where the agent is: our SDK looks for the first, executors of Mesos for the others."""
    found = {ENDPOINT: settings.executor_endpoint}
    if settings.http_endpoint:
        found["MESOS_AGENT_ENDPOINT"] = settings.http_endpoint
        found["MESOS_SLAVE_PID"] = f"slave(1)@{settings.http_endpoint}"
        # An executor's own libprocess must take a port of its own.
        found["LIBPROCESS_PORT"] = "0"
    return found


def of_ports(resources: Iterable[pb.Resource]) -> dict[str, str]:
    """Which ports are the task's own: MESOS_PORTS=31000,31001, PORTS, PORT, PORT0, PORT1.

    They are the machine's ports, also for a task with a network of its own.
    """
    given = Resources.from_proto("resources", resources).plain.ranges.get("ports")
    if not given:
        return {}
    if ranges.count(given) <= LISTED_PORTS:
        text = ",".join(map(str, ranges.numbers(given)))
    else:
        text = ",".join(f"{begin}-{end}" if end > begin else str(begin) for begin, end in given)
    first = [str(port) for port in islice(ranges.numbers(given), NUMBERED_PORTS)]
    numbered = {f"PORT{number}": port for number, port in enumerate(first)}
    return {"MESOS_PORTS": text, "PORTS": text, "PORT": first[0], **numbered}


def of_command(command: pb.CommandInfo) -> dict[str, str]:
    """The variables that the framework gave.

    Raises InvalidValue for a name that cannot be one and a secret that is elsewhere.
    """
    variables: dict[str, str] = {}
    for variable in command.environment.variables:
        name = variable.name
        if not name or "=" in name or "\0" in name:
            raise InvalidValue("environment", name, "is no name for a variable")
        value = variable.value
        if variable.type == pb.Environment.Variable.SECRET:
            if variable.secret.type != pb.Secret.VALUE:
                raise InvalidValue("environment", name, "this agent resolves no secret references")
            value = variable.secret.value.data.decode("utf-8", "replace")
        if "\0" in value:
            raise InvalidValue("environment", name, "has a null character in its value")
        variables[name] = value
    return variables


def shutdown_grace_s(state: AgentState, info: pb.ExecutorInfo) -> float:
    """How long the executor has from SHUTDOWN to its end."""
    if info.HasField("shutdown_grace_period"):
        return max(0.0, info.shutdown_grace_period.nanoseconds / 1e9)
    return state.settings.executor_shutdown_grace_s


def common(state: AgentState, executor: Executor) -> dict[str, str]:
    """What every process in the container of a task or an executor is told."""
    directory = "/".join((state.settings.work_dir, *executor.sandbox))
    served = {}
    if state.settings.files_url:
        names = (*executor.key, executor.container_id)
        served[FILES_URL] = "/".join((state.settings.files_url, *map(quote, names)))
    return {
        **served,
        "PATH": DEFAULT_PATH,
        "MESOS_FRAMEWORK_ID": executor.key[0],
        "MESOS_EXECUTOR_ID": executor.key[1],
        "MESOS_AGENT_ID": state.agent_id,
        "MESOS_SLAVE_ID": state.agent_id,
        "MESOS_DIRECTORY": directory,
        "MESOS_SANDBOX": directory,
        CONTAINER_ID: executor.container_id,
    }
