"""The programs of tests/kit/pymesos, clients of Mesos that are not ours, in a test's hands."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from tests.kit.cluster import LOOPBACK, ON, Cluster
from tests.kit.waiting import LIMIT_S, until

_HERE: Final = Path(__file__).parent / "pymesos"
_PYTHON: Final = Path(__file__).parents[2] / ".cache/pymesos/bin/python"
# How an executor of pymesos is started.
EXECUTOR: Final = shlex.join([str(_PYTHON), "-I", str(_HERE / "executor.py")])


def need_pymesos(lacking: Callable[[str], NoReturn]) -> None:
    """Skip where tools/setup.sh has not made its environment."""
    if not _PYTHON.exists():
        lacking("pymesos (tools/setup.sh --with-test-packages)")


class Program:
    """One program; what it says is read from a file.  Use it in a `with` block."""

    def __init__(self, directory: Path, name: str, *args: str) -> None:
        directory.mkdir(exist_ok=True)
        number = len(list(directory.iterdir()))
        self._out = directory / f"{number}-{name}.out"
        self._err = directory / f"{number}-{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [_PYTHON, "-I", _HERE / f"{name}.py", *args],
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdin is not None
        self.process.stdin.close()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(LIMIT_S)

    def leave(self) -> int:
        """Let it come to its end; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)

    def tell(self, what: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what).encode() + b"\n")
        self.process.stdin.flush()

    def said(self, what: str) -> list[Any]:
        """All values that it has said of this."""
        lines = self._out.read_text().split("\n")[:-1]
        return [value for name, value in map(json.loads, lines) if name == what]

    def wait(self, what: str, value: object = ..., count: int = 1) -> Any:
        """Until it has said this (so often); the last value."""

        def heard() -> list[Any]:
            return [each for each in self.said(what) if value in (..., each)]

        until(lambda: len(heard()) >= count or self.process.poll() is not None, LIMIT_S)
        found = heard()
        assert len(found) >= count, self.account()
        return found[-1]

    def account(self) -> str:
        """All that it wrote."""
        return f"wrote: {self._out.read_text()} {self._err.read_text()}"


class Scheduler(Program):
    """tests/kit/pymesos/scheduler.py."""

    program = "scheduler"
    # What it says when it has come back.
    returned = "reregistered"

    def __init__(self, directory: Path, master: str, framework_id: str = "", executor: str = ""):
        asked = {"master": master, "id": framework_id, "executor": executor}
        super().__init__(directory, self.program, json.dumps(asked))

    def launch(self, name: str, text: str) -> None:
        """A task with this command or, for an executor, this data."""
        self.tell({"launch": [name, text]})


class MesosHttpScheduler(Scheduler):
    """tests/kit/pymesos/mesoshttp_scheduler.py, which has no executors.

    It sees an event only when the next one comes: `serving(..., echoed=True)`.
    """

    program = "mesoshttp_scheduler"
    returned = "registered"


class TaskProcessing(Program):
    """tests/kit/pymesos/task_processing_program.py."""

    def __init__(
        self, directory: Path, master: str, *, pool: str | None = None, retries: int | None = None
    ) -> None:
        asked = {"master": master, "pool": pool, "retries": retries}
        super().__init__(directory, "task_processing_program", json.dumps(asked))

    def run(self, name: str, command: str, **config: object) -> None:
        """A task, whose id is NAME.1."""
        self.tell({"run": {"name": name, "cmd": command, **config}})

    def until_said(self, what: str, task_id: str) -> tuple[str, str | None]:
        """Until this has come of the task: its agent's id, and the tries that are left."""

        def heard() -> list[Any]:
            return [each for each in self.said(what) if each[0] == task_id]

        until(lambda: heard() or self.process.poll() is not None, LIMIT_S)
        assert heard(), self.account()
        [_, agent_id, tries] = heard()[0]
        return agent_id, tries


class Operator(Program):
    """tests/kit/pymesos/operator_client.py."""

    def __init__(self, directory: Path, kind: str, address: str) -> None:
        super().__init__(directory, "operator_client", kind, address)

    def ask(self, method: str, *arguments: object) -> Any:
        """What is answered."""
        before = len(self.said(method))
        self.tell([method, *arguments])
        return self.wait(method, count=before + 1)


class MesosCli:
    """The `mesos` command, for one master.  tests/kit/pymesos/mesos_cli.py."""

    def __init__(self, directory: Path, master: str) -> None:
        directory.mkdir()
        self._config = directory / "config.toml"
        self._config.write_text(f'[master]\naddress = "{master}"\n[agent]\ntimeout = 60\n')

    def run(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """To its end."""
        return subprocess.run(
            [_PYTHON, "-I", _HERE / "mesos_cli.py", *args],
            env={**os.environ, "MESOS_CLI_CONFIG": str(self._config)},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def said(self, *args: str) -> str:
        """What it prints; it has to succeed."""
        ended = self.run(*args)
        assert (ended.returncode, ended.stderr) == (0, ""), ended
        return ended.stdout

    def table(self, *args: str) -> list[list[str]]:
        """The rows of the table that it prints, by columns, without the heads."""
        lines = self.said(*args).splitlines()[1:]
        return [re.split(r"\s{2,}", line.strip()) for line in lines]


def serving(directory: Path, *, echoed: bool = False) -> Cluster:
    """A cluster whose master says at which port it serves HTTP.

    `echoed`: a heartbeat comes right after each event.
    """
    directory.mkdir()
    flags = {"http_heartbeat_after_event": ON} if echoed else {}
    return Cluster(directory, http_port_file=str(directory / "http.port"), **flags)


def master_of(cluster: Cluster) -> str:
    """Where clients of Mesos find the cluster's master."""
    return f"{LOOPBACK}:{(cluster.directory / 'http.port').read_text().strip()}"


def agent_of(cluster: Cluster, name: str) -> str:
    """Where they find this agent."""
    return f"{LOOPBACK}:{cluster.agent_row(name).agent_info.http_port}"
