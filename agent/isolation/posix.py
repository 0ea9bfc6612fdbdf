"""No isolation at all: processes of the machine, told apart by session and user."""

from __future__ import annotations

from agent.isolation.base import Isolator


class PosixIsolator(Isolator):
    """The default.  It is not called at all: launches need no worker thread then."""
