"""Small jobs of real programs, run without a cluster."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frameworks.mapreduce.job import JobSpec, Program, Shipped
from frameworks.mapreduce.worker.local import AttemptEnded, LocalEvent, LocalOutcome, run_local
from frameworks.mapreduce.worker.reports import TASKS


class Jobs:
    """Of one test: its files are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.events: list[LocalEvent] = []
        self.spec: JobSpec | None = None
        self._number = 0
        (directory / "between").mkdir(parents=True)

    def file(self, name: str, data: str | bytes) -> str:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    def script(self, name: str, text: str) -> Shipped:
        """A file that goes along with the job; executable by its first line alone."""
        return Shipped(self.file(f"shipped/{name}", text), name)

    def run(
        self,
        inputs: str | bytes | tuple[str, ...],
        mapper: str | bytes,
        reducer: str | bytes | None = None,
        *,
        combiner: str | bytes | None = None,
        conf: Mapping[str, str] | None = None,
        parallel: int = 2,
        **more: Any,
    ) -> LocalOutcome:
        """inputs: the text of one, or paths."""
        self._number += 1
        if not isinstance(inputs, tuple):
            inputs = (self.file(f"in-{self._number}.txt", inputs),)
        self.spec = JobSpec(
            job_id=f"job_20261128141500_{self._number:04}",
            name="test",
            user="tester",
            inputs=inputs,
            output=more.pop("output", str(self.output)),
            mapper=_program(mapper),
            combiner=None if combiner is None else _program(combiner),
            reducer=None if reducer is None else _program(reducer),
            reduces=more.pop("reduces", 0 if reducer is None else 1),
            conf=conf or {},
            **more,
        )
        self.events.clear()
        return run_local(
            self.spec, parallel, self.events.append, directory=self.directory / "between"
        )

    @property
    def output(self) -> Path:
        return self.directory / f"out-{self._number}"

    @property
    def parts(self) -> list[bytes]:
        return [path.read_bytes() for path in sorted(self.output.glob("part-*"))]

    @property
    def text(self) -> str:
        return b"".join(self.parts).decode()

    @property
    def ended(self) -> list[AttemptEnded]:
        return [event for event in self.events if isinstance(event, AttemptEnded)]

    def log(self, outcome: LocalOutcome) -> str:
        assert outcome.failure is not None
        return Path(outcome.failure.log).read_text()

    def shell(self, command: str, name: str) -> bytes:
        """What a pipeline makes of the file `name`."""
        with (self.directory / name).open("rb") as stdin:
            return subprocess.run(
                ["bash", "-c", f"set -o pipefail; {command}"],
                stdin=stdin,
                capture_output=True,
                check=True,
                timeout=60,
                env={"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"},
                cwd=self.directory / "shipped" if (self.directory / "shipped").exists() else None,
            ).stdout


def counter(outcome: LocalOutcome, name: str, group: str = TASKS) -> int:
    return outcome.counters.get(group, {}).get(name, 0)


def make_executable(path: Path) -> None:
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _program(what: str | bytes) -> Program:
    return Program(function=what) if isinstance(what, bytes) else Program(command=what)
