"""The warden: the small process that starts an agent's tasks and waits for them.

One per agent, `python -m agent.containers.warden`.  It is the parent of all tasks, so
it gets their true wait status, and their subreaper, so it gets what they leave behind.
It outlives the agent as long as any of them runs, and tells the next one how they ended.
It is single-threaded, holds a few megabytes, and knows nothing of masters and
frameworks.  Why it exists: docs/decisions/0002-warden.md.

It must stay small: nothing but the standard library's light modules is imported.
"""

from __future__ import annotations

import contextlib
import enum
import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from agent.containers import wire
from agent.containers.probes import Probes
from agent.containers.processes import (
    OOM_SCORE,
    UNSURE_RETRY_S,
    Processes,
    become_subreaper,
    lose_protection,
)
from agent.containers.sandbox import opened
from agent.containers.spawn import Spawner, StartError, StartRequest

# While there is more to start, answers go out at least this often.
_ANSWER_EVERY_S: Final = 0.008
# At the end what was killed is waited for this long: a process may hang in the kernel.
_END_S: Final = 30
# When to try again to leave word, since the disk has no room.
_LEAVE_AGAIN_S: Final = 1.0


class OnAgentLoss(enum.Enum):
    """What to do when the agent's end of the socket closes."""

    KILL = "kill"  # end all containers, and this process
    WAIT = "wait"  # go on, for the agent to come back


