"""The Slurm backend: its daemons, and its commands."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import psutil

from frameworks.torque.backend import BatchError, Daemon, run
from frameworks.torque.core.records import Job, Node, Size
from frameworks.torque.slurm import config, reading
from mesos_py import InvalidValue, logs
from mesos_py.files import write_atomically

log = logs.get("torque.slurm")

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_READY_S: Final = 30.0
_ANSWERS_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.1
_END_S: Final = 10.0
# The longest name of a socket that the kernel takes.
_SOCKET_NAME: Final = 107
_NOT_THERE: Final = ("Invalid node name specified",)
_NO_RESERVATION: Final = ("Requested reservation is invalid",)
_ENDED: Final = ("Invalid job id specified", "Job has already finished", "is already completing")


class Slurm:
    """See `Backend`.  What it starts outlives this process; `start` finds it again."""

    # slurmd, slurmstepd and munge's client library.
    overhead_mb = 48

    def __init__(self, settings: config.Settings, own_munge: bool) -> None:
        """own_munge: munged is ours, at the socket of the settings, with a key of its own.

        Raises InvalidValue for a directory with too long a name.
        """
        self.settings = settings
        self.directory = Path(settings.directory)
        self.one_per_agent = not settings.address.startswith("127.")
        # A node that tells of itself may get jobs before anything else can be said of it.
        self.keeps_time = not self.one_per_agent
        self._own_munge = own_munge
        self._conf = self.directory / "slurm.conf"
        self._environment = {"PATH": _PATH, "LC_ALL": "C", "SLURM_CONF": str(self._conf)}
        self._slurmctld = _Standing(
            ["slurmctld", "-D", "-f", str(self._conf)],
            self._environment,
            self.directory / "slurmctld.out",
        )
        self._munged = _Standing(
            self._munged_argv(), self._environment, self.directory / "munged.out"
        )
        if len(os.fsencode(settings.munge_socket)) > _SOCKET_NAME:
            raise InvalidValue(
                "state-dir",
                str(self.directory),
                f"has too long a name: the socket {settings.munge_socket} "
                f"may have {_SOCKET_NAME} bytes",
            )

    # ---- The server ------------------------------------------------------------

    def start(self) -> None:
        """Written anew each time: the machine may have another name by now."""
        for program in ("slurmctld", "munged", "squeue", "sinfo", "scontrol"):
            if shutil.which(program, path=_PATH) is None:
                raise BatchError(f"{program} is not installed (Debian: slurm-wlm, munge)")
        (self.directory / "state").mkdir(parents=True, exist_ok=True)
        # Users' commands read what is here; nothing of it is secret but the key.
        self.directory.chmod(0o755)
        write_atomically(self._conf, config.server_text(self.settings))
        # PBS_JOBID, PBS_O_WORKDIR and so on.
        write_atomically(self.directory / "plugstack.conf", config.PLUGINS)
        if self._own_munge:
            self._start_munged()
        if self._slurmctld.find() is None:
            log.info("slurmctld starts", port=self.settings.port, config=str(self._conf))
            self._slurmctld.start()
        self._wait(self._answers, *self._daemons())
        self._have_room_node()

    def alive(self) -> bool:
        return all(daemon.find() is not None for daemon in self._daemons())

    def stop(self) -> None:
        for daemon in self._daemons():
            daemon.end()

    def _daemons(self) -> list[_Standing]:
        """Those that are ours, in the order in which they end."""
        return [self._slurmctld, self._munged] if self._own_munge else [self._slurmctld]

    def user_environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self._conf)}

    def _munged_argv(self) -> list[str]:
        files = {
            "key-file": "munge.key",
            "pid-file": "munged.pid",
            "log-file": "munged.log",
            "seed-file": "munged.seed",
        }
        options = [f"--{name}={self.directory / file}" for name, file in files.items()]
        # Forced: where not everybody may go, not everybody is to use this server.
        return [
            "munged",
            "--foreground",
            "--force",
            f"--socket={self.settings.munge_socket}",
            *options,
        ]

    def _start_munged(self) -> None:
        key = self.directory / "munge.key"
        if not key.exists():
            part = key.with_suffix(".new")
            part.unlink(missing_ok=True)
            part.touch(0o600)
            part.write_bytes(os.urandom(1024))
            part.replace(key)
        if self._munged.find() is None:
            self._munged.start()
        where = self.settings.munge_socket
        self._wait(lambda: _listens(where), self._munged)

    def _answers(self) -> bool:
        try:
            # Without munged it would try for half a minute.
            reading.read_nodes(run(("sinfo", "--json"), self._environment, _ANSWERS_S))
        except BatchError:
            return False
        return True

    def _have_room_node(self) -> None:
        if not reading.has_room_node(self._run("sinfo", "--json")):
            size = Size(config.ROOM_CPUS, config.ROOM_MEM_MB)
            why = "stands for nodes that may come"
            self._create(config.ROOM_NODE, size, config.ROOM_ADDRESS, why)

    def _create(self, name: str, size: Size, address: str, why: str) -> None:
        """A node that is down until it registers: "future" ones get no jobs, so it has none in
        between either.  (With "cloud" Slurm would give it jobs before it is there.)"""
        words = [f"NodeName={name}", f"NodeAddr={address}", *config.node_words(size).split()]
        self._run("scontrol", "create", *words, "State=FUTURE")
        self._run("scontrol", "update", f"NodeName={name}", "State=DOWN", f"Reason={why}")

    @staticmethod
    def _wait(done: Callable[[], bool], *daemons: _Standing) -> None:
        """For the first of them, which needs the others."""
        until_s = time.monotonic() + _READY_S
        while not done():
            for daemon in daemons:
                if daemon.find() is None:
                    raise BatchError(f"{daemon} has ended: {daemon.last_words()}")
            if time.monotonic() > until_s:
                words = daemons[0].last_words()
                raise BatchError(f"{daemons[0]} is not ready in {_READY_S:.0f} s: {words}")
            time.sleep(_LOOK_EVERY_S)

    # ---- Jobs and nodes -----------------------------------------------------------

    def jobs(self) -> list[Job]:
        return reading.read_jobs(self._run("squeue", "--json"))

    def nodes(self) -> list[Node]:
        return reading.read_nodes(self._run("sinfo", "--json"))

    def place(self, number: int, hostname: str) -> str:
        return "" if self.one_per_agent else config.loopback_address(number)

    def daemon(self, name: str, size: Size, address: str) -> Daemon:
        text = config.node_text(self.settings, name, size, address)
        return Daemon(
            command=config.node_script(name, size, address),
            environment={"PATH": _PATH, "NODE_CONF": text, "NODE_PLUGINS": config.PLUGINS},
            port=None if address else self.settings.node_port,
        )

    def register(self, name: str, size: Size, address: str, life_s: float | None) -> None:
        # One that has no address of its own tells its machine's when it comes.
        if address and all(node.name != name for node in self.nodes()):
            self._create(name, size, address, "starts")
            if life_s is not None:
                self._book_the_end(name, life_s)

    def _book_the_end(self, name: str, life_s: float) -> None:
        """From then on the node is reserved: no job gets it that would still run."""
        words = [f"ReservationName=end-{name}", f"Nodes={name}", f"StartTime=now+{int(life_s)}"]
        words += ["Duration=UNLIMITED", f"Users={self.settings.user}", "Flags=MAINT,IGNORE_JOBS"]
        self._run("scontrol", "create", "reservation", *words)

    def drain(self, name: str, why: str) -> None:
        self._update_node(name, "State=DRAIN", f"Reason={why}")

    def resume(self, name: str) -> None:
        self._update_node(name, "State=RESUME")

    def lose(self, name: str, why: str) -> None:
        # Down: what runs there is put back in the queue, or closed, at once.
        if self._update_node(name, "State=DOWN", f"Reason={why}"):
            # Nodes in a reservation cannot be removed; most are in none.
            with _passing_over(_NO_RESERVATION):
                self._run("scontrol", "delete", f"ReservationName=end-{name}")
            with _passing_over(_NOT_THERE):
                self._run("scontrol", "delete", f"NodeName={name}")

    def tell(self, job_id: str, why: str) -> None:
        with _passing_over(_ENDED):
            self._run("scontrol", "update", f"JobId={job_id}", f"AdminComment={why}")

    def _update_node(self, name: str, *words: str) -> bool:
        """Whether there is such a node."""
        try:
            self._run("scontrol", "update", f"NodeName={name}", *words)
        except BatchError as error:
            if _says(error, _NOT_THERE):
                return False
            raise
        return True

    def _run(self, *argv: str) -> str:
        return run(argv, self._environment)


@contextlib.contextmanager
def _passing_over(words: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except BatchError as error:
        if not _says(error, words):
            raise


def _says(error: BatchError, words: Sequence[str]) -> bool:
    return any(each in error.message for each in words)


class _Standing:
    """A daemon that outlives us, found by how it was started: never two of them."""

    def __init__(self, argv: Sequence[str], environment: dict[str, str], told: Path) -> None:
        self._argv = list(argv)
        self._environment = environment
        self._told = told
        self._process: psutil.Process | None = None
        # If we have started it; it is not to become a zombie.
        self._child: subprocess.Popen[bytes] | None = None

    def __str__(self) -> str:
        return self._argv[0]

    def last_words(self) -> str:
        try:
            lines = self._told.read_text(errors="replace").splitlines()
        except OSError as error:
            return error.strerror or str(error)
        return " / ".join(lines[-3:])

    def find(self) -> psutil.Process | None:
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        if self._process is not None and _runs(self._process):
            return self._process
        self._process = next(filter(self._is_it, psutil.process_iter()), None)
        return self._process

    def start(self) -> None:
        """In a session of its own: what ends us does not end it."""
        with self._told.open("wb") as out:
            self._child = subprocess.Popen(
                self._argv,
                env=self._environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def end(self) -> None:
        process = self.find()
        if process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
            try:
                process.wait(_END_S)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(_END_S)
        self.find()

    def _is_it(self, process: psutil.Process) -> bool:
        try:
            argv = process.cmdline()
        except psutil.Error:
            return False
        # Its program may stand there with its path.
        same = argv[1:] == self._argv[1:] and Path(argv[0]).name == self._argv[0]
        return same and _runs(process)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


__all__ = ["Slurm"]
