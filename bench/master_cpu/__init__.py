"""The master's CPU time per task, next to that of a server that only moves the messages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.processes import Processes, processes
from bench.report import Result, Row
from bench.stats import Spread

MODULES = "bench.master_cpu"


@dataclass(frozen=True)
class Load:
    """The cluster that is played."""

    agents: int = 500
    frameworks: int = 20
    roles: int = 5
    slots: int = 4
    warm_up_s: float = 8.0
    window_s: float = 4.0
    windows: int = 5


QUICK = Load(agents=20, frameworks=4, roles=2, warm_up_s=0.3, window_s=0.5, windows=2)


def run(quick: bool) -> Result:
    load = QUICK if quick else Load()
    with processes() as running:
        windows = measure_master(running, load)
        echoes = [measure_echo(running, number) for number in range(load.windows)]
    return result(load, windows, echoes)


def measure_master(running: Processes, load: Load, prefix: tuple[str, ...] = ()) -> list[Any]:
    """The windows, each with the CPU time, the tasks and the traffic in it."""
    process, address = running.daemon("master", prefix=prefix)
    argv = [sys.executable, "-m", f"{MODULES}.load", "--master", address]
    argv += ["--master-pid", str(process.pid), "--record", str(running.directory)]
    for name in ("agents", "frameworks", "roles", "slots", "warm_up_s", "window_s", "windows"):
        argv += [f"--{name.replace('_', '-')}", str(getattr(load, name))]
    within_s = 60 + load.warm_up_s + 10 * load.windows * load.window_s
    windows: list[Any] = running.run("load", argv, within_s)
    running.stop(process)
    return windows


def measure_echo(running: Processes, number: int) -> Any:
    """The CPU time of the echo server for the messages of one window."""
    recording = running.directory / f"window-{number}.pickle"
    port_file = running.directory / f"echo-{number}.port"
    argv = [sys.executable, "-m", f"{MODULES}.echo", "--recording", str(recording)]
    name = f"echo-{number}"
    process = running.start(name, [*argv, "--port-file", str(port_file)])
    port = running.wait_for(port_file, process, name)
    argv = [sys.executable, "-m", f"{MODULES}.replay", "--recording", str(recording)]
    argv += ["--server", f"127.0.0.1:{port}", "--server-pid", str(process.pid)]
    found = running.run(f"replay-{number}", argv, 120)
    running.stop(process)
    return found


def result(load: Load, windows: list[Any], echoes: list[Any]) -> Result:
    master = Spread.of([w["cpu_s"] / w["tasks"] * 1e6 for w in windows])
    echo = Spread.of(
        [e["cpu_s"] / w["tasks"] * 1e6 for w, e in zip(windows, echoes, strict=True)]
    )
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
        parameters={**vars(load)},
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
            batch = Spread.of(
                [t[f"entries_{way}"] / max(1, t[f"messages_{way}"]) for t in traffic]
            )
            what = f"messages {way}, {kind} streams, per task"
            rows.append(
                Row(what, per_task, "", digits=2, note=f"{batch.median:.1f} entries in each")
            )
    return rows


def recordings(directory: Path) -> list[Path]:
    return sorted(directory.glob("window-*.pickle"))
