"""A file system (fsspec, `gated://`) whose moves stand still where a test says, in any process.

::

    gates = Gates(tmp_path, monkeypatch)      # processes started from now on know the scheme
    gates.close("before")                     # the next moves wait before they do anything
    ...
    gates.wait("before")                      # one has come there
    gates.open("before")

It is this machine's files; but not `local` for whoever asks, so that all is done by its calls.
Workers move as they like: agents do not hand the variable on that says where the gates are.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from fsspec.implementations.local import LocalFileSystem

from tests.kit.waiting import until

if TYPE_CHECKING:
    import pytest

Gate = Literal["before", "after"]

_DIRECTORY: Final = "TESTS_GATES"
_METADATA: Final = "Metadata-Version: 2.1\nName: gated\nVersion: 1\n"
_ENTRY_POINTS: Final = "[fsspec.specs]\ngated = tests.kit.gated_files:GatedFiles\n"
_PACKAGES: Final = ("frameworks", "mesos_py", "tests")


class GatedFiles(LocalFileSystem):
    protocol = "gated"
    local_file = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._gates = os.environ.get(_DIRECTORY, "")

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(super()._strip_protocol(str(path).removeprefix("gated://")))

    def unstrip_protocol(self, name: str) -> str:
        return f"gated://{self._strip_protocol(name)}"

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        self._pass("before")
        Path(path1).rename(path2)
        self._pass("after")

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        with Path(path).open("xb" if mode == "create" else "wb") as file:
            file.write(value)

    def _pass(self, gate: Gate) -> None:
        if not self._gates:
            return
        closed = Path(self._gates) / gate
        if closed.exists():
            closed.with_name(f"{gate}-{os.getpid()}").touch()
        while closed.exists():
            time.sleep(0.01)


class Gates:
    """plugins: a directory for PYTHONPATH, in which the packages of this copy are, too: workers
    are given that in which their tracker has found them."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._gates = directory / "moves"
        self._gates.mkdir()
        plugins = directory / "plugins"
        about = plugins / "gated-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(_METADATA)
        (about / "entry_points.txt").write_text(_ENTRY_POINTS)
        for name in _PACKAGES:
            (plugins / name).symlink_to(Path(__file__).parents[2] / name)
        monkeypatch.setenv("PYTHONPATH", str(plugins))
        monkeypatch.setenv(_DIRECTORY, str(self._gates))

    def close(self, gate: Gate) -> None:
        (self._gates / gate).touch()

    def open(self, gate: Gate) -> None:
        (self._gates / gate).unlink()

    def wait(self, gate: Gate, pid: int) -> None:
        """Until that process stands at a gate."""
        until((self._gates / f"{gate}-{pid}").exists)
