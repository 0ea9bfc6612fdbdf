"""The agent, framework or task that an argument means, asked of the master."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesos_py.cli.names import Named, resolve
from mesos_py.errors import NotFound
from mesos_py.states import is_terminal, short_name

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient
    from mesos_py.v1.operator_pb2 import Response
    from mesos_py.v1.types_pb2 import FrameworkInfo, Task


def frameworks_of(answer: Response.GetFrameworks) -> list[FrameworkInfo]:
    """Those that are there, then those that are not any more."""
    return [each.framework_info for each in (*answer.frameworks, *answer.completed_frameworks)]


def framework(client: OperatorClient, text: str, *, ended: bool = True) -> FrameworkInfo:
    """The framework that `text` means, without `ended` only among those still there.

    A name means the one that is there, if there is exactly one, even when ended ones
    had the same.
    """
    answer = client.frameworks()
    there = [each.framework_info for each in answer.frameworks]
    if not ended:
        return resolve("framework", text, there, _framework_name)
    if sum(each.name == text for each in there) == 1:
        return resolve("framework", text, there, _framework_name)
    return resolve("framework", text, frameworks_of(answer), _framework_name)


def _framework_name(info: FrameworkInfo) -> Named:
    return Named(info.id.value, info.name, info.name)


def task(
    client: OperatorClient,
    text: str,
    framework_text: str | None = None,
    *,
    prefer_live: bool = False,
) -> Task:
    """The task that `text` means, of one framework if that is given.

    With `prefer_live`, ended tasks count only if no other is meant.
    """
    framework_id = None
    if framework_text is not None:
        framework_id = framework(client, framework_text).id.value
    every = client.tasks(framework_id)
    if prefer_live:
        try:
            live = [each for each in every if not is_terminal(each.state)]
            return resolve("task", text, live, _task_name)
        except NotFound:
            pass
    return resolve("task", text, every, _task_name)


def _task_name(each: Task) -> Named:
    detail = f"{short_name(each.state)}, framework {each.framework_id.value}"
    return Named(each.task_id.value, each.name, detail)


def agent(client: OperatorClient, text: str) -> str:
    """The id of the agent that `text`, an id or host name, means."""
    return agent_entry(client, text).agent_info.id.value


def agent_entry(client: OperatorClient, text: str) -> Response.GetAgents.Agent:
    """The agent that `text` means; one that is gone only if no other is meant."""
    every = client.agents()
    try:
        there = [each for each in every if each.state != "gone"]
        return resolve("agent", text, there, _agent_name)
    except NotFound:
        return resolve("agent", text, every, _agent_name)


def _agent_name(each: Response.GetAgents.Agent) -> Named:
    info = each.agent_info
    return Named(info.id.value, info.hostname, f"{info.hostname}, {each.state}")
