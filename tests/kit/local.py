"""A cluster of real daemons for tests, and `mesos-py` commands run against it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

MESOS_PY: Final = (sys.executable, "-m", "mesos_py.cli")
LIMIT_S: Final = 60.0


def environment(master: str | None = None) -> dict[str, str]:
    """Ours, without what would lead a command elsewhere."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("MESOS_PY_")}
    if master is not None:
        env["MESOS_PY_MASTER"] = master
    return env


# Put before a command: a run of tests that is killed must leave nothing behind.  Not by a
# function of ours between fork and exec: with threads of gRPC about, that may crash.
END_WITH_THE_TESTS: Final = ("setpriv", "--pdeathsig", "TERM")


class Local:
    """`mesos-py local` as a child process; use it in a `with` block.

    `master` is its address.  Everything is in `directory`, where `cli` works too.
    """

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.work_dir = directory / "work"
        argv = [*END_WITH_THE_TESTS, *MESOS_PY, "local", "--work-dir", str(self.work_dir), *options]
        self.process = subprocess.Popen(
            argv,
            cwd=directory,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.master = self._ready()

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _ready(self) -> str:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        if not select.select([self.process.stdout], [], [], LIMIT_S)[0]:
            self.end()
            raise AssertionError(f"local is not ready within {LIMIT_S:.0f} s")
        line = self.process.stdout.readline().decode()
        if not line.startswith("ready master="):
            _, err = self.process.communicate()
            raise AssertionError(f"local did not start: {line!r} {err.decode()}")
        return line.removeprefix("ready master=").strip()

    def end(self) -> int:
        """Ask it to end, wait, and return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode

    def start(self, *args: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a command with this master; its output is piped unless `options` say else."""
        return subprocess.Popen(
            [*MESOS_PY, *args],
            cwd=self.directory,
            env={**environment(self.master), **options.pop("env", {})},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def cli(self, *args: str, **options: Any) -> Ended:
        """Run a command to its end."""
        process = self.start(*args, **options)
        out, err = process.communicate(timeout=LIMIT_S)
        return Ended(process.returncode, out, err)

    def json(self, *args: str) -> list[dict[str, Any]]:
        """The rows that a listing command prints."""
        ended = self.cli(*args, "--json")
        assert ended.code == 0, ended.err
        rows: list[dict[str, Any]] = json.loads(ended.out)
        return rows


class Ended:
    """How a command ended and what it wrote."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err.decode()

    def __repr__(self) -> str:
        return f"Ended({self.code}, {self.out[-500:]!r}, {self.err[-500:]!r})"
