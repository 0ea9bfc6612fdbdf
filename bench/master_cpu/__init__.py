"""The master's CPU time per task, next to that of a server that only moves the messages."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.master_cpu.peers import Load
from bench.processes import LOOPBACK, Processes, processes
from bench.report import Result, Row
from bench.stats import Spread

MODULES = "bench.master_cpu"


QUICK = Load(agents=20, frameworks=4, roles=2, warm_up_s=0.3, window_s=0.5, runs=2)


def run(quick: bool) -> Result:
    load = QUICK if quick else Load()
    windows, echoes = [], []
    # A master and an echo in turn, so that whatever else the machine does meets both.
    for _ in range(load.runs):
        with processes() as running:
            recording = running.directory / "recording"
            windows.append(measure_master(running, load, recording))
            echoes.append(measure_echo(running, recording))
    return result(load, windows, echoes)


def measure_master(running: Processes, load: Load, recording: Path) -> Any:
    """The CPU time, the tasks and the traffic of one window."""
    process, address = running.daemon("master")
    argv = [sys.executable, "-m", f"{MODULES}.load", "--master", address]
    argv += ["--master-pid", str(process.pid), "--recording", str(recording)]
    argv += ["--load", json.dumps(asdict(load))]
    window = running.run("load", argv, 120 + 3 * (load.warm_up_s + load.window_s))
    running.stop(process)
    return window


def measure_echo(running: Processes, recording: Path) -> Any:
    """The CPU time of the echo server for the messages of one window."""
    name = "echo"
    port_file = running.directory / "echo.port"
    argv = [sys.executable, "-m", f"{MODULES}.echo", "--recording", str(recording)]
    process = running.start(name, [*argv, "--port-file", str(port_file)])
    port = running.wait_for(port_file, process, name)
    argv = [sys.executable, "-m", f"{MODULES}.replay", "--recording", str(recording)]
    argv += ["--server", f"{LOOPBACK}:{port}", "--server-pid", str(process.pid)]
    found = running.run("replay", argv, 120)
    running.stop(process)
    return found


def result(load: Load, windows: list[Any], echoes: list[Any]) -> Result:
    master = Spread.of([w["cpu_s"] / w["tasks"] * 1e6 for w in windows])
    echo = Spread.of([e["cpu_s"] / w["tasks"] * 1e6 for w, e in zip(windows, echoes, strict=True)])
    ratios = [w["cpu_s"] / e["cpu_s"] for w, e in zip(windows, echoes, strict=True)]
    ratio = Spread.of(ratios)
    rate = Spread.of([w["tasks"] / w["seconds"] for w in windows])
    rows = [
        Row("master, CPU per task", master, "µs"),
        Row("grpc.aio echo of the same messages", echo, "µs", floor=True),
        Row("ratio", ratio, "x", digits=2),
        Row("tasks per second meanwhile", rate, "1/s", digits=0),
        *traffic_rows(windows),
    ]
    return Result(
        name="master_cpu",
        title=f"master_cpu: {load.agents} emulated agents of {load.slots} slots, "
        f"{load.frameworks} frameworks",
        rows=rows,
        aim="within 3 times the echo's",
        reached=f"{ratio.median:.2f} times the echo's CPU",
        met=ratio.median <= 3,
        parameters=asdict(load),
        details={"windows": windows, "echoes": echoes},
    )


def traffic_rows(windows: list[Any]) -> list[Row]:
    rows = []
    for kind in ("agent", "framework"):
        for way in ("in", "out"):
            traffic = [w["traffic"][kind] for w in windows]
            per_task = Spread.of(
                [t[f"messages_{way}"] / w["tasks"] for t, w in zip(traffic, windows, strict=True)]
            )
            batch = Spread.of([t[f"entries_{way}"] / max(1, t[f"messages_{way}"]) for t in traffic])
            what = f"messages {way}, {kind} streams, per task"
            rows.append(
                Row(what, per_task, "", digits=2, note=f"{batch.median:.1f} entries in each")
            )
    return rows
