"""A fake master that listens, and a way to run commands against it in this process."""

import json
from collections.abc import Callable, Iterator

import pytest

from mesos_py.cli import main
from tests.unit.mesos_py.cli.fake_master import FakeMaster, serve


@pytest.fixture
def make_master() -> Iterator:
    running = []

    def make() -> FakeMaster:
        master = FakeMaster()
        running.append(serve(master))
        return master

    yield make
    for server, pool in running:
        server.stop(0).wait()
        pool.shutdown()


@pytest.fixture
def master(make_master: Callable[[], FakeMaster], monkeypatch) -> FakeMaster:
    """One that commands find by MESOS_PY_MASTER."""
    found = make_master()
    monkeypatch.setenv("MESOS_PY_MASTER", f"127.0.0.1:{found.port}")
    return found


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch) -> None:
    monkeypatch.delenv("MESOS_PY_DEBUG", raising=False)
    monkeypatch.delenv("MESOS_PY_MASTER", raising=False)
    monkeypatch.setenv("COLUMNS", "80")


class Ended:
    """How a command ended: its code and what it wrote."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.bytes = out
        self.out = out.decode(errors="replace")
        self.err = err.decode()

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def table(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]


@pytest.fixture
def cli(capfdbinary):
    """Run `mesos-py` with these arguments."""

    def run(*args: str) -> Ended:
        code = main.run([str(arg) for arg in args])
        captured = capfdbinary.readouterr()
        return Ended(code, captured.out, captured.err)

    return run
