"""The warden: the small process that starts an agent's tasks and waits for them.

One per agent, `python -m agent.containers.warden`.  It is the parent of all tasks, so
it gets their true wait status, and their subreaper, so it gets what they leave behind.
It is single-threaded, holds a few megabytes, and knows nothing of masters and
frameworks.  Why it exists: docs/decisions/0002-warden.md.

It must stay small: nothing but the standard library's light modules is imported.
"""

from __future__ import annotations

import enum
import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from typing import Any, Final, cast

from agent.containers import wire
from agent.containers.processes import UNSURE_RETRY_S, Processes, become_subreaper
from agent.containers.spawn import Spawner, StartError, StartRequest

# While there is more to start, answers go out at least this often.
_ANSWER_EVERY_S: Final = 0.008
# At the end what was killed is waited for this long: a process may hang in the kernel.
_END_S: Final = 30


class OnAgentLoss(enum.Enum):
    """What to do when the agent's end of the socket closes."""

    KILL = "kill"  # end all containers, and this process


class Warden:
    """Serves one agent over `link` until its end of that closes."""

    def __init__(self, link: socket.socket, work_dir: str, on_agent_loss: OnAgentLoss) -> None:
        self._link = link
        self._on_agent_loss = on_agent_loss
        self._unpacker = wire.Unpacker()
        self._spawner = Spawner(work_dir)
        self._processes = Processes()
        # Waiting to be started, in order; by id, so that a signal can take one out.
        self._starts: deque[StartRequest] = deque()
        self._waiting: set[str] = set()
        self._answers: list[list[Any]] = []
        self._unsent = b""
        self._answered_s = 0.0
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Returns when the agent is gone and nothing of its containers runs."""
        woken, waker = socket.socketpair()
        for each in (woken, waker, self._link):
            each.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._link, selectors.EVENT_READ)
        self._selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, mask in self._selector.select(self._pause_s()):
                if key.fileobj is woken:
                    woken.recv(4096)
                    self._reap()
                elif mask & selectors.EVENT_READ and not self._receive():
                    self._agent_is_gone()
                    return
            if self._processes.unsure:
                self._reap()
            if self._starts:
                self._start(self._starts.popleft())
            if self._answers and (
                not self._starts or time.monotonic() - self._answered_s > _ANSWER_EVERY_S
            ):
                self._unsent += wire.pack(self._answers)
                self._answers.clear()
            if self._unsent:
                self._send()

    def _pause_s(self) -> float | None:
        """How long to wait for something to do; None: until there is."""
        if self._starts:
            return 0
        return UNSURE_RETRY_S if self._processes.unsure else None

    def _receive(self) -> bool:
        try:
            data = self._link.recv(1 << 20)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        for message in self._unpacker.feed(data):
            if message[0] == "start":
                request = cast(StartRequest, message[1])
                self._starts.append(request)
                self._waiting.add(request["id"])
            elif message[0] == "signal":
                self._signal(message[1], message[2])
        return bool(data)

    def _signal(self, container_id: str, number: int) -> None:
        if container_id in self._waiting:
            # It is skipped when its turn comes.
            self._waiting.discard(container_id)
            self._answers.append(["failed", container_id, "stopped before it was started"])
        else:
            self._processes.signal(container_id, number)

    def _start(self, request: StartRequest) -> None:
        container_id = request["id"]
        if container_id not in self._waiting:
            return
        self._waiting.discard(container_id)
        try:
            pid = self._spawner.start(request)
        except StartError as error:
            self._answers.append(["failed", container_id, str(error)])
        except Exception as error:
            # A request that we cannot handle must not cost all other tasks.
            text = f"{type(error).__name__}: {error}"
            self._answers.append(["failed", container_id, text])
        else:
            self._processes.add(container_id, pid)
            self._answers.append(["started", container_id, pid])

    def _reap(self) -> None:
        for container_id, status in self._processes.reap():
            self._answers.append(["ended", container_id, status])

    def _send(self) -> None:
        try:
            sent = self._link.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            return  # the next read says that it is gone
        self._unsent = self._unsent[sent:]
        self._answered_s = time.monotonic()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        self._selector.modify(self._link, events)

    def _agent_is_gone(self) -> None:
        if self._on_agent_loss is OnAgentLoss.KILL:
            signal.alarm(_END_S)
            self._processes.kill_all()


def main() -> None:
    """The process.  Arguments: the number of an open socket, the work directory, and
    what to do when the agent is lost (a value of OnAgentLoss)."""
    link_fd, work_dir, on_agent_loss = sys.argv[1:]
    # It ends when its agent does, and not when somebody signals the whole group.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    os.umask(0o022)
    os.chdir("/")
    become_subreaper()
    link = socket.socket(fileno=int(link_fd))
    link.set_inheritable(False)
    warden = Warden(link, work_dir, OnAgentLoss(on_agent_loss))
    # Nothing here makes cycles, and a frozen heap costs less to fork.
    gc.collect()
    gc.freeze()
    gc.disable()
    warden.run()


if __name__ == "__main__":
    main()
