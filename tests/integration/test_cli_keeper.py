"""The keeper: whatever ends it, nothing that came from it goes on."""

import functools
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mesos_py.cli.keeper import Child
from tests.kit.waiting import gone, until

# A child that says it is there, ignores SIGTERM if told to, and never ends by itself.
STUBBORN = "trap '' TERM; echo $$ > {file}; while :; do sleep 60 & wait $!; done"
POLITE = "echo $$ > {file}; exec sleep 600"
# One that leaves its parent and its session, as a daemon does.
DAEMON = "setsid sh -c 'setsid sleep 600 & echo $! > {file}' &\nwait; exec sleep 600"

PROGRAM = """
import sys
from pathlib import Path
from mesos_py.cli.keeper import Keeper, kept

def body(control):
    keeper = Keeper(control)
    for number, script in enumerate(sys.argv[2:]):
        keeper.start(f"child-{number}", ["sh", "-c", script], log=Path(sys.argv[1]) / "log")
    Path(sys.argv[1], "up").touch()
    keeper.wait(lambda: keeper.asked is not None)
    keeper.end(keeper.children, 0.3)
    keeper.sweep()
    return 40

sys.exit(kept(body))
"""


class Kept:
    """A running program with a keeper, and the pids of what it keeps."""

    def __init__(self, directory: Path, scripts: list[str]) -> None:
        self.files = [directory / f"pid{number}" for number in range(len(scripts))]
        filled = [s.format(file=f) for s, f in zip(scripts, self.files, strict=True)]
        self.front = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(directory), *filled]
        )
        until(lambda: all(f.exists() and f.read_text().strip() for f in self.files))
        self.pids = [int(f.read_text()) for f in self.files]
        until((directory / "up").exists)

    @property
    def keeper(self) -> int:
        (pid,) = Path(f"/proc/{self.front.pid}/task/{self.front.pid}/children").read_text().split()
        return int(pid)

    def all_gone(self) -> None:
        for pid in self.pids:
            until(functools.partial(gone, pid))


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., Kept]]:
    started: list[Kept] = []

    def make(*scripts: str) -> Kept:
        started.append(Kept(tmp_path, list(scripts)))
        return started[-1]

    yield make
    for each in started:
        if each.front.poll() is None:
            each.front.terminate()
        each.front.wait()
        each.all_gone()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_front_ends_everything_and_the_code_is_the_keepers(start, number):
    kept = start(POLITE, POLITE)
    kept.front.send_signal(number)
    assert kept.front.wait() == 40
    kept.all_gone()


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(start):
    kept = start(STUBBORN, POLITE)
    kept.front.terminate()
    assert kept.front.wait() == 40
    kept.all_gone()


def test_a_child_of_a_child_that_moved_away_is_found(start):
    kept = start(DAEMON)
    kept.front.terminate()
    assert kept.front.wait() == 40
    kept.all_gone()


def test_when_the_front_is_killed_outright_nothing_stays(start):
    kept = start(POLITE, STUBBORN, DAEMON)
    keeper = kept.keeper
    kept.front.kill()
    assert kept.front.wait() == -signal.SIGKILL
    kept.all_gone()
    until(lambda: gone(keeper))


def test_when_the_keeper_is_killed_outright_its_children_are_told(start):
    kept = start(POLITE)
    os.kill(kept.keeper, signal.SIGKILL)
    assert kept.front.wait() == 128 + signal.SIGKILL
    kept.all_gone()


def test_a_child_that_has_ended_when_it_is_signalled_is_known_to_have_ended():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    child = Child("true", process)
    child.signal(signal.SIGTERM)
    assert (child.alive, child.code) == (False, 0)
