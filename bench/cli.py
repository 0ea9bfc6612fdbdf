"""`python -m bench`: run the benches, show and save what they find."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import click
from rich.console import Console

from bench import plot
from bench.processes import ROOT, BenchFailed
from bench.report import Result, machine, save, show

# By name: the module whose `run(quick)` measures, and whose `draw(result, directory)`, if it
# has one, makes pictures of its own.
BENCHES: Final = {
    "launch": "bench.launch",
    "throughput": "bench.throughput",
    "offer_latency": "bench.offer_latency",
    "offer_timeouts": "bench.offer_timeouts",
    "master_cpu": "bench.master_cpu",
    "isolation": "bench.isolation",
    "failover": "bench.failover",
    "scale": "bench.scale",
    "allocation": "bench.allocation",
    "revocation": "bench.revocation",
    "mapreduce": "bench.mapreduce",
    "torque": "bench.torque",
    "webfarm": "bench.webfarm",
    "mpi": "bench.mpi",
    "rdd": "bench.rdd.bench",
    "http": "bench.http",
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHES)))
@click.option("--quick", is_flag=True, help="A few seconds: shows that it works, measures little.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=ROOT / "bench" / "results",
    help="Where NAME.json and NAME.png go.",
)
@click.option(
    "--peer",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A program that runs an Apache Mesos to measure beside us (failover, scale).",
)
@click.option(
    "--peer-load",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A program that puts that Apache Mesos under load (scale; see bench/scale/beside.py).",
)
@click.option("--sizes", help="Of the cluster: numbers of agents, as 1000,5000 (scale).")
@click.option(
    "--front",
    type=click.Choice(["lean", "grpc"]),
    default="lean",
    help="The master's --front (scale).",
)
@click.option("--size-mb", type=click.IntRange(1), help="Of the text (mapreduce, rdd).")
@click.option("--shuffle-mb", type=click.IntRange(1), help="Of what is shuffled (rdd).")
@click.option("--runs", type=click.IntRange(1), help="Of each contender (mapreduce, rdd).")
@click.option(
    "--only",
    type=click.Choice(["throughput", "overhead", "locality", "logistic", "tasks", "shuffle"]),
    help="A part alone (the first three: mapreduce, the others: rdd).",
)
@click.option(
    "--pyspark",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A Python that has PySpark, to measure beside us (rdd).",
)
@click.option(
    "--mesos",
    help="host:port of an Apache Mesos master that runs here, fresh and without agents, to"
    " measure beside us (http).",
)
def main(
    *,
    names: tuple[str, ...],
    quick: bool,
    results: Path,
    peer: Path | None,
    peer_load: Path | None,
    sizes: str | None,
    front: str,
    size_mb: int | None,
    shuffle_mb: int | None,
    runs: int | None,
    only: str | None,
    pyspark: Path | None,
    mesos: str | None,
) -> None:
    """Measure NAMES (all by default), each next to its floor."""
    # Whoever ends this ends what it has started, too.
    signal.signal(signal.SIGTERM, _end)
    console = Console()
    for name in names or BENCHES:
        module = importlib.import_module(BENCHES[name])
        run = cast("Callable[..., Result]", module.run)
        given: tuple[object, ...] = (quick,)
        if name == "failover":
            given = (quick, peer)
        elif name == "scale":
            from bench.scale import SIZES, Choices

            wanted = SIZES if sizes is None else tuple(map(int, sizes.split(",")))
            given = (quick, Choices(wanted, front, peer, peer_load))
        elif name == "mapreduce":
            from bench import mapreduce

            text_mb = size_mb or mapreduce.SIZE_MB
            given = (quick, mapreduce.Choices(text_mb, runs or mapreduce.RUNS, only))
        elif name == "rdd":
            from bench.rdd import bench as rdd

            sizes_mb = (size_mb or rdd.SIZE_MB, shuffle_mb or rdd.SHUFFLE_MB)
            given = (quick, rdd.Choices(*sizes_mb, runs or rdd.RUNS, pyspark, only))
        elif name == "http":
            from bench import http

            given = (quick, http.Choices(mesos))
        where = machine()
        if max(where["load_average_before"][0], 0) > 0.5 * (os.cpu_count() or 1):
            console.print("This machine is busy: the figures are those of a busy machine.")
        with console.status(f"measuring {name} ..."):
            try:
                result = run(*given)
            except BenchFailed as error:
                raise click.ClickException(f"{name}: {error}") from None
        show(result, console)
        path = save(result, {**where, "quick": quick}, results)
        plot.draw(result, path.with_suffix(".png"))
        if hasattr(module, "draw"):
            module.draw(result, results)
        console.print(f"{path} and .png", style="dim", highlight=False)


def _end(*_: object) -> None:
    """Once: `timeout` says it to a process and to its group, and the second must not end what
    the first has begun."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + signal.SIGTERM)
