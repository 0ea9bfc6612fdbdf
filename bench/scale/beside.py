"""A real Apache Mesos under the same load, measured by programs that are given."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.processes import LOOPBACK, BenchFailed, Processes
from bench.scale.peers import Load

_WARM_S: Final = 40
_MEASURE_S: Final = 30
_WITHIN_S: Final = 330


def measure_peer(program: Path, load_program: Path, running: Processes, load: Load) -> Any:
    """Its master alone, run by `program` (see failover/peer.py: `PROGRAM --agents 0 --port P`
    prints one line of JSON when it is ready, with `masters`, each with its `endpoint`), under

    `LOAD_PROGRAM --master HOST:PORT --agents N --frameworks N --per-agent N --task-secs S
    --warm S --measure S --probes N --port P --json FILE`, which plays the same agents and
    frameworks, has a probe start a task of 1 s as often, and writes JSON with
    `probe_total_minus_1s_ms` (p50, p95, or null), `launches_per_s`, `master_cpu_percent` and
    `master_rss_mb`.
    """
    port = _free_port()
    argv = [sys.executable, str(program), "--agents", "0", "--port", str(port)]
    master = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with closing(_Ended(master)):
        assert master.stdout is not None
        line = master.stdout.readline()
        if not line:
            raise BenchFailed("the peer's program has ended")
        endpoint = json.loads(line)["masters"][0]["endpoint"]
        out = running.directory / "peer.json"
        argv = [sys.executable, str(load_program), "--master", endpoint]
        for name, value in (
            ("agents", load.agents),
            ("frameworks", load.frameworks),
            ("per-agent", load.slots),
            ("task-secs", load.task_s),
            ("warm", _WARM_S),
            ("measure", _MEASURE_S),
            ("probes", load.probes),
            ("port", _free_port()),
            ("json", out),
        ):
            argv += [f"--{name}", str(value)]
        try:
            subprocess.run(argv, timeout=_WITHIN_S, check=True, stdout=subprocess.DEVNULL)
        except subprocess.SubprocessError as error:
            raise BenchFailed(f"the peer's load: {type(error).__name__}") from None
        return json.loads(out.read_text())


class _Ended:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=30)


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as free:
        return int(free.getsockname()[1])
