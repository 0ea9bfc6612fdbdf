"""Web farms for tests: real haproxy, real Apache, agents on loopback, users who count."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

from mesos_py.operator import OperatorClient
from tests.kit.cluster import LOOPBACK, Cluster, Daemon
from tests.kit.local import END_WITH_THE_TESTS, LIMIT_S, MESOS_PY, Ended, environment
from tests.kit.waiting import gone, until

EACH: Final = "cpus:{};mem:1024;ports:[{}-{}]"
PORTS_EACH: Final = 20
FIRST_PORT: Final = 22000


class Ground:
    """A master and so many agents, all of them at loopback, in a directory that servers reach;
    for several farms, one after the other.  The first agent has four cores, the others two."""

    def __init__(self, agents: int) -> None:
        # Servers run as a user of their own and have to reach their sandboxes: pytest closes the
        # way to its directories whenever a run of it begins.
        self.directory = Path(tempfile.mkdtemp(prefix="mesos-py-webfarm-"))
        self.directory.chmod(0o755)
        (self.directory / "cluster").mkdir()
        self.cluster = Cluster(
            self.directory / "cluster",
            revocation_grace="30s",
            revocation_patience="100ms",
            revocation_interval="100ms",
        )
        for number in range(agents):
            low = FIRST_PORT + number * PORTS_EACH
            resources = EACH.format(2 if number else 4, low, low + PORTS_EACH - 1)
            self.cluster.agent(f"a{number}", resources, tasks_on_exit="keep")
        self.farms = 0
        self._held = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self.directory)
            # Also if it does not come up: its master may be there.
            stack.push(self.cluster)
            self.cluster.__enter__()
            for agent in self.cluster.agents:
                agent.flags["master"] = self.cluster.address
                agent.launch()
            for agent in self.cluster.agents:
                agent.ready()
            self._held = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._held.__exit__(*error)

    def agent_of(self, server: dict[str, Any]) -> Daemon:
        """Where it runs, by its port."""
        port = int(server["at"].rpartition(":")[2])
        return self.cluster.agents[(port - FIRST_PORT) // PORTS_EACH]

    def farm(self) -> Farm:
        self.farms += 1
        return Farm(self.cluster, self.directory / f"farm-{self.farms}")


class Farm:
    """`mesos-py webfarm` on a cluster.

    `up` starts the wrapper; whatever becomes of it, leaving the block ends the farm, which has
    to happen in peace.
    """

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.directory.mkdir()
        self.state = directory / "state"
        self.port = free_port()
        self.log_file = directory / "up.log"
        self._wrapper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None and self._wrapper is not None:
                ended = self.cli("down")
                assert ended.code == 0, (ended, self.log)
                assert self.wrapper_code() in (0, -signal.SIGKILL), self.log
                assert "Traceback" not in self.log, self.log
                assert self.haproxy_pid is None
                self._nothing_is_held()
        finally:
            if kind is not None:
                print(self.log[-6000:])  # noqa: T201
            self._end()

    def _end(self) -> None:
        if self._wrapper is not None and self._wrapper.poll() is None:
            self._wrapper.kill()
            self._wrapper.wait()
        pid = self.haproxy_pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            until(lambda: gone(pid))
        with OperatorClient(self.cluster.address, timeout_s=LIMIT_S) as operator:
            for framework in operator.frameworks().frameworks:
                operator.teardown(framework.framework_info.id.value)

    def _nothing_is_held(self) -> None:
        # By a client of its own: one that the cluster keeps would outlive the test.
        with OperatorClient(self.cluster.address, timeout_s=LIMIT_S) as operator:
            until(lambda: not any(row.allocated_resources for row in operator.agents()), LIMIT_S)

    # ---- The wrapper ---------------------------------------------------------

    def up(self, *options: str) -> Self:
        """Start it, and wait for nothing."""
        argv = [*END_WITH_THE_TESTS, *MESOS_PY, "webfarm", "up", "--state-dir", str(self.state)]
        argv += ["--port", str(self.port), "--bind", LOOPBACK, *options]
        with self.log_file.open("ab") as log:
            self._wrapper = subprocess.Popen(
                argv,
                cwd=self.directory,
                env=environment(self.cluster.address),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    @property
    def wrapper(self) -> subprocess.Popen[bytes]:
        assert self._wrapper is not None
        return self._wrapper

    def wrapper_code(self) -> int | None:
        return None if self._wrapper is None else self._wrapper.wait(LIMIT_S)

    def kill_wrapper(self) -> None:
        self.wrapper.kill()
        self.wrapper.wait()

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def cli(self, command: str, *args: str) -> Ended:
        ended = subprocess.run(
            [*MESOS_PY, "webfarm", command, "--state-dir", str(self.state), *args],
            cwd=self.directory,
            env=environment(self.cluster.address),
            capture_output=True,
            timeout=LIMIT_S * 2,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    # ---- What there is -----------------------------------------------------------

    @property
    def status(self) -> dict[str, Any]:
        """What the wrapper showed last; empty before that."""
        try:
            found: dict[str, Any] = json.loads((self.state / "status.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def servers(self, phase: str = "serving") -> list[dict[str, Any]]:
        return [each for each in self.status.get("servers", ()) if each["phase"] == phase]

    def until_serving(self, count: int) -> None:
        """Exactly so many, and no others on their way."""
        self.until(lambda: len(self.servers()) == count == len(self.status.get("servers", ())))

    def until_elsewhere(self, host: str, count: int) -> None:
        """As many serve, and no others are there; none on that host."""
        self.until(lambda: host not in {each["host"] for each in self.status["servers"]})
        self.until_serving(count)
        assert host not in {each["host"] for each in self.servers()}

    def until(self, done: Callable[[], object]) -> None:
        def look() -> object:
            code = self.wrapper.poll()
            assert code is None, f"the wrapper has ended ({code}): {self.log[-2000:]}"
            return done()

        try:
            until(look, LIMIT_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.status}\n{self.log[-3000:]}") from error

    @property
    def haproxy_pid(self) -> int | None:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                here = process.joinpath("cwd").readlink() == self.state
                name = process.joinpath("comm").read_text().strip()
            except OSError:
                continue
            if here and name == "haproxy":
                return int(process.name)
        return None

    def task_pids(self, task_id: str) -> list[int]:
        """Of its Apache, children included."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                argv = process.joinpath("cmdline").read_bytes()
            except OSError:
                continue
            if f"/{task_id}/".encode() in argv and b"apache2" in argv.split(b"\0")[0]:
                found.append(int(process.name))
        return found

    def tries_again(self) -> list[int]:
        """How often each request so far was tried again; with `--log-requests`."""
        log = (self.state / "haproxy.log").read_text()
        # "+": at another server.
        return [int(tries) for tries in re.findall(r" \d+/\d+/\d+/\d+/\+?(\d+) \d+/\d+ ", log)]

    def balancer_counts(self) -> dict[str, int]:
        """What haproxy counts of its backend."""
        directory = os.open(self.state, os.O_PATH)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(f"/proc/self/fd/{directory}/haproxy.sock")
                connection.sendall(b"show stat\n")
                text = connection.makefile().read()
        finally:
            os.close(directory)
        names, *rows = csv.reader(text.removeprefix("# ").strip().splitlines())
        row = next(row for row in rows if row[1] == "BACKEND")
        counted = zip(names, row, strict=True)
        return {name: int(value) for name, value in counted if value.isdigit()}

    # ---- Sites ---------------------------------------------------------------------

    def site(self, name: str, text: str) -> str:
        """An archive with this page, as agents find it."""
        content = self.directory / name
        content.mkdir()
        (content / "index.html").write_text(text)
        archive = shutil.make_archive(str(content), "gztar", content)
        Path(archive).chmod(0o644)
        return archive


