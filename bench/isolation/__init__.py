"""What isolation is worth, and what it costs.

`latency`: a web server beside a hog of 256 spinning processes, alone, with control groups,
and without.  `startup`: what each kind of container costs to start, beside the floors.
`memory`: what the agent and its warden need for each task that runs.
"""

from __future__ import annotations

from bench.isolation import latency, memory, startup
from bench.isolation.groups import bench_root
from bench.report import Result, Row
from bench.stats import Spread


def run(quick: bool) -> Result:
    with bench_root() as root:
        spinning = 16 if quick else latency.SPINNING
        runs, seconds = (1, 1.0) if quick else (5, 10.0)
        found = latency.measure(root, runs, seconds, spinning)
        starts = startup.measure(root, runs=1 if quick else 5, launches=5 if quick else 100)
        kept = memory.measure(root, tasks=20 if quick else 200)
    grown = {
        name: [100 * (value / found.alone - 1) for value in values]
        for name, values in found.by.items()
    }
    spreads = {name: Spread.of(values) for name, values in grown.items()}
    with_groups, without = spreads["cgroups"].median, spreads["posix"].median
    own_core = spreads[latency.OWN_CORE].median
    return Result(
        name="isolation",
        title=f"isolation: beside {spinning} spinning processes; the cost of a container",
        rows=[
            Row("request, hog under cgroups", Spread.of(found.by["cgroups"]), "ms", digits=2),
            Row(
                "request, the same, server on its own core",
                Spread.of(found.by[latency.OWN_CORE]),
                "ms",
                digits=2,
            ),
            Row("request, no hog, cgroups", Spread.of(found.by["no hog"]), "ms", True, digits=2),
            Row("request, hog without isolation", Spread.of(found.by["posix"]), "ms", digits=2),
            *startup.rows(starts),
            *memory.rows(kept),
        ],
        aim="with the hog under cgroups at most 30 % slower than alone (without: 550 %)",
        reached=f"{with_groups:+.0f} % with shares, {own_core:+.0f} % with a core of its own,"
        f" {without:+.0f} % without",
        met=min(with_groups, own_core) <= 30,
        parameters={"spinning": spinning, "page_bytes": latency.PAGE_BYTES},
        details={"request_ms": found.by, "start_ms": starts.by, "memory_bytes": kept},
        notes=[*latency.NOTES, *starts.notes],
    )
