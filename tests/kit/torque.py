"""`mesos-py torque up` on a cluster of a test, and users' commands."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import psutil

from mesos_py.states import TASK_UNREACHABLE, is_terminal
from tests.kit.cluster import Cluster
from tests.kit.local import END_WITH_THE_TESTS, LIMIT_S, MESOS_PY, Ended, environment
from tests.kit.waiting import until

# Soon given up, soon given back.
QUICK: Final = ("--idle", "1s", "--poll", "200ms")
# What ends by itself, in a while.
SLEEP: Final = "#!/bin/sh\necho began >> {mark}\nsleep {seconds}\necho ended >> {mark}\n"

# What ends when the test says so.
GATED: Final = """\
#!/bin/sh
echo began >> {mark}
while ! [ -e {gate} ]; do sleep 0.1; done
echo ended >> {mark}
"""


class Batch:
    """A batch server in a directory of its own; use it in a `with` block, at whose end nothing
    of it may be left."""

    # Before the wrapper's command.
    prefix: tuple[str, ...] = END_WITH_THE_TESTS

    def __init__(self, cluster: Cluster, *options: str) -> None:
        self.cluster = cluster
        self.home = cluster.directory / "pbs"
        self.work = cluster.directory / "jobs"
        self.work.mkdir()
        self._options = options or QUICK
        self._log = cluster.directory / "torque.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            ended = self.cluster.cli("torque", "down", "--force", "--state-dir", str(self.home))
            if self._process is not None:
                self._process.wait(LIMIT_S)
            if kind is None:
                assert ended.code == 0, ended.err
                assert self.daemons() == []
                assert "Traceback" not in self.log
        finally:
            if self._process is not None and self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            for process in self.daemons():
                process.kill()

    # ---- The wrapper -------------------------------------------------------------

    def up(self) -> Self:
        """Start a wrapper and wait until jobs can be submitted."""
        argv = [*self.prefix, *MESOS_PY, "torque", "up", "--state-dir", str(self.home)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*argv, *self._options],
                cwd=self.cluster.directory,
                env={**environment(), "MESOS_PY_TORQUE_MASTER": self.cluster.address},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        with self._process.stdout as out:
            line = out.readline().decode()
        if not line.startswith("ready "):
            self.kill()
            raise AssertionError(self.log)
        return self

    def kill(self) -> None:
        """kill -9 of the wrapper."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def leave(self) -> int:
        """As Ctrl-C does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(LIMIT_S)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def daemons(self) -> list[psutil.Process]:
        """What of the batch server runs: its files are named in how it was started."""
        found = []
        for process in psutil.process_iter():
            try:
                argv = process.cmdline()
                if any(str(self.home) in word for word in argv) and argv[0] in _DAEMONS:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def daemons_called(self, name: str) -> list[int]:
        """Their pids."""
        return [each.pid for each in self.daemons() if each.name() == name]

    def pid_of(self, name: str) -> int:
        (found,) = self.daemons_called(name)
        return found

    def slurmd_of(self, node: str) -> int:
        """The pid of a node's daemon."""
        found = []
        for pid in processes_in(self.cluster.directory):
            with contextlib.suppress(OSError):
                argv = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                if argv[0] == "slurmd" and node in argv:
                    found.append(pid)
        (pid,) = found
        return pid

    def status(self) -> dict[str, Any]:
        ended = self.cluster.cli("torque", "status", "--json", "--state-dir", str(self.home))
        (view,) = json.loads(ended.out)
        return {**view, "code": ended.code}

    def view(self) -> dict[str, Any]:
        """What the wrapper has written of itself last."""
        found: dict[str, Any] = json.loads((self.home / "status.json").read_text())
        return found

    @property
    def framework_id(self) -> str:
        path = self.home / "wrapper.json"
        until(path.exists, LIMIT_S)
        return str(json.loads(path.read_text())["framework_id"])

    def tasks(self) -> list[str]:
        """Its nodes, as the master knows them."""
        found = self.cluster.operator.tasks(self.framework_id)
        over = [is_terminal(task.state) or task.state == TASK_UNREACHABLE for task in found]
        return [task.task_id.value for task, ended in zip(found, over, strict=True) if not ended]

    def wait_for_no_nodes(self) -> None:
        until(lambda: not self.tasks(), LIMIT_S)
        until(lambda: self.json("sinfo", "nodes")[:1] == [], LIMIT_S)

    # ---- What users do -------------------------------------------------------------

    def user(self, *argv: str) -> Ended:
        env = {**environment(), "SLURM_CONF": str(self.home / "slurm.conf")}
        done = subprocess.run(argv, cwd=self.work, env=env, capture_output=True, timeout=LIMIT_S)
        return Ended(done.returncode, done.stdout, done.stderr)

    def submit(self, script: str, *options: str, before: Sequence[str] = ()) -> str:
        """qsub; the job's id.  before: words in front of the command."""
        path = self.work / "job.sh"
        path.write_text(script)
        ended = self.user(*before, "qsub", *options, str(path))
        assert ended.code == 0, ended
        job_id = ended.out.decode().strip()
        assert job_id.isdecimal(), ended
        return job_id

    def sleeper(self, name: str, seconds: float, *options: str) -> str:
        """A job that writes to the file `name` when it begins and when it ends."""
        return self.submit(SLEEP.format(mark=self.work / name, seconds=seconds), *options)

    def gated(self, name: str, *options: str) -> str:
        """As `sleeper`; it ends when the gate is open."""
        gate = self.work / "gate"
        return self.submit(GATED.format(mark=self.work / name, gate=gate), *options)

    def open_gate(self) -> None:
        (self.work / "gate").touch()

    def scripts_of(self, job_id: str) -> list[int]:
        """The shells that run the job's script, wherever they are."""
        wanted = f"SLURM_JOB_ID={job_id}".encode()
        found = []
        for pid in processes_in(self.work):
            process = Path(f"/proc/{pid}")
            with contextlib.suppress(OSError):
                environment = process.joinpath("environ").read_bytes().split(b"\0")
                if (
                    wanted in environment
                    and b"slurm_script" in process.joinpath("cmdline").read_bytes()
                ):
                    found.append(pid)
        return found

    def lines(self, name: str) -> list[str]:
        path = self.work / name
        return path.read_text().split() if path.exists() else []

    def wait_for_lines(self, name: str, *lines: str) -> None:
        until(lambda: self.lines(name) == list(lines), LIMIT_S)

    def wait_until_saved(self) -> None:
        """Until the server has written down all that it knows of jobs now: it does so seconds
        after each change, such as a new job."""
        known_s = time.time()
        self.submit("#!/bin/sh\n")
        (state,) = self.home.rglob("state/job_state")
        until(lambda: state.stat().st_mtime > known_s, LIMIT_S)

    def json(self, command: str, key: str) -> list[dict[str, Any]]:
        """What Slurm's own command says, without the node that stands for what may come."""
        ended = self.user(command, "--json")
        assert ended.code == 0, ended
        rows: list[dict[str, Any]] = json.loads(ended.out)[key]
        return [row for row in rows if row["name"] != "room"]

    def job(self, job_id: str) -> dict[str, Any]:
        (found,) = [row for row in self.json("squeue", "jobs") if str(row["job_id"]) == job_id]
        return found

    def wait_for_job(self, job_id: str, *states: str) -> dict[str, Any]:
        until(lambda: self.job(job_id)["job_state"] in states, LIMIT_S)
        return self.job(job_id)


_DAEMONS: Final = ("slurmctld", "munged")


def processes_in(directory: Path) -> Sequence[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.joinpath("cwd").readlink().is_relative_to(directory):
                found.append(int(process.name))
        except OSError:
            continue
    return found
