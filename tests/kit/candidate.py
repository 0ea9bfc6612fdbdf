"""A contender in a process of its own, which a test can stop and kill.

    python -m tests.kit.candidate zk://host:port/path PORT TIMEOUT_S

Prints a line of JSON whenever its standing or its certainty changes; moments are those
of the monotonic clock, which all processes of a machine share.  Resigns on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Final, Self

from mesos_py.election import Contender, Standing, parse_contender
from mesos_py.v1 import types_pb2 as pb
from tests.kit.local import END_WITH_THE_TESTS
from tests.kit.waiting import LIMIT_S, until

_LOOK_S: Final = 0.005


def info_of(port: int) -> pb.MasterInfo:
    return pb.MasterInfo(
        id=f"master-{port}",
        ip=int.from_bytes(bytes([127, 0, 0, 1]), "little"),
        port=port,
        hostname="here",
        version="0.1.0",
        address=pb.Address(hostname="here", ip="127.0.0.1", port=port),
    )


class Candidate:
    """The process, as a test sees it; use it in a `with` block."""

    def __init__(self, url: str, port: int, timeout_s: float) -> None:
        self.lines: list[dict[str, Any]] = []
        argv = [
            *END_WITH_THE_TESTS,
            sys.executable,
            "-m",
            "tests.kit.candidate",
            url,
            str(port),
            str(timeout_s),
        ]
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    @property
    def standings(self) -> list[str]:
        """Without repetitions, oldest first."""
        found: list[str] = []
        for line in list(self.lines):
            if not found or line["standing"] != found[-1]:
                found.append(line["standing"])
        return found

    def wait_for(self, standing: Standing) -> None:
        until(lambda: standing.value in self.standings, LIMIT_S)

    @property
    def certain_until_s(self) -> float:
        """The latest moment that it ever was certain of."""
        return max(float(line["certain_until_s"]) for line in list(self.lines))

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def cont(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


def _report(contender: Contender, standing: Standing) -> None:
    line = {
        "at_s": time.monotonic(),
        "standing": standing.value,
        "certain_until_s": contender.certain_until_s(),
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def _run(url: str, port: int, timeout_s: float) -> None:
    contender = parse_contender(url, session_timeout_s=timeout_s)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: asyncio.ensure_future(contender.resign()))
    await contender.elected(info_of(port))
    standing = Standing.LEADING

    async def look() -> None:
        certain_until_s = 0.0
        while True:
            if contender.certain_until_s() != certain_until_s:
                certain_until_s = contender.certain_until_s()
                _report(contender, standing)
            await asyncio.sleep(_LOOK_S)

    looking = asyncio.create_task(look())
    async for standing in contender.watch():
        _report(contender, standing)
    looking.cancel()
    await contender.resign()


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
