"""Containers with networks of their own, for `startup`: as a program, in a namespace that is
its own, so that the agent's bridge and rules are not this machine's.

    unshare --net python -m bench.isolation.networked ROOT RUNS LAUNCHES
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, TypeAlias

from bench.processes import ROOT, BenchFailed

# Milliseconds of each start, by what was measured and by run.
Parts: TypeAlias = dict[str, list[list[float]]]
ISOLATION: Final = "cgroups,network"


def lacks() -> str | None:
    """Why it cannot be measured here."""
    if os.geteuid() != 0:
        return "needs root"
    return None if shutil.which("unshare") else "needs unshare, of util-linux"


def measure(root: str, runs: int, launches: int) -> Parts:
    argv = ["unshare", "--net", sys.executable, "-m", __name__, root, str(runs), str(launches)]
    done = subprocess.run(argv, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BenchFailed(f"{' '.join(argv)}: {done.stderr}")
    found: Parts = json.loads(done.stdout)
    return found


def main() -> None:
    from pyroute2 import IPRoute

    from bench.isolation.startup import start_ours
    from mesos_py.plain_containers import plain_container

    root, runs, launches = sys.argv[1:]
    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname="lo")[0], state="up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    container = plain_container(network="mesos-py")
    print(json.dumps(start_ours(root, ISOLATION, int(runs), int(launches), container)))


if __name__ == "__main__":
    main()
