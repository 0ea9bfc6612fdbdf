"""Users by name: whom a task's process becomes."""

from __future__ import annotations

import os
import pwd
import time
from typing import Final, NamedTuple

from mesos_py.errors import Refused

# Accounts change seldom, and asking a directory service may take seconds.
_KEPT_S: Final = 60.0


class User(NamedTuple):
    """Who runs a container; `switch` None: as the agent itself, nothing to change."""

    uid: int
    gid: int
    switch: tuple[int, int, list[int]] | None


class Users:
    """Looks up users.  `known` never blocks; `find` may, and is for a thread."""

    def __init__(self) -> None:
        self._me = User(os.geteuid(), os.getegid(), None)
        self._groups = set(os.getgroups()) | {os.getegid()}
        self._found: dict[str, tuple[float, User]] = {}

    def known(self, name: str) -> User | None:
        """The user if no look-up is needed."""
        if not name:
            return self._me
        kept = self._found.get(name)
        if kept is None or kept[0] < time.monotonic():
            return None
        return kept[1]

    def find(self, name: str) -> User:
        """Raises Refused for a user that is not there, or whom we may not become."""
        known = self.known(name)
        if known is not None:
            return known
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise Refused(f"user {name!r} does not exist on this agent", user=name) from None
        groups = os.getgrouplist(name, entry.pw_gid)
        user = User(entry.pw_uid, entry.pw_gid, (entry.pw_uid, entry.pw_gid, groups))
        if entry.pw_uid == self._me.uid:
            # No switch, unless the account has groups that we do not have now.
            same = entry.pw_gid == self._me.gid and set(groups) == self._groups
            if same or self._me.uid != 0:
                user = self._me
        elif self._me.uid != 0:
            raise Refused(
                f"cannot run as user {name!r}: this agent runs without root's rights, "
                f"as uid {self._me.uid}",
                user=name,
            )
        self._found[name] = (time.monotonic() + _KEPT_S, user)
        return user
