"""`up` and `down` as a whole: one wrapper for a state directory, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any, Final

from frameworks.torque import book
from frameworks.torque.backend import Backend, BatchError
from frameworks.torque.bringing import backend_of, environment_file, environment_text
from frameworks.torque.options import TorqueOptions
from frameworks.torque.running import BOOK, STATUS, Wrapper
from mesos_py import (
    TASK_UNREACHABLE,
    Conflict,
    MasterUnreachable,
    MesosPyError,
    NotFound,
    is_terminal,
    logs,
)
from mesos_py.files import DirectoryLock, write_atomically
from mesos_py.operator import OperatorClient

log = logs.get("torque")

# What the last `up` was told, for `down`.
OPTIONS: Final = "options.json"
_LEAVE_S: Final = 30.0
_GONE_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.1


def serve(options: TorqueOptions, ready: Callable[[Path], None]) -> None:
    """Run the wrapper until SIGTERM or SIGINT; from the main thread.  `ready` is given the file
    that users read in.  Raises Conflict while another one runs, and what `Wrapper.run` raises."""
    lock = DirectoryLock(options.state_dir)
    try:
        backend = backend_of(options)
        _remember(options)
        wrapper = Wrapper(options, backend)
        path = environment_file(options.state_dir)
        write_atomically(path, environment_text(backend))
        with _until_asked(wrapper.stop):
            wrapper.run(lambda: ready(path))
        log.info("wrapper leaves; server, nodes and jobs go on")
    finally:
        lock.release()


def end(state_dir: Path, force: bool) -> None:
    """End wrapper, nodes and server; what is queued comes back with the next `up`.

    force: also while jobs run, which are put back in the queue or closed, and while there is no
    master.  Raises Conflict for
    them otherwise, MesosPyError if nothing was brought up there or the master does not answer.
    """
    options = _remembered(state_dir)
    backend = backend_of(options)
    if backend.alive() and not force:
        running = [job.job_id for job in backend.jobs() if job.state == "running"]
        if running:
            raise Conflict(
                f"jobs run: {', '.join(running[:10])}; wait for them, or --force: "
                "they are put back in the queue or closed, as they were submitted"
            )
    lock = _wrapper_left(state_dir)
    try:
        kept = book.read(state_dir / BOOK)
        if kept.framework_id:
            try:
                _tear_down(options.master, kept.framework_id)
            except MasterUnreachable:
                if not force:
                    raise
                log.warning("master does not answer: it ends the nodes when they are overdue")
        _forget_nodes(backend)
        backend.stop()
        kept.framework_id = ""
        kept.nodes.clear()
        kept.save()
        (state_dir / STATUS).unlink(missing_ok=True)
    finally:
        lock.release()


def _tear_down(address: str, framework_id: str) -> None:
    until_s = time.monotonic() + _GONE_S
    with OperatorClient(address) as master, contextlib.suppress(NotFound):
        master.teardown(framework_id)
        while time.monotonic() < until_s and not all(
            is_terminal(task.state) or task.state == TASK_UNREACHABLE
            for task in master.tasks(framework_id)
        ):
            time.sleep(_LOOK_EVERY_S)


def _forget_nodes(backend: Backend) -> None:
    """As far as it goes: those that are left are removed by the next `up`."""
    until_s = time.monotonic() + _GONE_S
    while backend.alive() and time.monotonic() < until_s:
        # Jobs may be on their way out of there.
        with contextlib.suppress(BatchError):
            nodes = backend.nodes()
            for node in nodes:
                backend.lose(node.name, "the batch system is taken down")
            if not nodes:
                return
        time.sleep(_LOOK_EVERY_S)


def _wrapper_left(state_dir: Path) -> DirectoryLock:
    """Ask the wrapper that holds the directory to leave, and wait; the lock."""
    until_s = time.monotonic() + _LEAVE_S
    asked = False
    while True:
        try:
            return DirectoryLock(state_dir)
        except Conflict as error:
            if time.monotonic() > until_s:
                raise
            pid = str(error.fields.get("pid", ""))
            if not asked and pid.isdecimal():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGTERM)
                asked = True
        time.sleep(_LOOK_EVERY_S)


def _remember(options: TorqueOptions) -> None:
    write_atomically(options.state_dir / OPTIONS, json.dumps(asdict(options), default=str) + "\n")


def _remembered(state_dir: Path) -> TorqueOptions:
    path = state_dir / OPTIONS
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        content["state_dir"] = state_dir
        socket = content["munge_socket"]
        content["munge_socket"] = None if socket is None else Path(socket)
        return TorqueOptions(**content)
    except FileNotFoundError:
        raise MesosPyError(f"nothing was brought up in {state_dir}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise MesosPyError(f"{path} is damaged: {error!r}") from error


@contextlib.contextmanager
def _until_asked(stop: Callable[[], None]) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def asked(number: int, frame: FrameType | None) -> None:
        stop()

    try:
        for number in before:
            signal.signal(number, asked)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


__all__ = ["end", "serve"]
