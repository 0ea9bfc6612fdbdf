"""The master's HTTP: what events cost over it, in JSON and in protobuf, beside gRPC and a bare
server; and what dashboards that poll it do to offers."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import psutil

from bench.http.dashboard import Polled
from bench.http.forms import FORMS
from bench.http.load import Rates
from bench.processes import LOOPBACK, BenchFailed, Processes, processes
from bench.report import Result, Row
from bench.stats import Spread, percentile
from mesos_py.address import Address, parse_address

# The 99th percentile of an offer's delay may grow by so much beside dashboards.
AIM: Final = 0.2
QUICK_RATES: Final = Rates(agents=10, slots=2, rounds=1, warm_s=0.05, window_s=0.2)
QUICK_POLLED: Final = Polled(
    agents=5,
    tasks_per_agent=4,
    clients=2,
    every_s=0.05,
    probes=2,
    task_s=(0.0, 0.01),
    rounds=1,
    window_s=0.5,
    settle_s=0.1,
)
_ASKED_S: Final = 30.0
# What each phase counts.
_PHASES: Final = {
    "offers": "offers",
    "updates": "status updates",
    "answers": "updates that answer RECONCILE",
}


@dataclass(frozen=True)
class Choices:
    """`mesos`: host:port of an Apache Mesos master on this machine, to measure beside.  It must
    not have had agents: the bench brings its own, and those stay known to it."""

    mesos: str | None = None


def run(quick: bool, choices: Choices | None = None) -> Result:
    chosen = choices if choices is not None else Choices()
    rates, polled = (QUICK_RATES, QUICK_POLLED) if quick else (Rates(), Polled())
    with processes() as running:
        found = measure_rates(running, rates, chosen.mesos)
    with processes() as running:
        beside = measure_polled(running, polled)
    return result(rates, found, polled, beside)


def measure_rates(running: Processes, rates: Rates, mesos: str | None) -> list[Any]:
    """A window for each server, form and phase in each round (load.Measured)."""
    argv = _master(running, "bench.http.load")
    port_file = running.directory / "floor.port"
    floor = running.start(
        "floor", [sys.executable, "-m", "bench.http.floor", "--port-file", str(port_file)]
    )
    port = running.wait_for(port_file, floor, "floor")
    argv += ["--floor", f"{LOOPBACK}:{port}", "--floor-pid", str(floor.pid)]
    if mesos is not None:
        pid = _listening(parse_address(mesos, "--mesos"))
        _require_alone(mesos)
        argv += ["--mesos", mesos, "--mesos-pid", str(pid)]
    found: list[Any] = running.run("load", [*argv, "--rates", json.dumps(asdict(rates))], 600)
    return found


def measure_polled(running: Processes, polled: Polled) -> Any:
    """Windows without and with dashboards, and what those have seen."""
    argv = _master(running, "bench.http.dashboard")
    return running.run("dashboard", [*argv, "--polled", json.dumps(asdict(polled))], 600)


def _master(running: Processes, module: str) -> list[str]:
    """A master of its own; how `module` is told of it."""
    port_file = running.directory / "http.port"
    # What expires on a busy machine would be missing from a closed loop.
    flags = ("--http-port-file", str(port_file), "--offer-timeout", "0")
    process, grpc = running.daemon("master", *flags)
    http = f"{LOOPBACK}:{port_file.read_text().strip()}"
    argv = [sys.executable, "-m", module, "--grpc", grpc, "--http", http]
    return [*argv, "--pid", str(process.pid)]


def _listening(address: Address) -> int:
    """The process that listens there."""
    for each in psutil.net_connections("tcp"):
        listens = each.status == psutil.CONN_LISTEN and each.pid is not None
        if listens and each.laddr and each.laddr.port == address.port:
            return int(each.pid or 0)
    raise BenchFailed(f"nobody listens on port {address.port} of this machine")


def _require_alone(mesos: str) -> None:
    """Raises BenchFailed if it has agents, or those of an earlier run: what it says of them would
    be in the way."""
    try:
        with urllib.request.urlopen(f"http://{mesos}/metrics/snapshot", timeout=_ASKED_S) as answer:
            numbers = json.load(answer)
    except (OSError, ValueError) as error:
        raise BenchFailed(f"--mesos: {mesos!r}: {error}") from None
    agents = sum(numbers.get(f"master/slaves_{which}", 0) for which in ("active", "inactive"))
    if agents:
        raise BenchFailed(
            f"--mesos: {mesos!r}: knows {agents:g} agents; give a fresh master without any"
        )


# ---- What was found ------------------------------------------------------------------------


def result(rates: Rates, found: list[Any], polled: Polled, beside: Any) -> Result:
    without, with_ = (_delays(beside["windows"], on) for on in (False, True))
    before_ms, after_ms = percentile(without, 99), percentile(with_, 99)
    change = after_ms / before_ms - 1
    notes = [
        "CPU is that of the server for each event, with the calls that answer it: one DECLINE for"
        " each OFFERS event, one ACKNOWLEDGE for each update, over HTTP each a request. A master's"
        " also has what it says to agents and decides; the floor only moves the bytes.",
        "What an HTTP form costs more than gRPC is the price of HTTP itself.",
    ]
    return Result(
        name="http",
        title=f"http: {rates.agents} emulated agents; {polled.clients} dashboards beside "
        f"{polled.agents * polled.tasks_per_agent} tasks",
        rows=[*rate_rows(found), *polled_rows(beside)],
        aim=f"dashboards change the 99th percentile of an offer's delay by less than {AIM:.0%}",
        reached=f"99th percentile {before_ms:.1f} ms without dashboards, {after_ms:.1f} ms with"
        f" ({change:+.0%})",
        met=change < AIM,
        parameters={"rates": asdict(rates), "polled": asdict(polled)},
        details={"rates": found, "polled": beside},
        notes=notes,
    )


def rate_rows(found: Sequence[Any]) -> list[Row]:
    """Rates and costs by phase and form, each beside what else was measured in the same round."""
    windows: dict[tuple[str, str, str], list[Any]] = {}
    for each in found:
        if each["events"]:
            windows.setdefault((each["phase"], each["form"], each["server"]), []).append(each)
    rows = []
    for phase, what in _PHASES.items():
        for form in FORMS:
            ours, floor, mesos = (
                windows.get((phase, form, server), []) for server in ("master", "floor", "mesos")
            )
            if not ours:
                continue
            rows += _own_rows(f"{what}, {form}", ours)
            rows += _beside("bare aiohttp, the same bytes", ours, floor, floor=True)
            if FORMS[form] is not None:
                rows += _ratio("gRPC's", ours, windows.get((phase, "gRPC", "master"), []))
            rows += _mesos_rows(ours, mesos)
    return rows


def _own_rows(what: str, windows: Sequence[Any]) -> list[Row]:
    size = f"{windows[-1]['record_bytes']} bytes in a record"
    return [
        Row(what, Spread.of(list(map(_rate, windows))), "1/s", digits=0, note=size),
        Row("  CPU of each", Spread.of(list(map(_cpu_us, windows))), "µs"),
    ]


def _mesos_rows(ours: Sequence[Any], mesos: Sequence[Any]) -> list[Row]:
    if not mesos:
        return []
    note = f"{mesos[-1]['record_events']:.0f} in a record"
    rate = Row("  Apache Mesos", Spread.of(list(map(_rate, mesos))), "1/s", digits=0, note=note)
    return [rate, *_beside("its CPU of each", ours, mesos)]


def _beside(what: str, ours: Sequence[Any], other: Sequence[Any], floor: bool = False) -> list[Row]:
    """The CPU of each event there, and ours as so many times that."""
    if not other:
        return []
    cost = Spread.of(list(map(_cpu_us, other)))
    return [Row(f"  {what}", cost, "µs", floor=floor), *_ratio("that", ours, other)]


def _ratio(what: str, ours: Sequence[Any], other: Sequence[Any]) -> list[Row]:
    """The CPU of each event as so many times that of the same round there."""
    if not other:
        return []
    pairs = zip(ours, other, strict=False)
    ratios = [_cpu_us(mine) / max(_cpu_us(its), 0.1) for mine, its in pairs]
    return [Row(f"  our CPU by {what}", Spread.of(ratios), "x", digits=2)]


def _rate(window: Any) -> float:
    return float(window["events"] / window["seconds"])


def _cpu_us(window: Any) -> float:
    return float(window["cpu_s"] / window["events"] * 1e6)


def polled_rows(beside: Any) -> list[Row]:
    """Delays of offers without and with dashboards."""
    rows = []
    for percent in (50, 99):
        for on in (False, True):
            windows = [each["took_ms"] for each in beside["windows"] if each["on"] == on]
            spread = Spread.of([percentile(each, percent) for each in windows if each])
            what = f"an offer beside dashboards, p{percent}" if on else f"an offer, p{percent}"
            rows.append(Row(what, spread, "ms", floor=not on))
    for on in (False, True):
        shares = [
            100 * each["cpu_s"] / each["seconds"] for each in beside["windows"] if each["on"] == on
        ]
        what = "master's CPU with dashboards" if on else "master's CPU without"
        rows.append(Row(what, Spread.of(shares), "%", digits=0))
    pages = beside["pages"]
    seconds = sum(each["seconds"] for each in beside["windows"] if each["on"])
    note = f"{pages['answers'] / seconds:.0f} answers per second, {pages['refused']} refused"
    spread = Spread(pages["p50_ms"], pages["p50_ms"], pages["p99_ms"], 1)
    rows.append(Row("a page, median and 99th percentile", spread, "ms", note=note))
    return rows


def _delays(windows: Sequence[Any], on: bool) -> list[float]:
    return [took for each in windows if each["on"] == on for took in each["took_ms"]]
