"""One thread that sleeps until the kernel tells of an out-of-memory in some group.

It asks nobody in between: the kernel wakes it through a descriptor (v1: an eventfd, v2:
the file memory.events itself).  What it then finds may have to be looked at again a
moment later: v1 tells before it kills, and a container whose process was killed may be
about to end as a whole.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import select
import threading
import time
from collections.abc import Callable

from agent.isolation.cgroups.files import Notice
from mesos_py import logs

log = logs.get("agent.isolation.cgroups")

# Looks at a container, told by the kernel or not; returns after how many seconds to look
# again, None: when told to.
Look = Callable[[str, bool], float | None]


class OomWatch:
    """Calls `look` in its thread, for one container at a time."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._notices: dict[str, Notice] = {}
        self._by_fd: dict[int, str] = {}
        self._epoll: select.epoll | None = None
        self._waker = -1
        self._thread: threading.Thread | None = None
        self._asked: set[str] = set()
        # When to look again: (monotonic time, container); only the thread uses it.
        self._again: list[tuple[float, str]] = []

    def add(self, container_id: str, notice: Notice) -> None:
        """Watch it; the notice belongs to us now."""
        with self._lock:
            if self._thread is None:
                self._start()
            assert self._epoll is not None
            self._notices[container_id] = notice
            self._by_fd[notice.fd] = container_id
            self._epoll.register(notice.fd, notice.mask)

    def remove(self, container_id: str) -> None:
        """Watch it no more; fine if it is not watched."""
        with self._lock:
            notice = self._notices.pop(container_id, None)
            if notice is not None:
                self._drop(notice)

    def look_soon(self, container_id: str) -> None:
        """Look at it in the thread, as if the kernel had told."""
        with self._lock:
            if self._thread is not None:
                self._asked.add(container_id)
                os.eventfd_write(self._waker, 1)

    def close(self) -> None:
        """End the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is None:
                return
            os.eventfd_write(self._waker, 1)
        thread.join()
        with self._lock:
            for notice in self._notices.values():
                notice.close()
            self._notices.clear()
            self._by_fd.clear()
            os.close(self._waker)
            assert self._epoll is not None
            self._epoll.close()

    def _start(self) -> None:
        self._epoll = select.epoll()
        self._waker = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._waker, select.EPOLLIN)
        self._thread = threading.Thread(
            target=self._run, args=(self._epoll,), name="oom-watch", daemon=True
        )
        self._thread.start()

    def _drop(self, notice: Notice) -> None:
        del self._by_fd[notice.fd]
        assert self._epoll is not None
        with contextlib.suppress(OSError):
            self._epoll.unregister(notice.fd)
        notice.close()

    def _run(self, epoll: select.epoll) -> None:
        while True:
            told = [fd for fd, _ in epoll.poll(self._pause_s())]
            if self._waker in told:
                os.eventfd_read(self._waker)
            with self._lock:
                if self._thread is None:
                    return
                asked, self._asked = self._asked, set()
            now_s = time.monotonic()
            woken = asked | {each for fd in told if (each := self._rearmed(fd))}
            due = set(woken)
            while self._again and self._again[0][0] <= now_s:
                due.add(heapq.heappop(self._again)[1])
            for container_id in sorted(due):
                self._look_at(container_id, container_id in woken)

    def _pause_s(self) -> float:
        """Negative: until something is told."""
        return max(0.0, self._again[0][0] - time.monotonic()) if self._again else -1

    def _rearmed(self, fd: int) -> str | None:
        """Which container it was that something was told of."""
        with self._lock:
            container_id = self._by_fd.get(fd)
            if container_id is None:
                return None
            notice = self._notices[container_id]
            if not notice.rearm():
                # Its group is gone: that would show for ever.
                del self._notices[container_id]
                self._drop(notice)
            return container_id

    def _look_at(self, container_id: str, woken: bool) -> None:
        try:
            again_s = self._look(container_id, woken)
        except Exception as error:
            log.exception("out-of-memory watch failed", container=container_id, error=error)
            return
        if again_s is not None:
            heapq.heappush(self._again, (time.monotonic() + again_s, container_id))
