"""A census of the Python standard library, taken by many small tasks on a cluster.

    mesos-py local --agents 3 -- python -m examples.stdlib_census

The files of the library are dealt out to tasks, each of which counts lines, bytes and
definitions (census_count.py) and prints them.  The framework below launches the tasks
on whatever it is offered; when one has finished, its output is read through the master.
In the end all is added up by package and compared with a count made right here.
"""

from __future__ import annotations

import json
import queue
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import mesos_py
from examples import census_count
from mesos_py import (
    TASK_DROPPED,
    TASK_FINISHED,
    TASK_LOST,
    FrameworkInfo,
    MesosPyError,
    Offer,
    Resources,
    SchedulerDriver,
    TaskInfo,
    TaskStatus,
)
from mesos_py.operator import OperatorClient

EACH = Resources.of(cpus=0.5, mem=64)
PACKAGES_SHOWN = 12

Counts = tuple[int, int, int]


class Census(mesos_py.Scheduler):
    """Launches one task for each list of files, and reports ends on a queue."""

    def __init__(self, chunks: Sequence[list[str]]) -> None:
        self.waiting = {f"count-{number:03d}": files for number, files in enumerate(chunks)}
        self.launched: dict[str, list[str]] = {}
        self.agents: dict[str, str] = {}
        self.ends: queue.SimpleQueue[TaskStatus | str] = queue.SimpleQueue()

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        placed, _ = mesos_py.match_offers(offers, list(self.waiting), lambda _: EACH)
        for offer, task_ids in placed:
            driver.launch_tasks(offer, [self._task(task_id, offer) for task_id in task_ids])
        driver.set_needs_offers(bool(self.waiting))

    def _task(self, task_id: str, offer: Offer) -> TaskInfo:
        files = self.launched[task_id] = self.waiting.pop(task_id)
        self.agents[task_id] = offer.agent_id.value
        argv = [sys.executable, census_count.__file__, *files]
        return mesos_py.command_task(task_id, task_id, offer, argv, resources=EACH)

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        task_id = status.task_id.value
        if not mesos_py.is_terminal(status.state) or task_id not in self.launched:
            return
        files = self.launched.pop(task_id)
        if status.state in (TASK_LOST, TASK_DROPPED):
            # Its offer or its agent went away: that is no fault of the task.
            self.waiting[task_id] = files
            driver.set_needs_offers(True)
        else:
            self.ends.put(status)

    def error(self, driver: SchedulerDriver, message: str) -> None:
        self.ends.put(message)


def library_files() -> dict[str, str]:
    """The library's source files, each with the package or module it belongs to."""
    root = Path(sysconfig.get_paths()["stdlib"])
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if not {"site-packages", "dist-packages", "__pycache__"}.intersection(parts):
            found[str(path)] = parts[0].removesuffix(".py")
    return found


def dealt(files: Iterable[str], tasks: int) -> list[list[str]]:
    """The files in `tasks` lists of about the same number of bytes."""
    by_size = sorted(files, key=lambda file: (-Path(file).stat().st_size, file))
    lists: list[list[str]] = [[] for _ in range(tasks)]
    sizes = [0] * tasks
    for file in by_size:
        smallest = sizes.index(min(sizes))
        lists[smallest].append(file)
        sizes[smallest] += Path(file).stat().st_size
    return [each for each in lists if each]


def take(census: Census, master: str, console: Console, patience_s: float) -> dict[str, Counts]:
    """Run the framework until every task has finished; the counts of all files."""
    counted: dict[str, Counts] = {}
    total = len(census.waiting)
    framework = FrameworkInfo(name="stdlib-census", failover_timeout=0)
    driver = SchedulerDriver(census, framework, master, connect_timeout_s=10)
    driver.state_waiting([("count", EACH, total)])
    bar = Progress(
        TextColumn("counting"), BarColumn(), MofNCompleteColumn(), console=console, transient=True
    )
    with OperatorClient(master) as operator:
        operator.version()  # fails at once where there is no master; a driver would wait
        driver.start()
        try:
            with bar:
                row = bar.add_task("", total=total)
                for number in range(1, total + 1):
                    end = next_end(census, operator, driver, patience_s)
                    counted.update(result_of(end, driver, operator))
                    bar.update(row, completed=number)
                    if not console.is_terminal and (number % 20 == 0 or number == total):
                        console.print(f"counting: {number} of {total} tasks have finished")
        finally:
            driver.stop()
            driver.join()
    return counted


