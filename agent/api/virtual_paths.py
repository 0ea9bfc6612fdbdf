"""Paths by which clients of Mesos name what is in a sandbox.  Pure.

They are those of the sandbox's directory, as /state tells it, and beside it
/frameworks/FRAMEWORK/executors/EXECUTOR/runs/latest.
"""

from __future__ import annotations

from typing import Final

from agent.api.http_paths import LATEST, Location
from agent.containers import sandbox
from mesos_py.errors import InvalidValue, NotFound
from mesos_py.ids import check_id

MAX_CHARS: Final = 8192


def located(path: str, work_dir: str, agent_id: str) -> Location:
    """The place that `path` names.

    Raises NotFound for a path that is that of no sandbox, and InvalidValue for one that
    begins in a sandbox and leads out of it.
    """
    if len(path) > MAX_CHARS or "\0" in path:
        raise InvalidValue("path", path, f"must have at most {MAX_CHARS} characters, none null")
    names = _names(path)
    above = _names(work_dir)
    own = [*above, "agents", agent_id]
    if names[: len(own)] == own:
        names = names[len(own) :]
        runs: tuple[str, ...] | None = None
    else:
        # The short form leads to the newest run only.
        runs = (LATEST,)
    match names:
        case ["frameworks", framework_id, "executors", executor_id, "runs", run, *rest]:
            if runs is None or run in runs:
                return _location(path, framework_id, executor_id, run, rest)
    raise NotFound("path", path, "is in no sandbox of this agent")


def _location(
    path: str, framework_id: str, executor_id: str, run: str, rest: list[str]
) -> Location:
    try:
        for field, name in (("framework", framework_id), ("executor", executor_id), ("run", run)):
            check_id(field, sandbox.check_part(name))
    except (InvalidValue, ValueError):
        raise NotFound("path", path, "is in no sandbox of this agent") from None
    parts: list[str] = []
    for name in rest:
        if name != "..":
            parts.append(name)
        elif parts:
            # No link is followed, so that the one above is the one before.
            parts.pop()
        else:
            raise InvalidValue("path", path, "leads out of the sandbox")
    return Location(framework_id, executor_id, run, tuple(parts))


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def virtual_of(framework_id: str, executor_id: str) -> str:
    """The short form for an executor."""
    return f"/frameworks/{framework_id}/executors/{executor_id}/runs/{LATEST}"
