"""`mesos-py webfarm status`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from frameworks.webfarm.state import StateDirectory
from mesos_py.cli import output
from mesos_py.cli.exits import Exit
from mesos_py.cli.output import Column

if TYPE_CHECKING:
    from rich.console import RenderableType

LOOK_EVERY_S: Final = 0.5


def show(directory: Path, *, watch: bool, as_json: bool) -> int:
    """Returns the exit code.  Raises NotFound if there is no farm."""
    state = StateDirectory(directory)
    status = _status(state)
    if as_json:
        click.echo(json.dumps(status))
    elif watch and output.on_terminal():
        _watch(state)
    else:
        for line in headline(status):
            click.echo(line)
        output.show(status["servers"], COLUMNS, as_json=False, empty="no servers")
    return Exit.OK if status["running"] else Exit.NEGATIVE


def headline(status: dict[str, Any]) -> list[str]:
    """What is said above the table of servers."""
    rate, target = status["rate"], status["target"]
    serving = sum(each["phase"] == "serving" for each in status["servers"])
    load = "load not measured" if rate is None else f"{rate:.1f} sessions/s"
    if rate is not None and serving:
        load += f", {rate / serving:.1f} per server (target {target:g})"
    lines = [f"{serving} of {status['wanted']} servers; {load}"]
    if (balancer := status["balancer"]) is not None:
        counts = f"{balancer['sessions']} sessions, {balancer['errors']} answered with an error"
        lines.append(f"haproxy: {counts}, {balancer['retries']} tried again")
    else:
        lines.append("haproxy: no answer")
    if restarts := status["balancer_restarts"]:
        away = f"{status['balancer_away_s']:.1f} s"
        lines.append(f"haproxy was started again {restarts} times; nobody was served for {away}")
    rollout = status["rollout"]
    site = rollout["site"] or "(none: a page of ours)"
    state = "" if rollout["outcome"] == "none" else f"; last deployment: {rollout['outcome']}"
    why = f": {rollout['why']}" if rollout["why"] else ""
    lines.append(f"site: {site} (version {rollout['version']}){state}{why}")
    if status["missing"]:
        waits = status["waits"][0] if status["waits"] else "no offer so far"
        lines.append(f"{status['missing']} more to be launched; waits: {waits}")
    if status["trouble"]:
        lines.append(f"last trouble: {status['trouble']}")
    if not status["running"]:
        ago = max(0, round(time.time() - status["at_s"]))
        lines.append(f"nobody looks after it: this was {ago} s ago; `mesos-py webfarm up` goes on")
    return lines


def _watch(state: StateDirectory) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    def now() -> RenderableType:
        status = _status(state)
        lines = Text("\n".join(headline(status)))
        return Group(lines, output.table(status["servers"], COLUMNS))

    with Live(now(), console=Console(highlight=False), auto_refresh=False) as live:
        while True:
            time.sleep(LOOK_EVERY_S)
            live.update(now(), refresh=True)


def _status(state: StateDirectory) -> dict[str, Any]:
    status = state.status()
    if status is None:
        raise state.no_farm()
    return status


def _rate(row: Any) -> str:
    return output.NOTHING if row["rate"] is None else f"{row['rate']:.1f}"


COLUMNS: Final = (
    Column("SERVER", lambda row: row["task_id"]),
    Column("HOST", lambda row: row["host"]),
    Column("AT", lambda row: row["at"]),
    Column("VERSION", lambda row: str(row["version"]), right=True),
    Column("PHASE", lambda row: row["phase"]),
    Column("WELL", lambda row: "yes" if row["well"] else "no"),
    Column("OPEN", lambda row: str(row["sessions"]), right=True),
    Column("PER S", _rate, right=True),
)


__all__ = ["headline", "show"]