class Users:
    """Who ask again and again, `per_s` times a second in all, each time by a connection of its
    own, and note every answer that is not as it should be."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.per_s = 0.0
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        # When each was asked, by time.monotonic().
        self.failed_s: list[float] = []
        self._stop = False
        self._open: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until `stop`.  Open: who comes does not wait for those before."""
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        while not self._stop:
            if not self.per_s:
                await asyncio.sleep(0.02)
                next_s = loop.time()
                continue
            # Not all that a machine that stood still has missed: nobody asked for a rush.
            next_s = max(next_s + 1 / self.per_s, loop.time() - 0.2)
            await asyncio.sleep(max(0.0, next_s - loop.time()))
            task = asyncio.create_task(self.ask())
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        while self._open:
            await asyncio.wait(self._open)

    def stop(self) -> None:
        self._stop = True

    @property
    def answered(self) -> int:
        return sum(self.answers.values())

    async def ask(self) -> None:
        asked_s = time.monotonic()
        try:
            async with asyncio.timeout(LIMIT_S):
                head, body = await self._get()
        except (OSError, EOFError, TimeoutError) as error:
            self._fail(asked_s, repr(error))
            return
        if " 200 " in head.splitlines()[0]:
            self.answers[body] += 1
        else:
            self._fail(asked_s, head.splitlines()[0])

    def _fail(self, asked_s: float, why: str) -> None:
        self.failures.append(why)
        self.failed_s.append(asked_s)

    async def _get(self) -> tuple[str, str]:
        reader, writer = await asyncio.open_connection(LOOPBACK, self.port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: farm\r\nConnection: close\r\n\r\n")
            head, blank, body = (await reader.read(-1)).decode().partition("\r\n\r\n")
        finally:
            writer.close()
        length = [line for line in head.splitlines() if line.lower().startswith("content-length")]
        if not blank or not length or int(length[0].split(":")[1]) != len(body):
            raise EOFError(f"cut: {head[:80]!r}")
        return head, body

    @contextmanager
    def in_background(self) -> Iterator[Self]:
        """On a thread of their own."""
        thread = threading.Thread(target=lambda: asyncio.run(self.run()))
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web_server(directory: Path) -> Iterator[str]:
    """Serves the files of a directory; its URI."""
    server = ThreadingHTTPServer((LOOPBACK, 0), partial(_Quiet, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Wrk:
    """What `wrk` has counted.  errors: "read 2" and so on, of each kind that there was."""

    requests: int = 0
    errors: list[str] = field(default_factory=list)


_PACED: Final = r"""
function delay() return 100 end
function done(summary)
  local errors = summary.errors
  for _, kind in ipairs({"connect", "read", "write", "status", "timeout"}) do
    io.write(string.format("%s=%d\n", kind, errors[kind]))
  end
  io.write(string.format("requests=%d\n", summary.requests))
end
"""


@contextmanager
def wrk(port: int, per_s: int) -> Iterator[Wrk]:
    """So many requests per second, by connections that are kept; counted at the end."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_PACED)
        script.flush()
        # Each connection asks again 100 ms after its answer.
        argv = ["wrk", "-t", "1", "-c", str(per_s // 10), "-d", "10m", "-s", script.name]
        argv += ["--timeout", f"{LIMIT_S:g}s"]
        process = subprocess.Popen(
            [*END_WITH_THE_TESTS, *argv, f"http://{LOOPBACK}:{port}/"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        load = Wrk()
        try:
            yield load
        finally:
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=LIMIT_S)
    counts = {name: int(count) for name, count in re.findall(r"^(\w+)=(\d+)$", out, re.MULTILINE)}
    load.requests = counts.pop("requests")
    load.errors = [f"{kind} {count}" for kind, count in counts.items() if count]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


__all__ = [
    "FIRST_PORT",
    "PORTS_EACH",
    "Farm",
    "Ground",
    "Users",
    "Wrk",
    "free_port",
    "web_server",
    "wrk",
]