class Warden:
    """Serves one agent over `link` until that is over, or until another one connects."""

    def __init__(
        self,
        link: socket.socket,
        work_dir: str,
        on_agent_loss: OnAgentLoss,
        recovery_timeout_s: float,
    ) -> None:
        self._first_link = link
        self._link: socket.socket | None = None
        self._work_dir = work_dir
        self._on_agent_loss = on_agent_loss
        self._recovery_timeout_s = recovery_timeout_s
        # When everything is ended, since no agent has come back.
        self._give_up_s: float | None = None
        # Not to end before, since what is to be told could not be left in its file.
        self._leave_s = 0.0
        self._unpacker = wire.Unpacker()
        self._spawner = Spawner(work_dir)
        self._processes = Processes()
        # Waiting to be started, in order; by id, so that a signal can take one out.
        self._starts: deque[StartRequest] = deque()
        self._waiting: set[str] = set()
        # How containers ended or failed to start, until the agent has written it down.
        self._results: dict[str, list[Any]] = {}
        # Containers that have ended, which is told when those within them have, too.
        self._delayed: dict[str, int | None] = {}
        self._answers: list[list[Any]] = []
        self._unsent = b""
        self._answered_s = 0.0
        self._listener: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        self._probes = Probes(self._spawner, self._selector)
        self._over = False

    def run(self) -> None:
        """Returns when nothing of its containers runs and there is no agent any more."""
        woken, waker = socket.socketpair()
        for each in (woken, waker):
            each.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Each with what to call when it is ready.
        self._selector.register(woken, selectors.EVENT_READ, lambda _: self._woken(woken))
        self._take_link(self._first_link)
        if self._on_agent_loss is OnAgentLoss.WAIT:
            self._listener = _listening(self._work_dir)
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        while not self._over:
            for key, mask in self._selector.select(self._pause_s()):
                key.data(mask)
            if self._processes.unsure:
                self._reap()
            self._kill_probes(self._probes.overdue())
            if self._starts:
                self._start(self._starts.popleft())
            if self._link is not None:
                self._answer()
            elif not len(self._processes):
                if time.monotonic() >= self._leave_s:
                    self._leave_word()
            elif self._give_up_s is not None and time.monotonic() >= self._give_up_s:
                self._give_up()

    def _woken(self, woken: socket.socket) -> None:
        woken.recv(4096)
        self._reap()

    def _answer(self) -> None:
        late = time.monotonic() - self._answered_s > _ANSWER_EVERY_S
        if self._answers and (not self._starts or late):
            self._unsent += wire.pack(self._answers)
            self._answers.clear()
        if self._unsent:
            self._send()

    def _pause_s(self) -> float | None:
        """How long to wait for something to do; None: until there is."""
        if self._starts:
            return 0
        if self._processes.unsure:
            return UNSURE_RETRY_S
        if self._link is None and not len(self._processes):
            return max(0.0, self._leave_s - time.monotonic())
        pauses = [self._probes.pause_s()]
        if self._give_up_s is not None:
            pauses.append(max(0.0, self._give_up_s - time.monotonic()))
        return min((each for each in pauses if each is not None), default=None)

    # ---- The agent ----------------------------------------------------------------

    def _take_link(self, link: socket.socket) -> None:
        link.setblocking(False)
        self._link = link
        self._selector.register(link, selectors.EVENT_READ, self._hear)

    def _accept(self, _mask: int) -> None:
        """Another agent is there: since it holds the work directory, the first is gone."""
        assert self._listener is not None
        try:
            link, _ = self._listener.accept()
        except OSError:
            return  # it has left already
        if self._link is not None:
            self._lose(self._link)
        self._give_up_s = None
        self._take_link(link)
        running = self._processes.running()
        self._answers = [["have", *each] for each in running if each[0] not in self._probes]
        self._answers.extend(self._results.values())
        self._answers.append(["ready", wire.VERSION])

    def _agent_is_gone(self) -> None:
        if self._on_agent_loss is OnAgentLoss.KILL:
            signal.alarm(_END_S)
            self._processes.kill_all()
            self._close()
        elif self._link is not None:
            self._lose(self._link)

    def _lose(self, link: socket.socket) -> None:
        self._selector.unregister(link)
        link.close()
        self._link = None
        self._unpacker = wire.Unpacker()
        self._unsent = b""
        # Said again to the next one, as far as it is not forgotten.
        self._answers.clear()
        self._kill_probes(self._probes.all())
        for container_id, status in self._delayed.items():
            self._results[container_id] = ["ended", container_id, status]
        self._delayed.clear()
        for container_id in self._waiting:
            failed = ["failed", container_id, "the agent ended before it was started"]
            self._results[container_id] = failed
        self._waiting.clear()
        self._starts.clear()
        self._give_up_s = time.monotonic() + self._recovery_timeout_s
        # What was the agent's terminal or log is not held open by us.
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.close(null)

    def _give_up(self) -> None:
        """No agent has come: what runs is ended, and the loop waits for that."""
        self._give_up_s = None
        for container_id, _ in self._processes.running():
            self._processes.signal(container_id, signal.SIGKILL)

    def _close(self) -> None:
        self._over = True
        if self._listener is not None:
            _unlink_socket(self._work_dir)

    def _leave_word(self) -> None:
        """Nothing runs and nobody listens: what is to be told is left in a file."""
        if self._results:
            try:
                self._write_results()
            except FileNotFoundError:
                # The work directory was removed: no agent will ask for it any more.
                pass
            except OSError:
                # No room: whoever comes is told by us then, and else we try again.
                self._leave_s = time.monotonic() + _LEAVE_AGAIN_S
                return
        self._close()

    def _write_results(self) -> None:
        with opened(self._work_dir) as root:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            name = f"{wire.ENDS_NAME}.new"
            fd = os.open(name, flags, 0o600, dir_fd=root)
            with os.fdopen(fd, "wb") as file:
                file.write(wire.pack(self._results.values()))
            os.rename(name, wire.ENDS_NAME, src_dir_fd=root, dst_dir_fd=root)

    def _hear(self, mask: int) -> None:
        if mask & selectors.EVENT_READ and not self._receive():
            self._agent_is_gone()

    def _receive(self) -> bool:
        assert self._link is not None
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
            elif message[0] == "probe":
                self._probe(cast(StartRequest, message[1]), *message[2])
            elif message[0] == "within":
                self._start_within(cast(StartRequest, message[1]), *message[2])
            elif message[0] == "signal":
                self._signal(message[1], message[2])
            elif message[0] == "forget":
                self._results.pop(message[1], None)
            elif message[0] == "on_agent_loss":
                self._on_agent_loss = OnAgentLoss(message[1])
                self._recovery_timeout_s = message[2]
            elif message[0] == "end":
                self._on_agent_loss = OnAgentLoss.KILL
        return bool(data)

    # ---- Containers ---------------------------------------------------------------

    def _signal(self, container_id: str, number: int) -> None:
        if container_id in self._waiting:
            # It is skipped when its turn comes.
            self._waiting.discard(container_id)
            self._result(["failed", container_id, "stopped before it was started"])
        else:
            # What is within another container has nobody who would send KILL afterwards.
            spare = container_id not in self._probes
            self._processes.signal(container_id, number, spare=spare)

    def _start(self, request: StartRequest) -> None:
        container_id = request["id"]
        if container_id not in self._waiting:
            return
        self._waiting.discard(container_id)
        try:
            pid = self._spawner.start(request)
        except StartError as error:
            self._result(["failed", container_id, str(error)])
        except Exception as error:
            # A request that we cannot handle must not cost all other tasks.
            text = f"{type(error).__name__}: {error}"
            self._result(["failed", container_id, text])
        else:
            self._processes.add(container_id, pid)
            self._probes.remember(request)
            self._answers.append(["started", container_id, pid])

    def _probe(self, request: StartRequest, container_id: str, limit_s: float) -> None:
        probe_id = request["id"]
        if probe_id in self._processes:
            # One of an earlier run of the agent, which cannot be killed.
            self._answers.append(["unprobed", probe_id, "the last one has not ended yet"])
            return
        self._start_beside(probe_id, lambda: self._probes.start(request, container_id, limit_s))

    def _start_within(
        self, request: StartRequest, container_id: str, stdio: list[str] | None
    ) -> None:
        within_id = request["id"]
        if not self._processes.led(container_id):
            text = "its container has ended, or is none that this warden has started"
            self._answers.append(["unprobed", within_id, text])
        elif within_id in self._processes:
            self._answers.append(["unprobed", within_id, "the last one has not ended yet"])
        else:
            start = self._probes.start_within
            self._start_beside(within_id, lambda: start(request, container_id, stdio))

    def _start_beside(self, probe_id: str, start: Callable[[], int]) -> None:
        try:
            pid = start()
        except StartError as error:
            self._answers.append(["probed", probe_id, [None, "", str(error)]])
        except Exception as error:
            # Our own fault, such as no more descriptors: for no task to die of.
            text = f"{type(error).__name__}: {error}"
            self._answers.append(["unprobed", probe_id, text])
        else:
            self._processes.add(probe_id, pid)
            self._answers.append(["probing", probe_id, pid])

    def _kill_probes(self, probe_ids: list[str]) -> None:
        for probe_id in probe_ids:
            self._processes.signal(probe_id, signal.SIGKILL)

    def _reap(self) -> None:
        for container_id, status in self._processes.reap():
            if container_id not in self._probes:
                self._kill_probes(self._probes.forget(container_id))
                if self._link is not None and self._probes.within(container_id):
                    self._delayed[container_id] = status
                else:
                    self._result(["ended", container_id, status])
                continue
            beside = self._probes.container_of(container_id)
            output, why = self._probes.ended(container_id)
            if self._link is not None:
                self._answers.append(["probed", container_id, [status, output, why]])
            if beside in self._delayed and not self._probes.within(beside):
                self._result(["ended", beside, self._delayed.pop(beside)])

    def _result(self, answer: list[Any]) -> None:
        self._results[answer[1]] = answer
        if self._link is not None:
            self._answers.append(answer)

    def _send(self) -> None:
        assert self._link is not None
        try:
            sent = self._link.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            return  # the next read says that it is gone
        self._unsent = self._unsent[sent:]
        self._answered_s = time.monotonic()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        self._selector.modify(self._link, events, self._hear)


