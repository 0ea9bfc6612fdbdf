"""Whom to ask, one after the other, for code without an event loop."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from mesos_py.address import Address
from mesos_py.election.parse import SESSION_TIMEOUT_S
from mesos_py.election.zookeeper.url import ZooKeeperUrl
from mesos_py.errors import MasterUnreachable

MAX_REDIRECTS: Final = 5
_FIRST_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 1.0


class Search(ABC):
    """For the leader, in one call to it."""

    def __init__(self) -> None:
        # Why addresses could not even be found.
        self.failures: list[str] = []

    @abstractmethod
    def next(self) -> Address | None:
        """The address to try now, if the one before did not lead; None: there is no more."""

    @property
    @abstractmethod
    def others(self) -> int:
        """For how many attempts after this one there should be time."""

    @abstractmethod
    def redirected(self, leader: Address) -> None:
        """The address that was tried named another one as the leader."""


class ListSearch(Search):
    """Each of the addresses once, and whom they name."""

    def __init__(self, addresses: list[Address], last: Address | None) -> None:
        super().__init__()
        known = [last] if last is not None else []
        self._untried = deque(dict.fromkeys([*known, *addresses]))
        self._redirects = 0

    def next(self) -> Address | None:
        return self._untried.popleft() if self._untried else None

    @property
    def others(self) -> int:
        return len(self._untried)

    def redirected(self, leader: Address) -> None:
        if self._redirects < MAX_REDIRECTS:
            self._redirects += 1
            self._untried.appendleft(leader)


class ZooKeeperSearch(Search):
    """Who led last, and then whom ZooKeeper names, until the time is over."""

    def __init__(self, url: ZooKeeperUrl, last: Address | None, deadline_s: float) -> None:
        super().__init__()
        self._url = url
        self._last = last
        self._deadline_s = deadline_s
        self._pause_s = 0.0

    def next(self) -> Address | None:
        # Only who uses ZooKeeper pays for loading its client.
        from mesos_py.election.zookeeper.detector import find_leader

        last, self._last = self._last, None
        if last is not None:
            return last
        if time.monotonic() + self._pause_s >= self._deadline_s:
            return None
        # A master that has died is named until its session has expired.
        time.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _MAX_PAUSE_S) or _FIRST_PAUSE_S
        try:
            return find_leader(self._url, SESSION_TIMEOUT_S, self._deadline_s - time.monotonic())
        except MasterUnreachable as error:
            self.failures.append(error.message)
            return None

    @property
    def others(self) -> int:
        return 1

    def redirected(self, leader: Address) -> None:
        """ZooKeeper is asked anyway, and knows better."""


def new_search(
    where: ZooKeeperUrl | list[Address], last: Address | None, deadline_s: float
) -> Search:
    """`last` is whom the call before this one has found to lead."""
    if isinstance(where, ZooKeeperUrl):
        return ZooKeeperSearch(where, last, deadline_s)
    return ListSearch(where, last)
