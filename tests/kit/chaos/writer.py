"""Asks all masters all the time to act as only a leader may.

To store a number: the weight of a role nobody has.  And to kill a task that nobody has:
its answer needs no registry, so it also tells of a leader that reaches none.

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
_PAUSE_S: Final = 0.1
_PATIENCE_S: Final = 2.0
# It was not done, and will not be: the master does not lead, or the call was never sent.
_REFUSED: Final = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT})


class Writer:
    """One thread for each master, one file for all."""

    def __init__(self, file: Path) -> None:
        self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        # Not from 1 on: that is the weight of all roles, and nothing that is kept.
        self._numbers = itertools.count(2)
        self.ending = threading.Event()

    def ask(self, master: str) -> None:
        """Until the end, with a pause between."""
        with grpc.insecure_channel(master, options=rpc.channel_options()) as channel:
            stub = OperatorServiceStub(channel)
            while not self.ending.wait(_PAUSE_S):
                for number in (next(self._numbers), None):
                    write = _attempt(stub, master, number)
                    os.write(self._fd, (json.dumps(asdict(write)) + "\n").encode())


def _attempt(stub: OperatorServiceStub, master: str, number: int | None) -> Write:
    sent_s = time.monotonic()
    code = _code(stub, _decide() if number is None else _store(number))
    done = grpc.StatusCode.OK if number is not None else grpc.StatusCode.NOT_FOUND
    accepted = True if code is done else False if code in _REFUSED else None
    return Write(number, master, sent_s, time.monotonic(), accepted)


def _code(stub: OperatorServiceStub, call: op.Call) -> grpc.StatusCode:
    try:
        stub.Execute(call, timeout=_PATIENCE_S)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK


def _store(number: int) -> op.Call:
    call = op.Call(type=op.Call.UPDATE_WEIGHTS)
    call.update_weights.weight_infos.add(role=ROLE, weight=number)
    return call


def _decide() -> op.Call:
    call = op.Call(type=op.Call.KILL_TASK)
    call.kill_task.framework_id.value = call.kill_task.task_id.value = "nobody"
    return call


def read(file: Path) -> list[Write]:
    if not file.exists():
        return []
    whole = file.read_text().rpartition("\n")[0]
    return [Write(**json.loads(line)) for line in whole.splitlines()]


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
