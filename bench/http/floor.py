"""The floor: a bare aiohttp server that streams ready-made records.

The body of the first request is a JSON object with the records: `first` and `record` (text
in base64) and `at_once`, how many records follow the first one.  After that there is one record
for each call, whatever is in it: what a client takes for the answer to its last one.
Each record is a chunk of its own, as it is with a master.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import signal
from pathlib import Path

import click
from aiohttp import web

from bench.http.wire import STREAM_ID
from bench.processes import LOOPBACK
from mesos_py.files import write_atomically
from mesos_py.http.recordio import framed


class _Stream:
    """One client's: how many records are due, and who waits for them."""

    def __init__(self) -> None:
        self.due = 0
        self.some = asyncio.Event()


class Floor:
    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._numbers = itertools.count(1)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        known = self._streams.get(request.headers.get(STREAM_ID, ""))
        if known is None:
            return await self._stream(request, json.loads(body))
        known.due += 1
        known.some.set()
        return web.Response(status=202)

    async def _stream(self, request: web.BaseRequest, asked: dict[str, str]) -> web.StreamResponse:
        number = str(next(self._numbers))
        stream = self._streams[number] = _Stream()
        stream.due = int(asked["at_once"])
        record = framed(base64.b64decode(asked["record"]))
        answer = web.StreamResponse(headers={STREAM_ID: number})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        await answer.write(framed(base64.b64decode(asked["first"])))
        try:
            while True:
                due, stream.due = stream.due, 0
                for _ in range(due):
                    await answer.write(record)
                stream.some.clear()
                if not stream.due:
                    await stream.some.wait()
        finally:
            del self._streams[number]


async def serve(port_file: Path) -> None:
    runner = web.ServerRunner(web.Server(Floor().answer, handler_cancellation=True))
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0, shutdown_timeout=0.5)
    await site.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    write_atomically(port_file, f"{runner.addresses[0][1]}\n")
    await ended.wait()
    await runner.cleanup()


@click.command()
@click.option("--port-file", type=click.Path(path_type=Path), required=True)
def main(port_file: Path) -> None:
    asyncio.run(serve(port_file))


if __name__ == "__main__":
    main()
