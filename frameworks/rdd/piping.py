"""A partition through another program: elements as lines to it, its lines as elements."""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

_READ_BYTES: Final = 1 << 16


def through(
    command: str, env: Mapping[str, str], check: bool, split: int, elements: Iterator[Any]
) -> Iterator[str]:
    """The lines that it writes, as it writes them.

    It may read as little as it likes, and write before it has read all.  One thread does
    both: where elements come from is not made for two.  The program has ended when this
    has, also if nobody wants the rest.  Raises RuntimeError for an exit code, if `check`.
    """
    # What is ours alone (the secret of the link) is not for other programs.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MESOS_PY_")}
    process = subprocess.Popen(
        shlex.split(command),
        env=inherited | dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        rest = b""
        for data in _exchanged(process.stdin, process.stdout, _lines(elements)):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line.decode()
        if rest:
            yield rest.decode()
        code = process.wait()
        if check and code:
            raise RuntimeError(f"Pipe function `{command}` exited with error code {code}")
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except BrokenPipeError:
                pass
        process.wait()


def _lines(elements: Iterator[Any]) -> Iterator[bytes]:
    for each in elements:
        yield (str(each).rstrip("\n") + "\n").encode()


def _exchanged(to: IO[bytes], source: IO[bytes], lines: Iterator[bytes]) -> Iterator[bytes]:
    """Writes lines and yields what comes back, whichever is possible."""
    os.set_blocking(to.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(to, selectors.EVENT_WRITE)
        selector.register(source, selectors.EVENT_READ)
        pending = b""
        while True:
            for key, _ in selector.select():
                if key.fileobj is source:
                    data = os.read(source.fileno(), _READ_BYTES)
                    if not data:
                        return
                    yield data
                    continue
                pending = pending or _bite(lines)
                written = _write(to, pending) if pending else None
                if written is None:
                    selector.unregister(to)
                    to.close()
                else:
                    pending = pending[written:]


def _bite(lines: Iterator[bytes]) -> bytes:
    """Some lines together; nothing at their end."""
    bite = bytearray()
    for line in lines:
        bite += line
        if len(bite) >= _READ_BYTES:
            break
    return bytes(bite)


def _write(to: IO[bytes], data: bytes) -> int | None:
    """How many bytes it has taken; None if it will take no more."""
    try:
        return os.write(to.fileno(), data)
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return None
