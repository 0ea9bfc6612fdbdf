"""Containers of a dockerd's own, for `startup`: through an agent, and by `docker run`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.isolation.networked import Parts
from bench.launch import ARGV
from bench.processes import BenchFailed
from mesos_py.containers import docker_container

FLOOR: Final = "docker run"
_TOOLS: Final = ("docker", "dockerd", "busybox", "ip", "nsenter", "unshare")


def lacks() -> str | None:
    """Why it cannot be measured here."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return f"needs {', '.join(missing)}" if missing else None


def measure(root: str, runs: int, launches: int) -> tuple[Parts, list[list[float]]]:
    """Of an agent's docker containers; and of `docker run`, on the same dockerd."""
    from bench.isolation.startup import start_ours
    from tests.kit.dockerd import IMAGE, PrivateDockerd

    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        with PrivateDockerd(Path(directory, "dockerd")) as dockerd:
            container = docker_container(IMAGE, network="none")
            ours = start_ours(root, "posix", runs, launches, container, dockerd.flags)
            argv = ["docker", "-H", f"unix://{dockerd.socket}", "run", "--rm", "--init"]
            argv += ["--network", "none", IMAGE, *ARGV]
            floors = [[_run(argv) for _ in range(launches)] for _ in range(runs)]
    return ours, floors


def _run(argv: list[str]) -> float:
    """Milliseconds from its start to its end."""
    began = time.perf_counter()
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise BenchFailed(f"{' '.join(argv)}: {done.stderr}")
    return (time.perf_counter() - began) * 1e3
