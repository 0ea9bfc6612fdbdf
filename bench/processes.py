"""Processes that a bench starts: ready when they say so, and gone when it ends."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil

ROOT: Final = Path(__file__).parents[1]
LOOPBACK: Final = "127.0.0.1"
READY_WITHIN_S: Final = 120.0
END_WITHIN_S: Final = 60.0
LOOK_EVERY_S: Final = 0.005
_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None)
M = TypeVar("M")


class BenchFailed(Exception):
    """A measurement that cannot be taken, and why."""


def cpu_seconds(pids: Sequence[int]) -> float:
    """User and system time that these processes have used so far (not their children)."""
    used = 0.0
    for pid in pids:
        times = psutil.Process(pid).cpu_times()
        used += times.user + times.system
    return used


def end_with_parent() -> None:
    """For `preexec_fn`, in a process without threads."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class Processes:
    """What runs for one bench, in a directory of its own.  The last started ends first."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        # What must outlive the processes.
        self._beneath = contextlib.ExitStack()

    def enter(self, manager: contextlib.AbstractContextManager[M]) -> M:
        """Enter it now, and leave it when all processes have ended."""
        return self._beneath.enter_context(manager)

    def start(
        self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process in the background, its output in `<name>.log`."""
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                cwd=ROOT,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads here)
            )
        self._running.append((name, process))
        return process

    def daemon(
        self, name: str, *flags: str, prefix: Sequence[str] = ()
    ) -> tuple[subprocess.Popen[bytes], str]:
        """Start `mesos-py <kind>` (`name` is the kind, or kind-number); its address."""
        port_file = self.directory / f"{name}.port"
        kind = name.partition("-")[0]
        argv = [*prefix, sys.executable, "-m", "mesos_py.cli", kind]
        argv += ["--ip", LOOPBACK, "--port", "0", "--http-port", "0", "--port-file", str(port_file)]
        argv += ["--work-dir", str(self.directory / name), "--log-level", "warning", *flags]
        process = self.start(name, argv)
        return process, f"{LOOPBACK}:{self.wait_for(port_file, process, name)}"

    def wait_for(
        self,
        path: Path,
        process: subprocess.Popen[bytes],
        name: str,
        within_s: float = READY_WITHIN_S,
    ) -> str:
        """What the process writes into `path` once it is ready."""
        until = time.monotonic() + within_s
        while not path.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise BenchFailed(f"{name} did not get ready:\n{self.log_end(name)}")
            time.sleep(LOOK_EVERY_S)
        return path.read_text().strip()

    def run(self, name: str, argv: Sequence[str], within_s: float) -> Any:
        """Run a process to its end; what it wrote as JSON into the file `--out`."""
        out = self.directory / f"{name}.json"
        out.unlink(missing_ok=True)
        self.finish(name, [*argv, "--out", str(out)], within_s)
        return json.loads(out.read_text())

    def finish(
        self,
        name: str,
        argv: Sequence[str],
        within_s: float,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run a process to its end, which must be a good one."""
        process = self.start(name, argv, env)
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise BenchFailed(f"{name} took over {within_s:g} s:\n{self.log_end(name)}") from None
        if process.returncode:
            raise BenchFailed(f"{name} ended with {process.returncode}:\n{self.log_end(name)}")
        self._running.remove((name, process))

    def log_end(self, name: str) -> str:
        lines = (self.directory / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-15:])

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End one of them: SIGTERM, and SIGKILL if that does not help."""
        process.terminate()
        try:
            process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._running = [(n, p) for n, p in self._running if p is not process]

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End one of them without a warning, as a failing machine does."""
        process.kill()
        process.wait()
        self._running = [(n, p) for n, p in self._running if p is not process]

    def stop_all(self) -> None:
        with self._beneath:
            for _, process in reversed(self._running.copy()):
                self.stop(process)


@contextlib.contextmanager
def processes() -> Iterator[Processes]:
    """An empty set of processes; whatever is started in it is ended, however this ends."""
    directory = Path(tempfile.mkdtemp(prefix="mesos-py-bench-"))
    directory.chmod(0o755)  # tasks may run as other users
    running = Processes(directory)
    try:
        yield running
    finally:
        running.stop_all()
        shutil.rmtree(directory, ignore_errors=True)
