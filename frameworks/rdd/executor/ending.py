"""Why a worker leaves a task in its midst.  Not for user code to catch: no Exceptions."""

from __future__ import annotations


class Cancelled(BaseException):
    """The parent wants this process to end."""


class Gone(BaseException):
    """The parent is gone: nothing that a task does matters any more."""
