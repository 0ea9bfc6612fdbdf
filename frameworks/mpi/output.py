"""What ranks have written, on our stdout and stderr."""

from __future__ import annotations

from frameworks.mpi.core.streams import Text
from mesos_py.cli.running.sink import Prefixed, Sink


class Output:
    """With prefix: whole lines, each with its rank; else bytes as they come.

    Writing raises BrokenPipeError when nobody reads.
    """

    def __init__(self, *, prefix: bool) -> None:
        self._sink = Sink()
        self._prefix = prefix
        self._lines: dict[tuple[str, int], Prefixed] = {}
        self.broken = False

    async def write(self, stream: str, text: Text) -> None:
        """Of the launcher itself as it is."""
        data = text.data
        if self._prefix and text.rank is not None:
            key = stream, text.rank
            if key not in self._lines:
                self._lines[key] = Prefixed(f"[{text.rank}] ".encode())
            data = self._lines[key].lines(data)
        await self._put(stream, data)

    async def end(self) -> None:
        """What has no end of line gets one."""
        lines, self._lines = self._lines, {}
        for (stream, _), each in lines.items():
            await self._put(stream, each.end())

    async def _put(self, stream: str, data: bytes) -> None:
        if data and not self.broken:
            try:
                await self._sink.write(stream, data)
            except BrokenPipeError:
                self.broken = True
                raise
