"""What the contract of isolators needs to try one: containers with real processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from mesos_py.resources import Resources

WITHIN_S: Final = 20.0
LOOK_EVERY_S: Final = 0.005


def wait_for(what: str, done: Callable[[], Any], within_s: float = WITHIN_S) -> Any:
    """Wait until `done` is true; its value.  AssertionError names `what`."""
    until_s = time.monotonic() + within_s
    while not (value := done()):
        assert time.monotonic() < until_s, f"{what}: not within {within_s:g} s"
        time.sleep(LOOK_EVERY_S)
    return value


def runs(pid: int) -> bool:
    """Whether the process is there and has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


class Running:
    """A container whose first process was started as the agent starts one."""

    def __init__(self, container: Any, process: subprocess.Popen[bytes], scratch: Path) -> None:
        self.container_id: str = container.container_id
        self.process = process
        self.scratch = scratch
        # What `watch` has told.
        self.told: list[Any] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    def note(self, name: str) -> str:
        """What the script writes into the file `name` of its working directory."""
        file = self.scratch / name
        wait_for(name, lambda: file.exists() and file.read_text().endswith("\n"))
        return file.read_text().strip()

    def wait(self) -> int:
        """Wait for the end of its first process; the exit code as subprocess has it."""
        return self.process.wait(WITHIN_S)


class IsolatorHarness:
    """Makes isolators of one agent, and containers; ends all that is left at the end."""

    def __init__(
        self, interface: Any, make: Callable[[Any], Any], scratch: Path, flags: Mapping[str, Any]
    ) -> None:
        self.interface = interface
        self._make = make
        self._scratch = scratch
        self._flags = flags
        self._running: list[tuple[Any, Running]] = []
        self._made: list[Any] = []
        # No other test, and no agent of this machine, has it.
        self.agent_id = f"contract-{os.getpid()}-{os.urandom(4).hex()}-S0"

    def isolator(self, agent_id: str | None = None) -> Any:
        """A new one, as an agent has it that was just started; `recover` is still to be called."""
        facts = self.interface.AgentFacts(
            agent_id or self.agent_id,
            str(self._scratch),
            Resources.parse("cpus:4;mem:1024;disk:1024;ports:[31000-31099]"),
            dict(self._flags),
        )
        made = self._make(facts)
        self._made.append(made)
        return made

    def container(
        self,
        container_id: str = "c1",
        resources: str = "cpus:0.5;mem:64;disk:64",
        labels: Mapping[str, str] | None = None,
    ) -> Any:
        sandbox = self._scratch / container_id
        sandbox.mkdir(exist_ok=True)
        return self.interface.Container(
            container_id=container_id,
            framework_id="framework",
            executor_id="executor",
            sandbox=str(sandbox),
            uid=os.geteuid(),
            gid=os.getegid(),
            resources=Resources.parse(resources),
            info=None,
            labels=dict(labels or {}),
        )

    def recovered(self, running: Running, resources: str = "cpus:0.5;mem:64;disk:64") -> Any:
        """The same container as a new run of the agent finds it."""
        return self.interface.Recovered(
            running.container_id,
            "framework",
            "executor",
            running.pid,
            Resources.parse(resources),
            None,
        )

    def start(self, isolator: Any, container: Any, script: str) -> Running:
        """Prepare, start `script` (in sh), isolate and watch."""
        preparation = isolator.prepare(container)
        process = subprocess.Popen(
            ["sh", "-c", script],
            cwd=container.sandbox,
            env={**os.environ, **preparation.environment},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: _enter(preparation),  # noqa: PLW1509 (opens and writes only)
        )
        running = Running(container, process, Path(container.sandbox))
        self._running.append((isolator, running))
        isolator.isolate(container.container_id, process.pid)
        isolator.watch(container.container_id, running.told.append)
        return running

    def finish(self, isolator: Any, running: Running) -> Any:
        """End it as the agent does; what `end` returned."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.process.wait(WITHIN_S)
        limitation = isolator.end(running.container_id)
        isolator.cleanup(running.container_id)
        self._running = [each for each in self._running if each[1] is not running]
        return limitation

    def stop(self, isolator: Any) -> None:
        """Its agent ends in good order."""
        self._made.remove(isolator)
        isolator.close()

    def close(self) -> None:
        for isolator, running in self._running.copy():
            self.finish(isolator, running)
        for isolator in reversed(self._made.copy()):
            self.stop(isolator)


def _enter(preparation: Any) -> None:
    """In the new process, before its program runs."""
    for file in preparation.enter:
        fd = os.open(file, os.O_WRONLY)
        os.write(fd, b"0")
        os.close(fd)
    for file in preparation.namespaces:
        fd = os.open(file, os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(fd, 0) != 0:
            raise OSError(ctypes.get_errno(), f"setns {file}")
        os.close(fd)
    for number, soft, hard in preparation.rlimits:
        resource.setrlimit(number, (soft, hard))
