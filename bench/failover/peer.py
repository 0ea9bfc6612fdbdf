"""A real Apache Mesos beside us: its leader is killed, and its next offer awaited.

The program that runs it is given; see `PeerCluster`.  Its framework is a raw client of
the v1 HTTP API that tries all masters over and over, so that what is measured is how
soon the cluster offers again and not how soon a library notices.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.processes import LOOPBACK, BenchFailed, Processes
from tests.kit.zookeeper import Ensemble

AGENTS: Final = 2
_MASTERS: Final = 3
_SCHEDULER: Final = "/api/v1/scheduler"
_TRY_EVERY_S: Final = 0.02
_WITHIN_S: Final = 60.0


class PeerCluster:
    """Three masters and two agents, run by a program of this kind:

    `PROGRAM --zk URL --masters N --zk-session S --agents N --port P --agent-port P` prints
    one line of JSON when all is well, with `masters`, each with its `endpoint`; it takes
    `kill master N` and `start master N` on its standard input, answers each with a line,
    and ends all on SIGTERM.
    """

    def __init__(self, program: Path, running: Processes, session_s: float) -> None:
        zookeeper = running.enter(Ensemble(running.directory / "zookeeper"))
        argv = [sys.executable, str(program), "--zk", zookeeper.url("/peer")]
        argv += ["--masters", str(_MASTERS), "--zk-session", f"{session_s:g}"]
        argv += ["--agents", str(AGENTS), "--port", str(_free_port())]
        argv += ["--agent-port", str(_free_port()), "--resources", "cpus:1;mem:128"]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.enter(closing(self))
        self._masters = json.loads(self._answer())["masters"]

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=30)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchFailed("the peer's program has ended")
        return line

    def offers(self, framework_id: str | None) -> tuple[float, str, int]:
        """Subscribe with whoever leads; when its first offer came, our id, and who it is."""
        until_s = time.monotonic() + _WITHIN_S
        while time.monotonic() < until_s:
            for number, master in enumerate(self._masters):
                try:
                    with closing(_subscribe(master["endpoint"], framework_id)) as response:
                        if response.status != http.client.OK:
                            continue
                        for event in _events(response):
                            if event["type"] == "SUBSCRIBED":
                                framework_id = event["subscribed"]["framework_id"]["value"]
                            if event["type"] == "OFFERS":
                                assert framework_id is not None
                                return time.monotonic(), framework_id, number
                except (OSError, http.client.HTTPException):
                    continue
            time.sleep(_TRY_EVERY_S)
        raise BenchFailed(f"the peer offered nothing within {_WITHIN_S:g} s")

    def kill(self, number: int) -> float:
        """SIGKILL; when that was."""
        killed_s = time.monotonic()
        self._order(f"kill master {number}")
        return killed_s

    def restore(self, number: int) -> None:
        self._order(f"start master {number}")

    def _order(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        self._answer()


def measure_peer(
    program: Path, running: Processes, session_s: float, rounds: int, rest_s: float
) -> list[float]:
    """How long after each kill the first offer of the next leader came."""
    cluster = PeerCluster(program, running, session_s)
    framework_id: str | None = None
    found = []
    for _ in range(rounds):
        _, framework_id, leader = cluster.offers(framework_id)
        time.sleep(rest_s)
        killed_s = cluster.kill(leader)
        offered_s, framework_id, _ = cluster.offers(framework_id)
        found.append(offered_s - killed_s)
        cluster.restore(leader)
        time.sleep(session_s + rest_s)
    return found


def _subscribe(endpoint: str, framework_id: str | None) -> http.client.HTTPResponse:
    info: dict[str, Any] = {"user": "root", "name": "bench", "failover_timeout": 3600.0}
    call: dict[str, Any] = {"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}
    if framework_id is not None:
        info["id"] = call["framework_id"] = {"value": framework_id}
    connection = http.client.HTTPConnection(endpoint, timeout=_WITHIN_S)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    connection.request("POST", _SCHEDULER, json.dumps(call), headers)
    return connection.getresponse()


def _events(response: http.client.HTTPResponse) -> Iterator[Any]:
    """Records: the length in digits, a newline, and so much JSON."""
    buffer = b""
    while data := response.read1(65536):
        buffer += data
        while b"\n" in buffer:
            size, _, rest = buffer.partition(b"\n")
            if len(rest) < int(size):
                break
            yield json.loads(rest[: int(size)])
            buffer = rest[int(size) :]


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as free:
        return int(free.getsockname()[1])
