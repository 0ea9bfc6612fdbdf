"""Word count with a Dask bag, in processes; the result is in order, as that of the others.

python count_dask.py WORKERS BLOCK_BYTES OUT FILE...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import dask
import dask.bag

words = re.compile(r"[\w']+", re.ASCII).findall


def main(workers: str, block_bytes: str, out: str, *files: str) -> None:
    # Each byte is a character of its own: text that is not UTF-8 comes out as it was.
    read: Any = dask.bag.read_text
    lines = read(list(files), blocksize=int(block_bytes), encoding="latin-1")
    with dask.config.set(scheduler="processes", num_workers=int(workers)):
        counted = lines.map(words).flatten().frequencies().compute()
    text = "".join(f"{word}\t{count}\n" for word, count in sorted(counted))
    Path(out).write_text(text, encoding="latin-1")


if __name__ == "__main__":
    main(*sys.argv[1:])
