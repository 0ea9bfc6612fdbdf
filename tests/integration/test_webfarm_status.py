"""`mesos-py webfarm status` of a farm that the test plays, on a terminal and on none."""

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl

import pytest

from frameworks.webfarm.core.policy import Decision
from frameworks.webfarm.core.report import Report
from frameworks.webfarm.state import StateDirectory
from mesos_py.cli.exits import Exit
from tests.kit.local import END_WITH_THE_TESTS, LIMIT_S, MESOS_PY, environment
from tests.kit.webfarm_world import World

ROWS, COLUMNS = 24, 120


@pytest.fixture
def state(tmp_path) -> StateDirectory:
    return StateDirectory(tmp_path / "farm")


def show(state: StateDirectory, servers: int, **more: object) -> None:
    """As a wrapper does that runs, and is this process."""
    world = World(wanted=servers).steps(3)
    report = Report(target=40.0)
    report.measured(30.0 * servers, Decision(servers, ""))
    state.show({**report.of(world.farm, world.reading(), world.now_s), **more})


class Screen:
    """What a command writes to a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.text = ""

    def until(self, words: str) -> None:
        """What comes from now on."""
        self.text, end_s = "", time.monotonic() + LIMIT_S
        while words not in self.text:
            left_s = end_s - time.monotonic()
            ready, _, _ = select.select([self._fd], [], [], max(0.0, left_s))
            assert ready, f"{words!r} does not come: {self.text!r}"
            self.text += os.read(self._fd, 65536).decode(errors="replace")


@contextmanager
def on_terminal(state: StateDirectory) -> Iterator[tuple[Screen, subprocess.Popen[bytes]]]:
    """`status --watch` there; ended with the block."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    argv = [*END_WITH_THE_TESTS, *MESOS_PY, "webfarm", "status", "--watch"]
    process = subprocess.Popen(
        [*argv, "--state-dir", str(state.path)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment(), "TERM": "xterm"},
    )
    os.close(theirs)
    try:
        yield Screen(ours), process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_terminal_shows_the_farm_as_it_changes_until_ctrl_c(state):
    show(state, 1)
    with on_terminal(state) as (screen, process):
        screen.until("1 of 1 servers; 30.0 sessions/s")
        show(state, 3)
        screen.until("3 of 3 servers; 90.0 sessions/s")
        # The wrapper is killed.
        show(state, 2, pid=ended_pid())
        screen.until("2 of 2 servers")
        screen.until("nobody looks after it")
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == Exit.INTERRUPTED


def test_a_farm_that_ends_ends_the_view_of_it(state):
    show(state, 1)
    with on_terminal(state) as (screen, process):
        screen.until("1 of 1 servers")
        state.clear()
        screen.until("there is none")
        assert process.wait(LIMIT_S) == Exit.NEGATIVE


def test_without_a_terminal_it_is_said_once(state):
    show(state, 2, pid=ended_pid())
    argv = [*MESOS_PY, "webfarm", "status", "--watch", "--state-dir", str(state.path)]
    ended = subprocess.run(argv, capture_output=True, text=True, env=environment(), timeout=LIMIT_S)
    assert ended.returncode == Exit.NEGATIVE
    assert "2 of 2 servers" in ended.stdout
    assert "nobody looks after it" in ended.stdout
