"""Changes that are answered once the registry has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from master.api.shell import Shell
from mesos_py.errors import Unavailable
from mesos_py.v1 import operator_pb2 as op


class Changes:
    """Whoever asked hears of it when no successor can have another opinion."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def done(self, change: Callable[[Callable[[], None]], None]) -> op.Response:
        """DONE when what `change` begins is certain; it is given what to call then.

        Raises what `change` raises, and Unavailable when the leadership ends before.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        change(lambda: None if done.done() else done.set_result(None))
        self._shell.rearm()
        await asyncio.wait({done, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise Unavailable("the leadership has ended; whether it was done is not known")
        return op.Response(type=op.Response.DONE)

    def end(self) -> None:
        """The leadership is over: nobody waits any longer.  Idempotent."""
        if not self._ended.done():
            self._ended.set_result(None)
