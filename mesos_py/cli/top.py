"""`mesos-py top`: what containers use, as it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

from mesos_py.cli import completing, output
from mesos_py.cli.options import DURATION, json_option, with_master
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue, Unavailable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from mesos_py.operator import OperatorClient
    from mesos_py.usage import Names
    from mesos_py.v1.operator_pb2 import Response

MIN_INTERVAL_S: Final = 0.1
# Agents have this long to answer, which is less than `--timeout` is by default.
AGENTS_S: Final = 2.0
_GROUPS: Final = ("container", "framework", "agent")
_ORDERS: Final = (
    *("cpu", "mem", "peak", "pids", "throttled", "read", "write", "rx", "tx", "disk", "name"),
)


@click.command(short_help=SUMMARIES["top"])
@click.option(
    "--framework",
    metavar="NAME|ID",
    help="Only containers of this framework.",
    shell_complete=completing.frameworks,
)
@click.option(
    "--agent",
    metavar="ID|HOST",
    help="Only containers on this agent.",
    shell_complete=completing.agents,
)
@click.option(
    "--by",
    "group",
    type=click.Choice(_GROUPS),
    default="container",
    show_default=True,
    help="Sums for each framework or agent instead.",
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(_ORDERS),
    default="cpu",
    show_default=True,
    help="What comes first.",
)
@click.option(
    "--interval",
    "interval_s",
    type=DURATION,
    default="2s",
    show_default=True,
    help="Time between two looks, from which rates are made.",
)
@click.option("--once", is_flag=True, help="Show it once.  [default: if this is no terminal]")
@json_option
@with_master
def command(
    client: OperatorClient,
    *,
    framework: str | None,
    agent: str | None,
    group: str,
    order: str,
    interval_s: float,
    once: bool,
    as_json: bool,
) -> None:
    """Show what containers use: processor, memory, disks and network, the busiest first.

    Rates are those between two looks.  Which numbers there are depends on the agents'
    isolators; processor time, memory and processes are always known.  Ctrl-C ends it.
    """
    from mesos_py.cli import find

    if interval_s < MIN_INTERVAL_S:
        raise InvalidValue("--interval", interval_s, f"must be at least {MIN_INTERVAL_S:g} s")
    framework_id = find.framework(client, framework).id.value if framework else None
    agent_id = find.agent(client, agent) if agent else None
    looks = Looks(client, framework_id, agent_id, group, order)
    if as_json or once or not output.on_terminal():
        looks.take()
        time.sleep(interval_s)
        looks.take()
        output.show(looks.rows, columns(looks.rows, group), as_json=as_json, empty="no containers")
        for line in looks.remarks:
            click.echo(f"mesos-py top: {line}", err=True)
        return
    from rich.console import Console

    watch(looks, Console(highlight=False), lambda: time.sleep(interval_s))


class Looks:
    """The last look at the cluster, with rates since the one before it."""

    def __init__(
        self,
        client: OperatorClient,
        framework_id: str | None,
        agent_id: str | None,
        group: str,
        order: str,
    ) -> None:
        self._client = client
        self._framework_id = framework_id
        self._agent_id = agent_id
        self.group = group
        self._order = order
        self._last: Response.GetUsage | None = None
        self.rows: list[Row] = []
        # What is missing in the rows, in sentences.
        self.remarks: list[str] = []

    def take(self) -> None:
        """Ask once more.  Raises what the client raises; the rows stay then."""
        from mesos_py import usage

        found = self._client.usage(self._framework_id, self._agent_id, agents_s=AGENTS_S)
        rows = usage.rows(self._last, found, self._names(found))
        self.rows = list(usage.ordered(usage.summed(rows, self.group), self._order))
        self.remarks = [f"missing: {each.reason}" for each in found.missing]
        if found.left_out:
            self.remarks.append(f"{found.left_out} more containers; ask for one framework or agent")
        self._last = found

    def _names(self, found: Response.GetUsage) -> Names:
        from mesos_py.usage import Names

        if not any(agent.containers for agent in found.agents):
            return Names({})
        known = self._client.frameworks().frameworks
        infos = [each.framework_info for each in known]
        return Names({info.id.value: info.name for info in infos})


def watch(looks: Looks, console: Console, pause: Callable[[], None]) -> None:
    """Show it again and again, until Ctrl-C."""
    from rich.live import Live

    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                try:
                    looks.take()
                except Unavailable as error:
                    # It may come back; what was seen last stays in view.
                    looks.remarks = [str(error)]
                live.update(_screen(looks, console), refresh=True)
                pause()
    except KeyboardInterrupt:
        pass


def _screen(looks: Looks, console: Console) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    room = max(1, console.height - 3 - len(looks.remarks))
    shown = looks.rows[:room]
    lines: list[RenderableType] = [_headline(looks, len(shown))]
    lines.append(output.table(shown, columns(looks.rows, looks.group)))
    lines += [Text(line, style="yellow") for line in looks.remarks]
    return Group(*lines)


def _headline(looks: Looks, shown: int) -> RenderableType:
    from rich.text import Text

    listed = looks.rows
    cpu = sum(row["cpu"] or 0.0 for row in listed)
    memory = sum(row["memory"] or 0 for row in listed)
    count = sum(row["containers"] for row in listed)
    cut = f", the first {shown} {looks.group}s" if shown < len(listed) else ""
    text = f"{count} containers: {cpu:.2f} cores, {size(memory)}B{cut}"
    return Text(text, style="bold")


def columns(listed: Sequence[Row], group: str) -> list[Column]:
    """Those that have something to show for some row."""
    title = {"container": "CONTAINER", "framework": "FRAMEWORK", "agent": "AGENT"}[group]
    first = [Column(title, lambda row: row["name"])]
    if group == "container":
        first.append(Column("FRAMEWORK", lambda row: row["framework"], loose=True))
        first.append(Column("HOST", lambda row: row["hostname"]))
    else:
        first.append(Column("COUNT", lambda row: str(row["containers"]), right=True))
    numbers = [
        ("cpu", Column("CPU", lambda row: cores(row["cpu"]), right=True)),
        ("cpus", Column("/CPUS", lambda row: output.amount(row["cpus"]), right=True)),
        ("throttled", Column("THR", lambda row: percent(row["throttled"]), right=True)),
        ("memory", Column("MEM", lambda row: size(row["memory"]), right=True)),
        ("mem", Column("/MEM", lambda row: size(_bytes(row["mem"])), right=True)),
        ("memory_peak", Column("PEAK", lambda row: size(row["memory_peak"]), right=True)),
        ("pids", Column("PIDS", lambda row: output.amount(row["pids"]), right=True)),
        ("io_read", Column("READ/s", lambda row: size(row["io_read"]), right=True)),
        ("io_write", Column("WRITE/s", lambda row: size(row["io_write"]), right=True)),
        ("net_rx", Column("RX/s", lambda row: size(row["net_rx"]), right=True)),
        ("net_tx", Column("TX/s", lambda row: size(row["net_tx"]), right=True)),
        ("disk", Column("DISK", lambda row: size(row["disk"]), right=True)),
    ]
    always = ("cpu", "cpus", "memory", "mem", "pids")
    return first + [
        column
        for name, column in numbers
        if name in always or any(row[name] is not None for row in listed)
    ]


def _bytes(mem_mb: float | None) -> float | None:
    return None if mem_mb is None else mem_mb * 2**20


def cores(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def size(value: float | None) -> str:
    """Bytes with three figures at most: "0", "980", "1.2K", "34M"."""
    if value is None:
        return ""
    for unit in ("", "K", "M", "G", "T"):
        if value < 999.5 or unit == "T":
            break
        value /= 1024
    if unit and value < 9.95:
        return f"{value:.1f}{unit}"
    return f"{value:.0f}{unit}"