def next_end(
    census: Census, operator: OperatorClient, driver: SchedulerDriver, patience_s: float
) -> TaskStatus:
    """The next task that has ended; with the master's reasons if there is none for long."""
    try:
        end = census.ends.get(timeout=patience_s)
    except queue.Empty:
        findings = [
            text for each in operator.explain(driver.framework_id) for text in each.findings
        ]
        raise click.ClickException(
            f"no task has ended for {patience_s:.0f} s; the master says: {'; '.join(findings)}"
        ) from None
    if isinstance(end, str):
        raise click.ClickException(f"the framework has ended: {end}")
    return end


def result_of(
    status: TaskStatus, driver: SchedulerDriver, operator: OperatorClient
) -> dict[str, Counts]:
    """What a finished task has printed; an error for one that failed."""
    task_id = status.task_id.value

    def output(name: str) -> str:
        parts = operator.read_log(driver.framework_id, task_id, name)
        return b"".join(part.data for part in parts).decode()

    if status.state != TASK_FINISHED:
        state = mesos_py.short_name(status.state)
        raise click.ClickException(f"task {task_id}: {state}: {status.message}\n{output('stderr')}")
    return {
        file: (counts[0], counts[1], counts[2])
        for file, counts in json.loads(output("stdout")).items()
    }


def by_package(counted: dict[str, Counts], package_of: dict[str, str]) -> dict[str, Counts]:
    """Sums over the files of each package, the one with the most lines first."""
    sums: dict[str, Counts] = {}
    for file, counts in counted.items():
        old = sums.get(package_of[file], (0, 0, 0))
        sums[package_of[file]] = (old[0] + counts[0], old[1] + counts[1], old[2] + counts[2])
    return dict(sorted(sums.items(), key=lambda item: (-item[1][0], item[0])))


def total_of(sums: Iterable[Counts]) -> Counts:
    lines, sizes, definitions = zip(*sums, strict=True)
    return sum(lines), sum(sizes), sum(definitions)


def placement_table(census: Census, files: dict[str, list[str]]) -> Table:
    """How many tasks and files each agent has had."""
    table = Table("agent", "tasks", "files", title="Where the tasks ran", title_justify="left")
    tasks = Counter(census.agents.values())
    for agent_id in sorted(tasks):
        ran = sum(len(files[task]) for task, agent in census.agents.items() if agent == agent_id)
        table.add_row(agent_id, str(tasks[agent_id]), str(ran))
    return table


def result_table(sums: dict[str, Counts]) -> Table:
    """The packages with the most lines, the others together, and the total."""
    table = Table(title="The standard library", title_justify="left", show_footer=False)
    table.add_column("package")
    for title in ("lines", "bytes", "definitions"):
        table.add_column(title, justify="right")
    rows = list(sums.items())
    for name, counts in rows[:PACKAGES_SHOWN]:
        table.add_row(name, *(f"{count:,}" for count in counts))
    if others := rows[PACKAGES_SHOWN:]:
        counts = total_of(counts for _, counts in others)
        table.add_row(f"{len(others)} others", *(f"{count:,}" for count in counts))
    table.add_section()
    table.add_row("all", *(f"{count:,}" for count in total_of(sums.values())), style="bold")
    return table


@click.command()
@click.option("--master", envvar="MESOS_PY_MASTER", required=True, metavar="HOST:PORT")
@click.option("--tasks", type=click.IntRange(1, 1000), default=80, show_default=True)
@click.option("--patience", type=float, default=60, show_default=True, help="Seconds without news.")
def main(master: str, tasks: int, patience: float) -> None:
    """Count the lines, bytes and definitions of the standard library on a cluster."""
    console = Console(width=None if sys.stdout.isatty() else 80)
    package_of = library_files()
    chunks = dealt(package_of, tasks)
    files = {f"count-{number:03d}": each for number, each in enumerate(chunks)}
    census = Census(chunks)
    console.print(
        f"{len(package_of)} files of Python {sys.version.split()[0]}, {len(chunks)} tasks"
    )
    started = time.monotonic()
    try:
        counted = take(census, master, console, patience)
    except MesosPyError as error:
        raise click.ClickException(str(error)) from error
    seconds = time.monotonic() - started
    sums = by_package(counted, package_of)
    console.print(placement_table(census, files))
    console.print(result_table(sums))
    here = by_package(census_count.count_all(package_of), package_of)
    if sums != here:
        differing = [name for name in here if sums.get(name) != here[name]]
        raise click.ClickException(f"a count made here differs for: {', '.join(differing)}")
    console.print(f"The same as a count made here. {len(chunks)} tasks took {seconds:.1f} s.")


if __name__ == "__main__":
    main()
