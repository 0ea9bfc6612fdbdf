"""The words of Python's standard library, counted by MapReduce on a cluster.

    mesos-py local --agents 3 -- python -m examples.mapreduce_demo

Two functions say what is to be done: one is given lines and yields words, the other is
given a word with all its counts and adds them up.  The rest, parting the files among tasks,
running these where there is room, sorting, bringing what belongs to a word together, is
MapReduce's.  In the end the output is compared with a count made right here.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from frameworks.mapreduce import api as mapreduce
from mesos_py import MesosPyError

SHOWN = 8


def words(line: str) -> Iterator[tuple[str, int]]:
    """The mapper."""
    for word in re.findall(r"[a-z_]+", line.lower()):
        yield word, 1


def total(word: str, counts: Iterable[int]) -> Iterator[tuple[str, int]]:
    """The reducer, and the combiner, which adds up what one map has."""
    yield word, sum(counts)


def counted_here(files: Iterable[Path]) -> Counter[str]:
    """The same without a cluster, in one process."""
    found: Counter[str] = Counter()
    for file in files:
        with file.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
            for line in lines:
                found.update(word for word, _ in words(line))
    return found


def read(output: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in sorted(output.glob("part-*")):
        for line in part.read_text(encoding="utf-8").splitlines():
            word, count = line.split("\t")
            found[word] += int(count)
    return found


def main() -> None:
    """Count, show the most frequent words, and compare."""
    console = Console()
    library = Path(sysconfig.get_path("stdlib"))
    # As with Hadoop, names that begin with an underscore are passed over by MapReduce.
    files = sorted(file for file in library.glob("*.py") if not file.name.startswith("_"))
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory, "counts")
        begun_s = time.monotonic()
        done = mapreduce.run(
            mapper=words,
            combiner=total,
            reducer=total,
            inputs=f"{library}/*.py",
            output=str(output),
            reduces=3,
            conf={
                "mesos.input.combine": "true",
                "mapreduce.job.maps": "9",
                "mapreduce.map.cpu.vcores": "0.5",
                "mapreduce.map.memory.mb": "64",
                "mapreduce.reduce.cpu.vcores": "0.5",
                "mapreduce.reduce.memory.mb": "64",
            },
        )
        seconds = time.monotonic() - begun_s
        found = read(output)
    table = Table(
        title=f"Words of {len(files)} files of the standard library", title_justify="left"
    )
    table.add_column("word")
    table.add_column("times", justify="right")
    for word, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]:
        table.add_row(word, f"{count:,}")
    console.print(table)
    same = found == counted_here(files)
    console.print(
        f"{done.maps.total} maps and {done.reduces.total} reduces took {seconds:.1f} s; "
        f"{len(found):,} words, {'the same as' if same else 'NOT the same as'} counted here"
    )
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except MesosPyError as error:
        sys.exit(f"mapreduce_demo: {error.message}")
