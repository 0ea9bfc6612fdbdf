"""Containers within those of tasks and executors: their names, what they may be, and what
they take over from the one that they are in.  Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent.core import environment
from agent.core.environment import CONTAINER_ID, DEFAULT_PATH
from agent.core.launch import argv_of
from agent.core.records import CONTAINERS, Executor
from agent.core.state import AgentState
from agent.core.supported import IS_SO
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

# So many in one another, the outermost included.
MAX_DEPTH: Final = 8

# Of a terminal, in each direction.
MAX_SIZE: Final = 65_535
# What an id is: a name of a directory, and of a part of a mark.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,242}", re.ASCII)

# The ids from the outermost container to the one that is meant.
Names = tuple[str, ...]
# Of a terminal: rows and columns; zeros if nobody said.
Size = tuple[int, int]

# What a ContainerInfo may not ask for, since what is within a container shares all of it.
_SHARED: Final = (
    *("volumes", "hostname", "docker", "network_infos", "rlimit_info"),
    "mesos.image",
)


class Allowed(enum.Enum):
    """What an operator lets those launch who reach the agent's API."""

    OFF = "off"
    # What runs as the user of the container that it is in.
    OWN_USER = "own-user"
    ANY_USER = "any-user"


@dataclass(frozen=True, slots=True)
class Outer:
    """What a container gives to those within it."""

    user: str
    environment: dict[str, str]
    # As names beneath the work directory.
    sandbox: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to run in a new container."""

    executable: str
    argv: list[str]
    # Only what was given with the command.
    environment: dict[str, str]
    # "": the user of the one that it is in.
    user: str
    # The size of its terminal, if it is to have one.
    terminal: Size | None = None


def check_name(field: str, name: str) -> str:
    """`name`, if it may be the id of a container.  Else InvalidValue."""
    if not _NAME.fullmatch(name):
        must = "must be of letters, digits, '-' and '_', and have from 1 to 242 of them"
        raise InvalidValue(field, name, must)
    return name


def names_of(field: str, container_id: pb.ContainerID) -> Names:
    """Raises InvalidValue for what is no id, and for what is too deep."""
    place = f"{field}.value"
    found = [check_name(place, container_id.value)]
    while container_id.HasField("parent"):
        container_id = container_id.parent
        place = place.removesuffix("value") + "parent.value"
        found.append(check_name(place, container_id.value))
        if len(found) > MAX_DEPTH:
            text = f"is in more than {MAX_DEPTH - 1} others"
            raise InvalidValue(field, found[0], text)
    return tuple(reversed(found))


def id_of(names: Names) -> pb.ContainerID:
    found = pb.ContainerID(value=names[0])
    for name in names[1:]:
        found = pb.ContainerID(value=name, parent=found)
    return found


def mark_of(names: Names) -> str:
    """By this its processes are known.  No check of its outermost container has the same."""
    return f"{names[0]}..{'.'.join(names[1:])}"


def is_mark(mark: str) -> bool:
    return ".." in mark


def text_of(names: Names) -> str:
    """For people."""
    return ".".join(names)


def wanted(
    command: pb.CommandInfo | None,
    container: pb.ContainerInfo,
    resources: Iterable[pb.Resource] = (),
    limits: Mapping[str, pb.Value.Scalar] | None = None,
    *,
    session: bool = False,
) -> Wanted:
    """What a call asks for.  Raises InvalidValue for what cannot be had."""
    if command is None:
        raise InvalidValue("command", "", "must be there")
    executable, argv = argv_of(command)
    given = environment.of_command(command)
    if command.uris:
        text = "nothing is fetched for a container within another: fetch it by the command"
        raise InvalidValue("command.uris", command.uris[0].value, text)
    _refuse_own_things(container)
    terminal = None
    if container.HasField("tty_info"):
        if not session:
            text = "only a session has a terminal"
            raise InvalidValue("container.tty_info", "", text)
        terminal = size_of("container.tty_info", container.tty_info)
    for resource in resources:
        text = "a container within another shares what that was given, and has nothing of its own"
        raise InvalidValue("resources", resource.name, text)
    for name in limits or ():
        text = "a container within another is limited with that, and not by itself"
        raise InvalidValue("limits", name, text)
    return Wanted(executable, argv, given, command.user, terminal)


def size_of(field: str, terminal: pb.TTYInfo) -> Size:
    """Raises InvalidValue for one that no terminal has."""
    size = terminal.window_size
    for name, value in (("rows", size.rows), ("columns", size.columns)):
        if value > MAX_SIZE:
            text = f"must be {MAX_SIZE} at most"
            raise InvalidValue(f"{field}.window_size.{name}", value, text)
    return size.rows, size.columns


def _refuse_own_things(container: pb.ContainerInfo) -> None:
    if container.type == pb.ContainerInfo.DOCKER:
        text = "only MESOS can be within another container"
        raise InvalidValue("container.type", "DOCKER", text)
    for path in _SHARED:
        found: Any = container
        for name in path.split("."):
            value = getattr(found, name)
            there = bool(value) if not hasattr(value, "ListFields") else found.HasField(name)
            if not there:
                break
            found = value
        else:
            text = "a container within another shares that of the one that it is in"
            raise InvalidValue(f"container.{path}", "", text)
    for asked, value in container.linux_info.ListFields():
        if asked.name not in IS_SO:
            text = "a container within another shares that of the one that it is in"
            raise InvalidValue(f"container.linux_info.{asked.name}", "", text)
        if not value:
            text = "must be true: a container within another shares that of the one that it is in"
            raise InvalidValue(f"container.linux_info.{asked.name}", "false", text)


def outer(s: AgentState, executor: Executor) -> Outer:
    """Of the container of a task or an executor: with the environment of its first process,
    but for what isolators add.  Raises InvalidValue if it is not known any more as whom that
    runs: nothing is launched as the agent's own user for want of another."""
    info = executor.info
    first = next((each.info for each in executor.tasks.values()), pb.TaskInfo())
    if executor.default:
        # That of our own executor is none of its tasks' business.
        found, command = environment.common(s, executor), pb.CommandInfo()
    elif info is not None:
        found, command = environment.for_executor(s, executor, info, first), info.command
    else:
        found, command = environment.for_command(s, executor, first), first.command
    told = executor.info is not None or first.HasField("command")
    by_framework = s.frameworks.get(executor.key[0]) is executor.framework
    if not told or not (command.user or by_framework):
        text = "its user is not known: what was written down of it was damaged"
        raise InvalidValue("container_id.parent", executor.container_id, text)
    return Outer(
        user=command.user or executor.framework.info.user,
        environment={**found, **environment.of_command(command)},
        sandbox=executor.sandbox,
    )


def environment_within(names: Names, directory: str, given: Mapping[str, str]) -> dict[str, str]:
    """Of a container's first process: nothing is taken over from the one that it is in.
    `directory`: its own."""
    return {
        "PATH": DEFAULT_PATH,
        "MESOS_SANDBOX": directory,
        "MESOS_DIRECTORY": directory,
        **given,
        CONTAINER_ID: mark_of(names),
    }


def environment_of_session(names: Names, outer: Outer, given: Mapping[str, str]) -> dict[str, str]:
    """Of one that looks into another: as there."""
    return {**outer.environment, **given, CONTAINER_ID: mark_of(names)}


def sandbox_within(sandbox: tuple[str, ...], name: str) -> tuple[str, ...]:
    return (*sandbox, CONTAINERS, name)
