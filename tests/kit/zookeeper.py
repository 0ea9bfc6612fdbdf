"""Real ZooKeeper servers, one or an ensemble, each a process in the test's hands.

::

    with Ensemble(tmp_path / "zk", 3) as ensemble:
        contender = contend(ensemble.url("/mesos"))
        ensemble.servers[0].kill()
        ...
        ensemble.servers[0].start()

Elsewhere than here, each server has a place of its own::

    places = [Place("10.0.0.1", prefix=("ip", "netns", "exec", "zk1")), ...]
    with Ensemble(directory, places=places): ...
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tests.kit.local import END_WITH_THE_TESTS
from tests.kit.waiting import LIMIT_S, until

# The programs that a test with this kit needs, for `pytest.mark.needs`.
NEEDS: Final = ("java", "/usr/share/zookeeper/bin/zkServer.sh")
_JARS: Final = ("/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar")
_LOG_LINES: Final = 30
_START_TRIES: Final = 3
_JAVA: Final = (
    # A small heap, and a start that takes a second rather than three.
    *("-Xms16m", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    # What is written need not outlive the machine, only the process.
    *("-Dzookeeper.forceSync=no", "-Dorg.slf4j.simpleLogger.showDateTime=true"),
)
# Says what it is given, and prints all that comes back until the other side ends.
_TALK: Final = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5) as peer:
    peer.sendall(sys.stdin.buffer.read())
    while part := peer.recv(65536):
        sys.stdout.buffer.write(part)
"""


@dataclass(frozen=True)
class Place:
    """Where a server runs: its address, what to put before its command, its ports.

    Ports that are 0 are picked; give them where the kernel that picks is another one's.
    """

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()
    client_port: int = 0
    quorum_port: int = 0
    election_port: int = 0

    def with_ports(self) -> Place:
        given = (self.client_port, self.quorum_port, self.election_port)
        if all(given):
            return self
        # In a namespace of its own a server has all ports to itself.
        picked = (2181, 2888, 3888) if self.prefix else _free_ports(3)
        ports = [own or free for own, free in zip(given, picked, strict=True)]
        return Place(self.address, self.prefix, *ports)


