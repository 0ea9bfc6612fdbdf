"""Requests to a web server (Debian's Apache) beside a hog, sent by httperf one after the other.

Both are tasks of the same size on one agent.  Each request makes the server compress a page:
some milliseconds of processor time.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.isolation.tasks import Tasks
from bench.processes import LOOPBACK, BenchFailed, Processes, processes

NEEDS: Final = ("apache2", "httperf", "chrt", "setsid")
MODULES: Final = Path("/usr/lib/apache2/modules")
SPINNING: Final = 256
OWN_CORE: Final = "own core"
# One request after the other: so many for each second that a run is to take, and with the
# hog without isolation, where each may take seconds, so many.
REQUESTS_PER_S: Final = 10
REQUESTS_UNISOLATED_PER_S: Final = 0.5
PAGE_BYTES: Final = 500_000
SIZE: Final = "cpus:1;mem:512"
AGENT: Final = "cpus:2;mem:2048"
READY_WITHIN_S: Final = 60.0
# As many daemons would: each process leads a session, so that no automatic grouping of
# sessions by the kernel (sched_autogroup) makes them one.
HOG: Final = (
    "i=0; while [ $i -lt {spinning} ]; do setsid sh -c 'while :; do :; done' & i=$((i+1));"
    " done; wait"
)
NOTES: Final = (
    "latency: httperf runs at real-time priority, as if it were another machine; each process of"
    " the hog leads a session of its own, or sched_autogroup would make one group of them;"
    " what shares leave is that the kernel divides those of the hog among the cores: a server"
    " of one thread gets two thirds of its core from equal shares on two",
)
CONFIG: Final = """
ServerRoot "{directory}"
ServerName bench
Listen {address}:{port}
PidFile "{directory}/pid"
ErrorLog "{directory}/error.log"
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule filter_module {modules}/mod_filter.so
LoadModule deflate_module {modules}/mod_deflate.so
User nobody
Group nogroup
DocumentRoot "{directory}/pages"
SetOutputFilter DEFLATE
"""


@dataclass
class Latencies:
    """Median milliseconds per request of each run: "no hog", and beside it "cgroups",
    "own core" (control groups, and the server has asked for whole cores) and "posix"."""

    by: dict[str, list[float]] = field(default_factory=dict)

    @property
    def alone(self) -> float:
        return statistics.median(self.by["no hog"])


def measure(root: str, runs: int, seconds: float, spinning: int) -> Latencies:
    missing = [name for name in NEEDS if shutil.which(name) is None]
    if missing:
        raise BenchFailed(f"needs {', '.join(missing)}")
    found = Latencies()
    for kind in ("cgroups", OWN_CORE, "posix"):
        isolation = "cgroups" if kind == OWN_CORE else kind
        with processes() as running:
            port = _site(running.directory)
            _, master = running.daemon("master")
            flags = ["--master", master, "--resources", AGENT, "--isolation", isolation]
            running.daemon("agent", *flags, "--tasks-on-exit=end", "--cgroups-root", root)
            hog = HOG.replace("{spinning}", str(spinning))
            asyncio.run(
                _beside(running, master, port, kind, hog, found, runs=runs, seconds=seconds)
            )
    return found


async def _beside(
    running: Processes,
    master: str,
    port: int,
    kind: str,
    command: str,
    found: Latencies,
    *,
    runs: int,
    seconds: float,
) -> None:
    web = ["apache2", "-DFOREGROUND", "-f", str(running.directory / "httpd.conf")]
    async with Tasks(master) as tasks:
        labels = {"whole_cores": "true"} if kind == OWN_CORE else {}
        await tasks.start(SIZE, ("web", web), **labels)
        await asyncio.to_thread(_wait_for, port)
        count = max(5, int(REQUESTS_PER_S * seconds))
        await asyncio.to_thread(_requests, port, count)  # warms up
        for number in range(runs):
            if kind == "cgroups":
                alone = await asyncio.to_thread(_requests, port, count)
                found.by.setdefault("no hog", []).append(alone)
            hog = f"hog-{number}"
            await tasks.start(SIZE, (hog, command))
            await asyncio.sleep(0.5)  # until all of them spin
            if kind == "posix":
                count = max(3, int(REQUESTS_UNISOLATED_PER_S * seconds))
            beside = await asyncio.to_thread(_requests, port, count)
            found.by.setdefault(kind, []).append(beside)
            await tasks.kill(hog)
        await tasks.kill("web")


def _site(directory: Path) -> int:
    """Write the server's files; the port that it is to use."""
    pages = directory / "pages"
    pages.mkdir(mode=0o755)
    words = [f"{word:x}" for word in random.Random(1).sample(range(10**6), 1000)]
    chosen = random.Random(2).choices(words, k=PAGE_BYTES // 5)
    (pages / "page.html").write_text(" ".join(chosen)[:PAGE_BYTES])
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port: int = free.getsockname()[1]
    text = CONFIG.format(directory=directory, address=LOOPBACK, port=port, modules=MODULES)
    (directory / "httpd.conf").write_text(text)
    return port


def _wait_for(port: int) -> None:
    until_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until_s:
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise BenchFailed("the web server did not get ready")


def _requests(port: int, count: int) -> float:
    """Send requests; their median time in milliseconds."""
    command = ["chrt", "-f", "10", "httperf", "--hog", "--server", LOOPBACK, "--port", str(port)]
    command += ["--uri", "/page.html", "--num-conns", str(count)]
    command += ["--add-header", "Accept-Encoding: gzip\\n", "--timeout", "60"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ)
    median = re.search(r"^Connection time \[ms\]:.* median ([\d.]+)", done.stdout, re.MULTILINE)
    replies = re.search(r"^Reply status:.* 2xx=(\d+)", done.stdout, re.MULTILINE)
    if median is None or replies is None or int(replies[1]) < count:
        raise BenchFailed(f"httperf: {done.stdout}{done.stderr}")
    return float(median[1])
