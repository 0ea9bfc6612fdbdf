"""Runs: files of sorted lines, and their merge by GNU sort, which needs little memory for it.

Lines are ordered by their bytes; see `keys.py` for how this comes to be the order asked for.
"""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Final

_READ: Final = 1 << 18
# Files that sort merges at once; of more it makes fewer first, on disk.
_AT_ONCE: Final = 256
_LEAST_MEMORY: Final = 1 << 20


def merged(
    paths: Iterable[Path], directory: Path, memory_bytes: int
) -> Generator[bytes, None, None]:
    """The lines of all these files in order, as blocks.  To be closed when it is not read to its
    end.  `directory` is for what sort and we write meanwhile.

    Raises OSError: a file is not there, the disk is full (ENOSPC), there is no sort program.
    """
    with tempfile.TemporaryDirectory(prefix="merge-", dir=directory) as own:
        names = Path(own) / "names"
        names.write_bytes(b"".join(bytes(path.absolute()) + b"\0" for path in paths))
        command = [
            "sort",
            "--merge",
            f"--batch-size={_AT_ONCE}",
            f"--buffer-size={max(memory_bytes, _LEAST_MEMORY)}b",
            f"--temporary-directory={own}",
            f"--files0-from={names}",
        ]
        errors = Path(own) / "errors"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)},
            )
        output = process.stdout
        assert output is not None
        try:
            # sort writes little at a time.
            yield from whole_lines(iter(lambda: output.read(_READ), b""))
            if code := process.wait():
                raise _failed(code, errors.read_bytes())
        finally:
            process.kill()
            process.wait()
            output.close()


def _failed(code: int, said: bytes) -> OSError:
    text = said.decode("utf-8", "replace").strip()
    full = os.strerror(errno.ENOSPC) in text
    return OSError(errno.ENOSPC if full else errno.EIO, f"sort ended with {code}: {text}")


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of whole lines."""
    rest: list[bytes] = []
    for chunk in chunks:
        if end := chunk.rfind(b"\n") + 1:
            rest.append(chunk[:end])
            yield b"".join(rest)
            rest = [chunk[end:]] if end < len(chunk) else []
        else:
            rest.append(chunk)
    if rest:
        yield b"".join(rest)


def remove(paths: Iterable[Path]) -> None:
    """Files that may be gone."""
    for path in paths:
        path.unlink(missing_ok=True)
