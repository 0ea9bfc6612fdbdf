"""Processes that are instances of one scheduler, each in the test's hands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.kit.local import LIMIT_S, environment
from tests.kit.waiting import until

ROOT: Final = Path(__file__).parents[2]


class Instance:
    """A Python module as a process; its lines, as they come; used in a `with` block."""

    def __init__(self, directory: Path, name: str, module: str, *args: str) -> None:
        self.name = name
        self._log = directory / f"{name}.out"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *args],
                cwd=directory,
                env={**environment(), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lines(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_for(self, text: str, count: int = 1, since: int = 0) -> str:
        """The `count`-th line with `text` in it, of those after the first `since`."""

        def found() -> list[str]:
            return [line for line in self.lines[since:] if text in line]

        until(lambda: len(found()) >= count or not self.alive, LIMIT_S)
        assert len(found()) >= count, f"{self.name} ended without {text!r}: {self.lines[-20:]}"
        return found()[count - 1]

    def kill(self) -> None:
        """SIGKILL, also of one that stands still."""
        self._process.kill()
        self._process.wait(LIMIT_S)

    def pause(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def cont(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Its exit code, once it has ended by itself."""
        return self._process.wait(LIMIT_S)


def one_of(instances: Sequence[Instance], is_it: Callable[[Instance], object]) -> Instance:
    """The first that `is_it` says is the one, once there is one."""

    def found() -> list[Instance]:
        return [each for each in instances if is_it(each)]

    until(found, LIMIT_S)
    return found()[0]
