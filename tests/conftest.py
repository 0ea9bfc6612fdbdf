"""What every test gets: hypothesis profiles, tools that may be missing, the leak check."""

import asyncio
import gc
import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from mesos_py import logs
from tests.kit import faces

CI = os.environ.get("CI") == "true"

# Tests send SIGINT and SIGHUP to what they start.  A shell that runs us in the background has
# us ignore the one, nohup the other, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Nobody here speaks TLS with the world. aiohttp, when imported, reads all the certificates that it
# may need one day: a twelfth of an agent's start.
os.environ["SSL_CERT_FILE"] = os.devnull

# --- hypothesis ---------------------------------------------------------------------------------
# HYPOTHESIS_PROFILE chooses: fast (make test-fast), dev (random, the default), ci (the same
# examples in every run; the default under CI=true), long (for a night). Failures print how to
# repeat them.

_SLOW_MACHINE = (HealthCheck.too_slow,)
settings.register_profile(
    "dev", max_examples=100, deadline=None, print_blob=True, suppress_health_check=_SLOW_MACHINE
)
settings.register_profile(
    "fast", settings.get_profile("dev"), max_examples=20, stateful_step_count=20
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.register_profile(
    "long", settings.get_profile("dev"), max_examples=5000, stateful_step_count=200
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if CI else "dev"))


# --- faces --------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--face", choices=faces.FACES, default="grpc", help="how frameworks come to masters"
    )
    parser.addoption(
        "--part", type=_part, metavar="K/N", help="of the test files every Nth only, from the Kth"
    )


def pytest_configure(config: pytest.Config) -> None:
    faces.choose(config.getoption("--face"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What only one face can do is not tried by another."""
    if faces.is_http():
        kept = [item for item in items if item.get_closest_marker("only_over_grpc") is None]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What all the tests' modules hold stays until the end, so nobody need look through it.

    It is far more than what a test makes; the garbage collections that reading the modules
    sets off, and those of each leak check, would look at all of it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


# --- parts --------------------------------------------------------------------------------------
# What one process per core runs side by side: each reads its own files alone.  (Workers of
# pytest-xdist each read all of them, and their talk costs a millisecond for each test.)

_files_seen = pytest.StashKey[int]()


def _part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not 1 <= int(number) <= int(of):
        raise ValueError(text)
    return int(number), int(of)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    part: tuple[int, int] | None = config.getoption("--part")
    if part is None or not collection_path.match("test_*.py"):
        return None
    seen = config.stash.get(_files_seen, 0)
    config.stash[_files_seen] = seen + 1
    number, of = part
    return True if seen % of != number - 1 else None


# --- missing tools ------------------------------------------------------------------------------


def _lacking(what: str) -> NoReturn:
    if CI:
        pytest.fail(f"needs {what}, and CI must have it", pytrace=False)
    pytest.skip(f"needs {what}")


def _is_missing(tool: str) -> bool:
    if tool == "root":
        return os.geteuid() != 0
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.needs("haproxy", "root")`: skip by name what cannot run here; under CI fail."""
    wanted = [tool for mark in item.iter_markers("needs") for tool in mark.args]
    if missing := [tool for tool in wanted if _is_missing(tool)]:
        _lacking(", ".join(missing))


@pytest.fixture
def lacking() -> Callable[[str], NoReturn]:
    """For a need that is no program: `lacking("cgroup v1")` skips, under CI it fails."""
    return _lacking


# --- leaks --------------------------------------------------------------------------------------
# A test leaves no asyncio task, thread, child process or file descriptor behind. What ends by
# itself a moment later (a socket that gRPC closes, a process that is being reaped) gets GRACE
# seconds: a machine that stands still for some of them has done nothing in these. Fixtures of
# wider scope start before the check's first look: what they hold is no leak.

GRACE = 30.0


# The looks are taken twice for each of ten thousand tests: with Paths they would take several times
# as long.


def _open_files() -> set[str]:
    """Open descriptors as "7 -> target", without the pollers that gRPC keeps for the process."""
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            target = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
        except FileNotFoundError:
            continue  # the descriptor of this very listing
        if target not in ("anon_inode:[eventpoll]", "anon_inode:[eventfd]", "/dev/null"):
            found.add(f"{name} -> {target}")
    return found


def _has_children() -> bool:
    every_kind = 0x40000000  # __WALL: also those whose end is told by no SIGCHLD
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | every_kind)
    except ChildProcessError:
        return False
    return True


def _children() -> set[str]:
    """Our child processes, zombies too. (psutil would read the whole process table for it.)"""
    found: set[str] = set()
    if not _has_children():
        return found  # each thread has a list of its own to read
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            pids = listing.read_text().split()
        except OSError:
            continue  # a thread that has just ended
        for pid in pids:
            try:
                found.add(f"{pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})")
            except OSError:
                continue
    return found


def _strays(below: Path) -> set[str]:
    """Processes that work in a test's directory though they are nobody's children any more."""
    found = set()
    base = str(below)
    for pid in os.listdir("/proc"):  # noqa: PTH208
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            place = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
            if place == base or place.startswith(f"{base}/"):
                found.add(f"{pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})")
        except OSError:
            continue
    return found


def _threads() -> set[str]:
    return {f"{t.name} ({t.ident})" for t in threading.enumerate() if not t.daemon}


def _still_there(probes: dict[str, Callable[[], set[str]]], before: dict[str, set[str]]) -> str:
    leaks = {what: sorted(probe() - before[what]) for what, probe in probes.items()}
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in leaks.items() if names)


@pytest.fixture(autouse=True)
def leak_check(request: pytest.FixtureRequest) -> Iterator[None]:
    probes = {"threads": _threads, "child processes": _children, "open files": _open_files}
    if not {"unit", "property"} & set(request.path.parts):  # these start no daemons
        base: Path = request.getfixturevalue("tmp_path_factory").getbasetemp()
        probes["stray processes"] = lambda: _strays(base)
    before = {what: probe() for what, probe in probes.items()}
    yield
    if not _still_there(probes, before):
        return
    gc.collect()
    until = time.monotonic() + GRACE
    while leaks := _still_there(probes, before):
        if time.monotonic() > until:
            pytest.fail(f"left behind: {leaks}", pytrace=False)
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command that is run in this process sets up its log; the next test is to see warnings."""
    root, ours = logging.getLogger(), logging.getLogger(logs.ROOT)
    handlers, levels = list(root.handlers), (root.level, ours.level)
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
    for logger, level in zip((root, ours), levels, strict=True):
        if logger.level != level:  # it makes every logger forget what it writes
            logger.setLevel(level)


@pytest.fixture
async def task_leak_check() -> AsyncIterator[None]:
    yield
    until = time.monotonic() + GRACE
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        if time.monotonic() > until:
            pytest.fail(f"tasks left behind: {', '.join(sorted(map(repr, tasks)))}", pytrace=False)
        await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def leak_check_asyncio(leak_check: None, request: pytest.FixtureRequest) -> None:
    """Order matters: the loop is set up after, and so closed before, what `leak_check` looks at."""
    if request.node.get_closest_marker("asyncio"):
        request.getfixturevalue("task_leak_check")
