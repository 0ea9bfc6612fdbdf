"""`mesos-py local`: a cluster on this machine, for as long as it is wanted."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from mesos_py.cli.exits import Exit, of_signal
from mesos_py.cli.keeper import Child, Keeper, kept
from mesos_py.cli.options import MASTER_VARIABLE
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.files import DirectoryLock

LOOPBACK: Final = "127.0.0.1"
# Where a command that is run finds the master's HTTP.
HTTP_VARIABLE: Final = "MESOS_PY_MASTER_HTTP"
# Only files tell that a daemon is ready; looking costs a few microseconds.
LOOK_EVERY_S: Final = 0.01
READY_WITHIN_S: Final = 60.0
# More for each agent: they start together, on as many cores as there are.
READY_EACH_S: Final = 2.0
DAEMON_GRACE_S: Final = 10.0
COMMAND_GRACE_S: Final = 15.0
LOG_LINES_SHOWN: Final = 15


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    agents: int
    resources: str | None
    attributes: str | None
    port: int
    http_port: int
    work_dir: Path | None
    command: tuple[str, ...]


@click.command(
    short_help=SUMMARIES["local"],
    context_settings={"allow_interspersed_args": False},
)
@click.option("--agents", type=click.IntRange(0, 1000), default=1, show_default=True, metavar="N")
@click.option(
    "--resources",
    metavar="TEXT",
    help="What each agent has, such as 'cpus:4;mem:1024', or 'cpus:2;cpus(ads):2' for what is "
    "reserved for a role; ports are divided among them.  "
    "[default: this machine's, divided; at least 2 cpus each]",
)
@click.option("--attributes", metavar="TEXT", help="Attributes of each agent, such as 'rack:a'.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Where the master listens; 0 picks a port.  With 5060 clients find it by themselves.",
)
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Where the master serves the Mesos v1 HTTP API (usual: 5050); 0 picks a port.",
)
@click.option(
    "--work-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep sandboxes and logs here.  [default: a temporary one, removed at the end]",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    agents: int,
    resources: str | None,
    attributes: str | None,
    port: int,
    http_port: int,
    work_dir: Path | None,
    command: tuple[str, ...],
) -> int:
    """Run a master and agents on this machine's loopback address.

    Prints `ready master=HOST:PORT` on stdout once all agents have registered, and goes
    on until Ctrl-C or SIGTERM.

    With COMMAND (best after `--`) it prints that on stderr, runs COMMAND with
    MESOS_PY_MASTER set (and MESOS_PY_MASTER_HTTP, for clients of the Mesos v1 HTTP API),
    and ends with its exit code.  Nothing that was started stays
    behind, however this ends.
    """
    if command and shutil.which(command[0]) is None:
        raise InvalidValue("COMMAND", command[0], "no such program")
    plan = Plan(agents, resources, attributes, port, http_port, work_dir, command)
    return kept(lambda control: _with_directory(plan, Keeper(control)))


def _with_directory(plan: Plan, keeper: Keeper) -> int:
    if plan.work_dir is not None:
        # Also makes it.  Not while another one has its daemons' files there.
        DirectoryLock(plan.work_dir)
        return Cluster(plan, keeper, plan.work_dir.absolute()).run()
    directory = Path(tempfile.mkdtemp(prefix="mesos-py-local-"))
    # Tasks may run as other users: they must reach their sandboxes.
    directory.chmod(0o755)
    try:
        return Cluster(plan, keeper, directory).run()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Cluster:
    """The daemons, in their order: they end in the reverse one."""

    def __init__(self, plan: Plan, keeper: Keeper, directory: Path) -> None:
        self._plan = plan
        self._keeper = keeper
        self._directory = directory
        self._daemons: list[Child] = []
        self._command: Child | None = None

    def run(self) -> int:
        """Start everything, wait for the end, end everything; the exit code."""
        try:
            master = self._start_all()
            if self._keeper.asked is not None:
                return of_signal(self._keeper.asked)
            click.echo(f"ready master={master}", err=bool(self._plan.command))
            return self._run_command(master) if self._plan.command else self._stay(master)
        finally:
            self._end()

    # ---- Starting --------------------------------------------------------

    def _start_all(self) -> str:
        from mesos_py.cli.shares import shares, this_machine

        machine = this_machine(self._directory)
        parts = shares(machine, self._plan.agents, self._plan.resources or "")
        ports = ["--port", str(self._plan.port), "--http-port", str(self._plan.http_port)]
        self._http_port_file.unlink(missing_ok=True)
        self._start("master", [*ports, "--http-port-file", str(self._http_port_file)])
        self._wait_for_port_files()
        master = f"{LOOPBACK}:{_port_in(self._port_file('master'))}"
        if self._keeper.asked is None:
            for number, part in enumerate(parts, 1):
                flags = ["--port", "0", "--http-port", "0"]
                flags += ["--master", master, "--resources", part]
                # A cluster to try things with leaves nothing running, however it ends.
                flags += ["--tasks-on-exit", "end"]
                if self._plan.attributes is not None:
                    flags += ["--attributes", self._plan.attributes]
                # Names of their own: frameworks tell agents apart by host.
                name = f"agent-{number}"
                self._start(name, [*flags, "--hostname", name])
            self._wait_for_port_files()
        return master

    def _start(self, name: str, flags: Sequence[str]) -> None:
        port_file = self._port_file(name)
        port_file.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "mesos_py.cli", name.partition("-")[0], "--ip", LOOPBACK]
        argv += ["--work-dir", str(self._directory / name), "--port-file", str(port_file), *flags]
        log = self._directory / f"{name}.log"
        self._daemons.append(self._keeper.start(name, argv, log=log))

    def _wait_for_port_files(self) -> None:
        def missing() -> list[str]:
            return [d.name for d in self._daemons if not self._port_file(d.name).exists()]

        limit_s = READY_WITHIN_S + READY_EACH_S * len(self._daemons)
        self._keeper.wait_within(
            lambda: not missing() or self._broken() is not None or self._keeper.asked is not None,
            limit_s,
            poll_s=LOOK_EVERY_S,
        )
        self._raise_if_broken()
        if self._keeper.asked is None and (late := missing()):
            raise MesosPyError(f"not ready within {limit_s:.0f} s: {', '.join(late)}")

    def _port_file(self, name: str) -> Path:
        return self._directory / f"{name}.port"

    @property
    def _http_port_file(self) -> Path:
        return self._directory / "master.http-port"

    @property
    def _http(self) -> str:
        """Where clients of HTTP find the master."""
        return f"{LOOPBACK}:{_port_in(self._http_port_file)}"

    # ---- Waiting ---------------------------------------------------------

    def _stay(self, master: str) -> int:
        agents = f"{self._plan.agents} agent{'s' if self._plan.agents != 1 else ''}"
        click.echo(
            f"A master and {agents} are running; their logs are in {self._directory}.\n"
            f"In another terminal: export {MASTER_VARIABLE}={master}\n"
            f"For clients of the Mesos v1 HTTP API the master is at {self._http}.\n"
            "Ctrl-C ends them.",
            err=True,
        )
        self._keeper.wait(lambda: self._keeper.asked is not None or self._broken() is not None)
        self._raise_if_broken()
        return Exit.OK

    def _run_command(self, master: str) -> int:
        keeper = self._keeper
        env = {**os.environ, MASTER_VARIABLE: master, HTTP_VARIABLE: self._http}
        try:
            child = keeper.start(self._plan.command[0], self._plan.command, env=env)
        except OSError as error:
            raise InvalidValue(
                "COMMAND", self._plan.command[0], error.strerror or str(error)
            ) from error
        self._command = child
        # Ctrl-C reaches the command without us, and is its to act on.
        keeper.on_terminal_signal = lambda number: None
        keeper.on_signal = lambda number: self._pass_on(child, number)
        keeper.wait(
            lambda: not child.alive or keeper.asked is not None or self._broken() is not None
        )
        if child.alive and keeper.asked is not None:
            keeper.wait_within(lambda: not child.alive, COMMAND_GRACE_S)
        if child.alive:
            self._raise_if_broken()
            keeper.end([child], COMMAND_GRACE_S)
        code = child.code if child.code is not None else -signal.SIGKILL
        return code if code >= 0 else of_signal(-code)

    def _pass_on(self, child: Child, number: int) -> None:
        child.signal(number)
        if self._keeper.asked is None:
            self._keeper.asked = number

    def _broken(self) -> Child | None:
        return next((daemon for daemon in self._daemons if not daemon.alive), None)

    def _raise_if_broken(self) -> None:
        daemon = self._broken()
        if daemon is None:
            return
        if daemon.log is not None:
            lines = daemon.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
            for line in lines:
                click.echo(f"{daemon.name}: {line}", err=True)
        raise MesosPyError(f"{daemon.name} {daemon.ending()}")

    # ---- Ending ----------------------------------------------------------

    def _end(self) -> None:
        # The command first, since it may have tasks to end; the master last, since
        # agents report to it.
        if self._command is not None:
            self._keeper.end([self._command], COMMAND_GRACE_S)
        agents = [daemon for daemon in self._daemons if daemon.name != "master"]
        self._keeper.end(agents, DAEMON_GRACE_S)
        self._keeper.end(self._daemons, DAEMON_GRACE_S)
        self._keeper.sweep()


def _port_in(file: Path) -> int:
    try:
        return int(file.read_text().rpartition(":")[2])
    except FileNotFoundError:
        return 0  # its daemon was asked to end before it was ready, or has ended
