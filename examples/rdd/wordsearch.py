"""Search text: lines that match, counted by file and word, the text kept in memory.

    mesos-py rdd submit --master local[2] examples/rdd/wordsearch.py 'logs/*.txt' error timeout

The first pattern reads the files; those after it find them in memory.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from frameworks.rdd import SparkContext


def search(sc: SparkContext, files: str, patterns: Sequence[str]) -> dict[str, list[str]]:
    """For each pattern the lines that match it, in the order of the files."""
    lines = sc.textFile(files).cache()
    found = {}
    for pattern in patterns:
        compiled = re.compile(pattern)
        found[pattern] = lines.filter(functools.partial(_matches, compiled)).collect()
    lines.unpersist()
    return found


def common_words(sc: SparkContext, files: str, count: int) -> list[tuple[str, int]]:
    """The words that come most often, and how often; of equals the first by alphabet."""
    words = sc.textFile(files).flatMap(_words)
    counts = words.map(lambda word: (word, 1)).reduceByKey(lambda a, b: a + b)
    return counts.takeOrdered(count, key=lambda pair: (-pair[1], pair[0]))


def _matches(pattern: re.Pattern[str], line: str) -> bool:
    return pattern.search(line) is not None


def _words(line: str) -> Iterable[str]:
    return re.findall(r"[a-z']+", line.lower())


def main(argv: Sequence[str]) -> None:
    files, *patterns = argv
    with SparkContext(appName="word search") as sc:
        for pattern, lines in search(sc, files, patterns).items():
            print(f"{pattern}: {len(lines)} lines")
            for line in lines[:10]:
                print(f"  {line}")
        for word, times in common_words(sc, files, 10):
            print(f"{times:8d} {word}")


if __name__ == "__main__":
    arguments: Any = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    main(arguments)
