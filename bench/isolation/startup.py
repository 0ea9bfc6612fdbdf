"""What it costs to start and end a container that runs `true`, of each kind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.isolation import dockered, networked
from bench.launch import AGENT, ARGV, Launch, Run
from bench.launch import measure as launch_all
from bench.processes import BenchFailed, processes
from bench.report import Row
from bench.stats import Spread, percentile
from mesos_py.v1.types_pb2 import ContainerInfo

OURS: Final = {"process": "posix", "cgroup": "cgroups"}
NETWORK: Final = "cgroup and network"
DOCKER: Final = "docker"


@dataclass
class Starts:
    """Milliseconds of each start, by what was started and by run."""

    by: dict[str, list[list[float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def measure(root: str, runs: int, launches: int) -> Starts:
    found = Starts()
    for name, isolation in OURS.items():
        for part, values in start_ours(root, isolation, runs, launches).items():
            found.by[f"{name}: {part}"] = values
    if (lacking := networked.lacks()) is not None:
        found.notes.append(f"containers with a network of their own: {lacking}")
    else:
        for part, values in networked.measure(root, runs, launches).items():
            found.by[f"{NETWORK}: {part}"] = values
    _floor(found, "fork, exec, wait", _fork_and_exec, runs, launches)
    few = max(2, launches // 10)
    with processes() as running:
        bundle = running.directory / "bundle"
        if shutil.which("runc") is None:
            found.notes.append("runc is not installed: not measured")
        else:
            _bundle(bundle, root)
            _floor(found, "runc run", lambda: _runc(bundle), runs, few)
    if (lacking := dockered.lacks()) is not None:
        found.notes.append(f"docker containers: {lacking}")
    else:
        ours, found.by[dockered.FLOOR] = dockered.measure(root, runs, few)
        for part, values in ours.items():
            found.by[f"{DOCKER}: {part}"] = values
    return found


def rows(found: Starts) -> list[Row]:
    made = []
    for name, by_run in found.by.items():
        value = Spread.of([percentile(values, 50) for values in by_run])
        made.append(Row(f"start: {name}", value, "ms", name not in _OURS_ROWS, digits=2))
    return made


def start_ours(
    root: str,
    isolation: str,
    runs: int,
    launches: int,
    container: ContainerInfo | None = None,
    more_flags: Sequence[str] = (),
) -> networked.Parts:
    with processes() as running:
        _, master = running.daemon("master")
        flags = ["--master", master, "--resources", AGENT, "--isolation", isolation]
        flags += ["--tasks-on-exit=end", "--cgroups-root", root, *more_flags]
        running.daemon("agent", *flags)
        made: list[Run] = asyncio.run(launch_all(master, runs, launches, container))
    return {
        part: [[value(one) for one in run.launches] for run in made]
        for part, value in _PARTS.items()
    }


_PARTS: Final[dict[str, Callable[[Launch], float]]] = {
    "agent to process": lambda one: one.running_at_agent - one.starting_at_agent,
    "accept to RUNNING": lambda one: one.running,
}
_OURS_ROWS: Final = {f"{name}: {part}" for name in (*OURS, NETWORK, DOCKER) for part in _PARTS}


def _floor(found: Starts, name: str, start: Callable[[], None], runs: int, launches: int) -> None:
    by_run = []
    start()  # warms up
    for _ in range(runs):
        values = []
        for _ in range(launches):
            began = time.perf_counter()
            start()
            values.append((time.perf_counter() - began) * 1e3)
        by_run.append(values)
    found.by[name] = by_run


def _fork_and_exec() -> None:
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(ARGV[0], ARGV)
        finally:
            os._exit(127)
    os.waitpid(pid, 0)


def _bundle(bundle: Path, root: str) -> None:
    """A container of this machine's own programs."""
    rootfs = bundle / "rootfs"
    for name in ("usr", "proc", "dev", "sys", "tmp"):
        (rootfs / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (rootfs / name).symlink_to(f"usr/{name}")
    subprocess.run(["runc", "spec"], cwd=bundle, check=True)
    file = bundle / "config.json"
    config = json.loads(file.read_text())
    config["process"].update(args=ARGV, terminal=False)
    config["mounts"] = [each for each in config["mounts"] if each["type"] != "cgroup"]
    config["mounts"].append(
        {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]}
    )
    config["linux"]["cgroupsPath"] = f"/{root}/runc"
    file.write_text(json.dumps(config))


def _runc(bundle: Path) -> None:
    name = f"bench-{os.getpid()}-{time.monotonic_ns()}"
    _run(["runc", "--root", str(bundle.with_name("runc")), "run", "--bundle", str(bundle), name])


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise BenchFailed(f"{' '.join(command)}: {done.stderr}")