def _free_ports(count: int) -> list[int]:
    """Different ones: all are held until the last is known."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


class Server:
    """One server.  It keeps its data, ports and number over `kill` and `start`."""

    def __init__(self, directory: Path, number: int, place: Place) -> None:
        self.place = place
        self.number = number
        self.directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    # ---- Life ------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it and wait until it serves; of an ensemble, most must be started."""
        self.launch()
        until(self.serves, LIMIT_S)
        return self

    def launch(self) -> Self:
        """Start it, and wait for nothing."""
        assert not self.alive, f"server {self.number} runs"
        # The end of a thread counts as that of its process there.
        main = threading.current_thread() is threading.main_thread()
        argv = [*(END_WITH_THE_TESTS if main else ()), *self.place.prefix]
        argv += ["java", *_JAVA, "-cp", ":".join(_JARS)]
        argv += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                argv,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None, f"server {self.number} was not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def kill(self) -> None:
        """kill -9."""
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """SIGTERM, to its end.  Does nothing to one that has ended."""
        if self.alive:
            self.cont()
            os.kill(self.pid, signal.SIGTERM)
            try:
                self._wait()
            except subprocess.TimeoutExpired:
                self.kill()

    def pause(self) -> None:
        """SIGSTOP; it stands still when this returns."""
        os.kill(self.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def cont(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def _wait(self) -> None:
        assert self._process is not None
        self._process.wait(LIMIT_S)

    # ---- What it says ----------------------------------------------------------------

    @property
    def hostport(self) -> str:
        return f"{self.place.address}:{self.place.client_port}"

    def ask(self, word: str) -> str:
        """The answer to a four-letter word such as "srvr"; empty when there is none."""
        return self.talk(word.encode()).decode(errors="replace")

    @property
    def mode(self) -> str:
        """ "standalone", "leader" or "follower"; empty while it does not serve."""
        lines = self.ask("srvr").splitlines()
        modes = [line.partition(": ")[2] for line in lines if line.startswith("Mode: ")]
        return modes[0] if modes else ""

    def serves(self) -> bool:
        """Whether it answers clients now.  Fails the test if its process has ended."""
        tail = "\n".join(self.log.splitlines()[-_LOG_LINES:])
        assert self.alive, f"server {self.number} has ended: {tail}"
        if self.mode:
            return True
        # Each question costs a server that is starting.
        time.sleep(0.05)
        return False

    def expire_session(self, session_id: int, password: bytes) -> None:
        """End a client's session as its expiry does: its ephemeral nodes are gone.

        Speaks for the client (a connection with its id and password), and closes.
        """
        connect = struct.pack("!iqiqi", 0, 0, 10_000, session_id, len(password)) + password
        close = struct.pack("!ii", 1, -11)
        frames = b"".join(struct.pack("!i", len(each)) + each for each in (connect, close))
        answer = self.talk(frames)
        # Length, protocol version, time-out, and then the id: 0 for a session that is gone.
        assert len(answer) >= 20, "the server did not answer"
        (granted,) = struct.unpack_from("!q", answer, 12)
        assert granted == session_id, f"session {session_id:#x} is not there"

    def talk(self, said: bytes) -> bytes:
        """Send bytes to the client port, from where the server is; all that comes back."""
        where = (self.place.address, self.place.client_port)
        if self.place.prefix:
            argv = [*self.place.prefix, sys.executable, "-I", "-S", "-c", _TALK, *map(str, where)]
            return subprocess.run(argv, input=said, capture_output=True, timeout=LIMIT_S).stdout
        heard = b""
        try:
            with socket.create_connection(where, timeout=5) as peer:
                peer.sendall(said)
                while part := peer.recv(65536):
                    heard += part
        except OSError:
            pass  # not up yet, or ended in the middle
        return heard


class Ensemble:
    """Servers that form one service; see the module's docstring.

    Sessions may be as short as two ticks.  Entering the block starts all and waits
    until they serve; leaving it ends them all.
    """

    def __init__(
        self,
        directory: Path,
        size: int = 1,
        *,
        places: Sequence[Place] | None = None,
        tick_ms: int = 200,
    ) -> None:
        self.directory = directory
        self._wanted = list(places) if places is not None else [Place()] * size
        self._tick_ms = tick_ms
        self.servers: list[Server] = []

    def __enter__(self) -> Self:
        # A port that was picked may be somebody else's by the time it is used.
        for tries_left in reversed(range(_START_TRIES)):
            self._configure(_START_TRIES - tries_left)
            try:
                self.start()
            except BaseException:
                self.stop()
                taken = any("Address already in use" in each.log for each in self.servers)
                if not taken or not tries_left:
                    raise
            else:
                break
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _configure(self, attempt: int) -> None:
        places = [place.with_ports() for place in self._wanted]
        base = self.directory / str(attempt)
        self.servers = [
            Server(base / str(number), number, place) for number, place in enumerate(places, 1)
        ]
        members = "".join(
            f"server.{s.number}={s.place.address}:{s.place.quorum_port}:{s.place.election_port}\n"
            for s in self.servers
        )
        for server in self.servers:
            data = server.directory / "data"
            data.mkdir(exist_ok=True)
            (data / "myid").write_text(f"{server.number}\n")
            (server.directory / "zoo.cfg").write_text(
                f"tickTime={self._tick_ms}\ninitLimit=50\nsyncLimit=10\n"
                f"dataDir={data}\nclientPort={server.place.client_port}\n"
                f"clientPortAddress={server.place.address}\n"
                f"minSessionTimeout={2 * self._tick_ms}\nmaxSessionTimeout=60000\n"
                "admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n"
                + (members if len(self.servers) > 1 else "")
            )

    # ---- All of them -----------------------------------------------------------------

    def start(self) -> None:
        """Start those that do not run, and wait until all serve."""
        for server in self.servers:
            if not server.alive:
                server.launch()
        for server in self.servers:
            until(server.serves, LIMIT_S)

    def kill(self) -> None:
        for server in self.servers:
            if server.alive:
                server.kill()

    def stop(self) -> None:
        """End all, however they are."""
        # A follower that is asked to end first would look for a leader for a while.
        self.kill()

    def pause(self) -> None:
        for server in self.servers:
            server.pause()

    def cont(self) -> None:
        for server in self.servers:
            server.cont()

    # ---- What they say ---------------------------------------------------------------

    @property
    def hosts(self) -> str:
        """`host:port,host:port`, as clients are told."""
        return ",".join(server.hostport for server in self.servers)

    def url(self, path: str, credentials: str = "") -> str:
        """`zk://[user:password@]host:port,.../path`."""
        return f"zk://{credentials + '@' if credentials else ''}{self.hosts}{path}"

    def leader(self) -> Server:
        """The server that leads the ensemble (or stands alone)."""
        (found,) = (each for each in self.servers if each.mode in ("leader", "standalone"))
        return found

    def expire_session(self, session_id: int, password: bytes) -> None:
        """See `Server.expire_session`; by any server that runs."""
        next(each for each in self.servers if each.alive).expire_session(session_id, password)
