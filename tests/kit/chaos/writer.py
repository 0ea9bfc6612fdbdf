"""Asks all masters all the time to store a number: the weight of a role nobody has.

`python -m tests.kit.chaos.writer FILE HOST:PORT,HOST:PORT,...`: a line of JSON for each
attempt, as `leaders.Write`.  Ends on SIGTERM, after the attempts that are under way.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import grpc

from mesos_py import rpc
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1.operator_pb2_grpc import OperatorServiceStub
from tests.kit.chaos.leaders import Write

ROLE: Final = "written"
_PAUSE_S: Final = 0.2
_PATIENCE_S: Final = 2.0
# It was not done, and will not be: the master does not lead, or the call was never sent.
_REFUSED: Final = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT})


class Writer:
    """One thread for each master, one file for all."""

    def __init__(self, file: Path) -> None:
        self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._numbers = itertools.count(1)
        self.ending = threading.Event()

    def ask(self, master: str) -> None:
        """Until the end, with a pause between."""
        with grpc.insecure_channel(master, options=rpc.channel_options()) as channel:
            stub = OperatorServiceStub(channel)
            while not self.ending.wait(_PAUSE_S):
                write = _attempt(stub, master, next(self._numbers))
                os.write(self._fd, (json.dumps(asdict(write)) + "\n").encode())


def _attempt(stub: OperatorServiceStub, master: str, number: int) -> Write:
    call = op.Call(type=op.Call.UPDATE_WEIGHTS)
    call.update_weights.weight_infos.add(role=ROLE, weight=number)
    accepted: bool | None = True
    sent_s = time.monotonic()
    try:
        stub.Execute(call, timeout=_PATIENCE_S)
    except grpc.RpcError as error:
        accepted = False if error.code() in _REFUSED else None
    return Write(number, master, sent_s, time.monotonic(), accepted)


def read(file: Path) -> list[Write]:
    if not file.exists():
        return []
    return [Write(**json.loads(line)) for line in file.read_text().splitlines()]


def main(argv: Sequence[str]) -> None:
    file, masters = argv
    writer = Writer(Path(file))
    signal.signal(signal.SIGTERM, lambda *_: writer.ending.set())
    threads = [threading.Thread(target=writer.ask, args=(master,)) for master in masters.split(",")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
