"""The tasks' processes: fetched for, started, signalled, and waited for."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent.containers import sandbox, volume_links
from agent.containers.processes import (
    UNSURE_RETRY_S,
    Processes,
    become_subreaper,
    leads_session,
)
from agent.containers.spawn import Spawner, StartError, StartRequest
from agent.containers.users import User, Users
from agent.containers.volume_links import Place
from agent.core.records import Exit
from agent.core.volume_uses import uses_in
from agent.default_executor import description
from agent.default_executor.fetching import Fetching
from agent.volumes.links import VolumeLinks
from mesos_py.errors import MesosPyError
from mesos_py.v1 import types_pb2 as pb

_PASSABLE: Final = stat.S_IXGRP | stat.S_IXOTH


class TaskProcesses:
    """Used from one event loop, the main thread's."""

    def __init__(
        self,
        directory: str,
        volumes: VolumeLinks,
        fetching: Fetching,
        started: Callable[[str], None],
        failed: Callable[[str, str], None],
        ended: Callable[[str, Exit], None],
    ) -> None:
        """`directory`: the executor's sandbox."""
        self._directory = directory
        self._volumes = volumes
        self._fetching = fetching
        self._started = started
        self._failed = failed
        self._ended = ended
        self._users = Users()
        # In our session: by that the warden knows them when we are gone.
        self._spawner = Spawner(directory, sessions=False)
        # What is fetched with is our child as well.
        self._processes = Processes(shared=True, marker=description.MARKER, others=self._may_fetch)
        # Tasks that are being fetched for.
        self._preparing: dict[str, asyncio.Task[None]] = {}
        become_subreaper()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)

    def start(
        self, task: pb.TaskInfo, environment: Callable[[], dict[str, str]], user: str
    ) -> None:
        """`environment`: raises InvalidValue."""
        task_id = task.task_id.value
        if not task.command.uris:
            self._launch(task, environment, user)
            return
        fetch = self._fetching.fetch(task, user, self._users)
        waiting = asyncio.get_running_loop().create_task(fetch)
        self._preparing[task_id] = waiting

        def fetched(done: asyncio.Task[None]) -> None:
            del self._preparing[task_id]
            # What could have been its process, and had ended.
            asyncio.get_running_loop().call_soon(self._reap)
            error = None if done.cancelled() else done.exception()
            if done.cancelled():
                self._failed(task_id, "it was stopped while it was fetched for")
            elif error is None:
                self._launch(task, environment, user)
            else:
                text = error.message if isinstance(error, MesosPyError) else repr(error)
                self._failed(task_id, text)

        waiting.add_done_callback(fetched)

    def _launch(
        self, task: pb.TaskInfo, environment: Callable[[], dict[str, str]], user_name: str
    ) -> None:
        task_id = task.task_id.value
        try:
            user = self._users.find(user_name)
            self._let_pass(user)
            self._link_volumes(task, user)
            executable, argv = description.program_of(task)
            request = StartRequest(
                id=task_id,
                exe=executable,
                argv=argv,
                env=environment(),
                sandbox=list(description.sandbox_of(task)),
                owner=(user.uid, user.gid),
                user=user.switch,
                enter=[],
                namespaces=[],
                rlimits=[],
            )
            pid = self._spawner.start(request)
        except MesosPyError as error:
            self._failed(task_id, error.message)
        except (StartError, OSError) as error:
            self._failed(task_id, str(error))
        else:
            self._processes.add(task_id, pid)
            self._started(task_id)

    def _let_pass(self, user: User) -> None:
        """Another user than the framework's gets to its directory, which is in ours."""
        found = Path(self._directory).stat()
        if user.uid not in (0, found.st_uid) and found.st_mode & _PASSABLE != _PASSABLE:
            Path(self._directory).chmod(stat.S_IMODE(found.st_mode) | _PASSABLE)

    def _link_volumes(self, task: pb.TaskInfo, user: User) -> None:
        """Raises InvalidValue, OSError."""
        links, volumes = description.links_of(task), uses_in(task.resources)
        if not links and not volumes:
            return
        parts = description.sandbox_of(task)
        where = "/".join((self._directory, *parts))
        with (
            sandbox.opened(self._directory) as ours,
            sandbox.closing(sandbox.create(ours, parts, user.uid, user.gid)) as here,
        ):
            # What tasks share belongs to whom our own sandbox does (Mesos).
            owner = os.fstat(ours)
            parent = Place(ours, self._directory, owner.st_uid, owner.st_gid)
            place = Place(here, where, user.uid, user.gid)
            self._volumes.show(volumes, place)
            volume_links.show(links, place, parent)

    def _may_fetch(self, pid: int) -> bool:
        """Those processes lead sessions, and are waited for by the fetch."""
        return bool(self._preparing) and leads_session(pid)

    def signal(self, task_id: str, number: int) -> None:
        waiting = self._preparing.get(task_id)
        if waiting is not None:
            waiting.cancel()
        else:
            self._processes.signal(task_id, number)

    def _reap(self) -> None:
        for task_id, status in self._processes.reap():
            unknown = "" if status is not None else "somebody else has waited for it"
            self._ended(task_id, Exit(status, unknown))
        if self._processes.unsure:
            asyncio.get_running_loop().call_later(UNSURE_RETRY_S, self._reap)