def _listening(work_dir: str) -> socket.socket:
    """Where the next agent finds us; for the agent's user alone."""
    _unlink_socket(work_dir)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with opened(work_dir) as root:
            # By the descriptor: the path may be too long for a socket's address.
            listener.bind(f"/proc/self/fd/{root}/{wire.SOCKET_NAME}")
    finally:
        os.umask(before)
    listener.listen(4)
    listener.setblocking(False)
    return listener


def _unlink_socket(work_dir: str) -> None:
    with contextlib.suppress(FileNotFoundError), opened(work_dir) as root:
        os.unlink(wire.SOCKET_NAME, dir_fd=root)


def main() -> None:
    """The process.  Arguments: the number of an open socket, the work directory, what
    to do when the agent is lost (a value of OnAgentLoss), and for how many seconds to
    wait for it."""
    link_fd, work_dir, on_agent_loss, recovery_timeout_s = sys.argv[1:]
    # It ends when its agent does, and not when somebody signals the whole group.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    os.umask(0o022)
    os.chdir("/")
    become_subreaper()
    lose_protection(OOM_SCORE)
    link = socket.socket(fileno=int(link_fd))
    link.set_inheritable(False)
    timeout_s = float(recovery_timeout_s)
    warden = Warden(link, work_dir, OnAgentLoss(on_agent_loss), timeout_s)
    # Nothing here makes cycles, and a frozen heap costs less to fork.
    gc.collect()
    gc.freeze()
    gc.disable()
    warden.run()


if __name__ == "__main__":
    main()
