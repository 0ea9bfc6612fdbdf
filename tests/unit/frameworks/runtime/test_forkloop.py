"""The loop of a fork server, without any child."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from frameworks.runtime.forkloop import ForkLoop


@pytest.fixture
def link():
    """As signals were before."""
    handler = signal.getsignal(signal.SIGCHLD)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, handler)


def test_orders_are_obeyed_and_children_reaped_until_the_other_end_is_closed(link):
    ours, theirs = link
    loop = ForkLoop(theirs)
    seen: list[bytes | str] = []

    def obey() -> bool:
        seen.append(order := theirs.recv(10))
        if order == b"fork":
            os.kill(os.getpid(), signal.SIGCHLD)
        return bool(order)

    def reap() -> None:
        seen.append("reap")
        ours.close()

    ours.send(b"fork")
    loop.run(obey, reap)
    assert seen == [b"fork", "reap", b""]
    assert loop.fds[0] == theirs.fileno()
    for fd in loop.fds[1:]:
        os.close(fd)
