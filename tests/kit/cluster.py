"""A master and agents as processes of their own, each of them in the test's hands.

::

    with Cluster(tmp_path, offer_timeout="1s") as cluster:
        agent = cluster.start_agent("a", "cpus:2;mem:512")
        ...
        cluster.restart_master()

Flags are given as keyword arguments, with underscores.  A daemon is ready when `start`
returns (its port file is there); it is signalled and waited for by its pid only.  When
the block ends, all daemons are asked to end and have to do so in peace, and nothing
that they started may be left.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from mesos_py.operator import OperatorClient
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from tests.kit import faces
from tests.kit.local import LIMIT_S, MESOS_PY, Ended, environment
from tests.kit.waiting import until

T = TypeVar("T")

LOOPBACK: Final = "127.0.0.1"
# Enough for any test that does not care, of which ports are nobody's by default.
PLENTY: Final = "cpus:4;mem:4096;disk:0;ports:[21000-21099]"
# The value of a flag that has none: a switch.
ON: Final = "<on>"
_LOG_LINES: Final = 30
# Where the next record of a log begins.
_RECORD: Final = re.compile(r"^(?=\d{4}-\d\d-\d\dT)", re.MULTILINE)


class Daemon:
    """One `mesos-py master` or `mesos-py agent`; may be started again after its end."""

    def __init__(self, kind: str, name: str, directory: Path, flags: dict[str, str]) -> None:
        self.name = name
        own = {"http_port": "0"} if kind in ("master", "agent") else {}
        self.flags = {"ip": LOOPBACK, "port": "0", **own, **flags}
        self.work_dir = directory / name
        self.log_file = directory / f"{name}.log"
        self._kind = kind
        self._directory = directory
        self._port_file = directory / f"{name}.port"
        self._http_port_file = directory / f"{name}.http-port"
        self._process: subprocess.Popen[bytes] | None = None
        self.paused = False
        self.port = 0

    # ---- Life ------------------------------------------------------------

    def start(self) -> Self:
        """Start it and wait until it is ready: a master serves, an agent is registered."""
        return self.launch().ready()

    def ready(self) -> Self:
        """Wait for what `launch` has started."""
        until(lambda: self._port_file.exists() or self.process.poll() is not None, LIMIT_S)
        assert self.process.poll() is None, f"{self.name} did not start: {self.tail()}"
        self.port = int(self._port_file.read_text())
        if self._tells_http_port:
            # The next one, on a restart, has to be found at the same address.
            port = self.flags["http_port"] = self._http_port_file.read_text().strip()
            faces.serves(f"{LOOPBACK}:{self.port}", f"{LOOPBACK}:{port}")
        return self

    @property
    def _tells_http_port(self) -> bool:
        return self._kind == "master" and faces.is_http() and "http_port_file" not in self.flags

    def launch(self) -> Self:
        """Start it, and wait for nothing."""
        self._port_file.unlink(missing_ok=True)
        self._http_port_file.unlink(missing_ok=True)
        argv = self.argv()
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                argv,
                cwd=self._directory,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def argv(self) -> list[str]:
        """What is started."""
        flags = {
            "work_dir": str(self.work_dir),
            "port_file": str(self._port_file),
            **self.flags,
        }
        if self._tells_http_port:
            flags["http_port_file"] = str(self._http_port_file)
        argv = [*MESOS_PY, self._kind]
        for name, value in flags.items():
            argv += [f"--{name.replace('_', '-')}", *([] if value == ON else [value])]
        return argv

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def started(self) -> bool:
        """Whether it ever was."""
        return self._process is not None

    @property
    def is_ready(self) -> bool:
        """Whether it has said that it is, in this life."""
        return self._port_file.exists()

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def tail(self) -> str:
        return "\n".join(self.log.splitlines()[-_LOG_LINES:])

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(LIMIT_S)

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        self.resume()
        self.process.terminate()
        return self.wait()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.paused = False
        self.wait()

    def pause(self) -> None:
        """SIGSTOP; it stands still when this returns."""
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True
        stat = Path(f"/proc/{self.process.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def resume(self) -> None:
        if self.paused:
            self.process.send_signal(signal.SIGCONT)
            self.paused = False


def internal_errors(log: str) -> list[str]:
    """Records with a traceback, except of bytes that are no message at all."""
    records = _RECORD.split(log)
    return [each for each in records if "Traceback" in each and "[DecodeError]" not in each]


class Cluster:
    """See the module's docstring.  `flags` are those of the master."""

    # How its commands are run.
    mesos_py: tuple[str, ...] = MESOS_PY

    def __init__(self, directory: Path, **flags: str) -> None:
        self.directory = directory
        # Tasks may run as other users: they must reach their sandboxes.
        directory.chmod(0o755)
        # Frameworks of tests keep offers until they have a use for them.
        own = {} if flags.get("offer_timeout") == "0s" else {"first_offer_timeout": "0s"}
        self.master = Daemon("master", "master", directory, {**own, **flags})
        self.masters = [self.master]
        self.agents: list[Daemon] = []
        self._operator: OperatorClient | None = None

    def __enter__(self) -> Self:
        self.master.start()
        # The next one, on a restart, has to be found at the same address.
        self.master.flags["port"] = str(self.master.port)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._operator is not None:
            self._operator.close()
        try:
            codes = self._end()
        finally:
            self._kill_all()
        if kind is None:
            assert set(codes.values()) <= {0}, codes
            self.assert_no_internal_error()

    def _end(self) -> dict[str, int]:
        """Ask all that live to end, the master last; their exit codes."""
        codes: dict[str, int] = {}
        self._wait_for_what_ends()
        for group in (self.agents, self.masters):
            living = [daemon for daemon in group if daemon.alive]
            for daemon in living:
                daemon.resume()
                daemon.process.terminate()
            codes.update({daemon.name: daemon.wait() for daemon in living})
        return codes

    def _wait_for_what_ends(self) -> None:
        """An agent that leaves its tasks running when it ends would leave, too, what has been
        told to end and takes a moment for it, such as executors of a framework that has gone."""
        if any(agent.alive and agent.flags.get("tasks_on_exit") == "keep" for agent in self.agents):
            with suppress(AssertionError):  # whatever is left is told of in the end
                until(lambda: not self.strays(), LIMIT_S)

    def _kill_all(self) -> None:
        for daemon in self.daemons:
            if daemon.alive:
                daemon.kill()
        for pid in self.strays():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # What was killed goes a moment later, as what a warden ends whose agent was killed.
        until(lambda: not self.strays())

    @property
    def daemons(self) -> list[Daemon]:
        return [*self.agents, *self.masters]

    def others(self) -> set[int]:
        """Processes that may work in the directory beside the daemons."""
        return set()

    def strays(self) -> list[int]:
        """Processes that work in this cluster's directory, daemons excepted."""
        daemons = {d.process.pid for d in self.daemons if d.alive} | self.others()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                here = process.joinpath("cwd").readlink().is_relative_to(self.directory)
            except OSError:
                continue
            if here and int(process.name) not in daemons:
                found.append(int(process.name))
        return found

    # ---- Daemons ---------------------------------------------------------

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.master.port}"

    def agent(self, name: str, resources: str = PLENTY, **flags: str) -> Daemon:
        """An agent that is not started yet; its name is its host name too."""
        own = {"master": self.address, "hostname": name, "resources": resources}
        # What a test starts ends with it, however the agent does.
        own |= {"tasks_on_exit": "end", **flags}
        daemon = Daemon("agent", name, self.directory, own)
        self.agents.append(daemon)
        return daemon

    def start_agent(self, name: str = "a", resources: str = PLENTY, **flags: str) -> Daemon:
        return self.agent(name, resources, **flags).start()

    def start_agents(self, *names: str, resources: str = PLENTY, **flags: str) -> list[Daemon]:
        """Several at a time, which takes not much longer than one."""
        started = [self.agent(name, resources, **flags).launch() for name in names]
        return [agent.ready() for agent in started]

    def restart_master(self) -> None:
        """kill -9, and a new one at the same address."""
        self.master.kill()
        self.master.start()

    # ---- What the master says ----------------------------------------------

    @property
    def operator(self) -> OperatorClient:
        if self._operator is None:
            self._operator = OperatorClient(self.address, timeout_s=LIMIT_S)
        return self._operator

    def agent_row(self, name: str) -> op.Response.GetAgents.Agent:
        """The newest agent with this host name."""
        return [a for a in self.operator.agents() if a.agent_info.hostname == name][-1]

    def agent_id(self, name: str) -> str:
        return self.agent_row(name).agent_info.id.value

    def wait_for_agent(self, name: str, state: str) -> op.Response.GetAgents.Agent:
        until(lambda: self.agent_row(name).state == state, LIMIT_S)
        return self.agent_row(name)

    def task(self, framework_id: str, task_id: str) -> pb.Task | None:
        """The newest task with this id."""
        found = self.operator.tasks(framework_id, task_id)
        return found[-1] if found else None

    def history(self, framework_id: str) -> list[pb.Task]:
        """The tasks that have ended, and whose end the framework has acknowledged."""
        call = op.Call(type=op.Call.GET_TASKS)
        call.get_tasks.framework_id.value = framework_id
        return list(self.operator.execute(call).get_tasks.completed_tasks)

    def wait_for_history(self, framework_id: str, count: int = 1) -> None:
        """Until so many tasks of the framework have ended and been acknowledged."""
        self.wait_until(lambda: len(self.history(framework_id)) >= count)

    def metrics(self) -> dict[str, float]:
        answer = self.operator.execute(op.Call(type=op.Call.GET_METRICS))
        return {metric.name: metric.value for metric in answer.get_metrics.metrics}

    def used(self) -> dict[str, str]:
        """What is allocated or on offer, by host; without hosts where nothing is."""
        used = {}
        for row in self.operator.agents():
            taken = [*row.allocated_resources, *row.offered_resources]
            if taken:
                used[row.agent_info.hostname] = str(Resources.from_proto("used", taken))
        return used

    def assert_no_internal_error(self) -> None:
        """No daemon has logged a traceback, except of bytes that are no message at all."""
        for daemon in self.daemons:
            for record in internal_errors(daemon.log):
                raise AssertionError(f"{daemon.name}: {record}")

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Whatever happens in the block: afterwards the daemons live and are as before."""
        yield
        living = [daemon.name for daemon in self.daemons if daemon.alive]
        assert living == [daemon.name for daemon in self.daemons]
        self.wait_until(lambda: not self.operator.frameworks().frameworks)
        self.wait_until(lambda: not self.used())
        assert self.metrics()["master/step_failures"] == 0
        self.assert_no_internal_error()

    def _known(self) -> list[object]:
        """What a refused call must not change: agents, live tasks, executors, weights."""
        answer = self.operator.execute(op.Call(type=op.Call.GET_STATE)).get_state
        weights = self.operator.execute(op.Call(type=op.Call.GET_WEIGHTS)).get_weights
        agents = [
            (a.agent_info.hostname, a.state, str(list(a.allocated_resources)))
            for a in answer.get_agents.agents
        ]
        tasks = [task.task_id.value for task in answer.get_tasks.tasks]
        executors = [e.executor_info.executor_id.value for e in answer.get_executors.executors]
        return [sorted(agents), tasks, executors, str(weights)]

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """As `undisturbed`; and what the master knows is as before."""
        before = self._known()
        with self.undisturbed():
            yield
        assert self._known() == before

    def wait_until(self, done: Callable[[], object]) -> None:
        until(done, LIMIT_S)

    # ---- Commands --------------------------------------------------------

    def cli(self, *args: str, **options: Any) -> Ended:
        """Run a `mesos-py` command with this master to its end."""
        ended = subprocess.run(
            [*self.mesos_py, *args],
            cwd=self.directory,
            env={**environment(self.address), **options.pop("env", {})},
            capture_output=True,
            timeout=LIMIT_S,
            **options,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)
