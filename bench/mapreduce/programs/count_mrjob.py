"""Word count as an mrjob program, with the protocol that costs mrjob least."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mrjob.job import MRJob
from mrjob.protocol import (
    BytesProtocol,
    BytesValueProtocol,
)

words = re.compile(rb"[\w']+").findall
Counted = Iterator[tuple[bytes, bytes]]


class WordCount(MRJob):  # type: ignore[misc]
    INPUT_PROTOCOL = BytesValueProtocol
    INTERNAL_PROTOCOL = BytesProtocol
    OUTPUT_PROTOCOL = BytesProtocol

    def mapper(self, _: None, line: bytes) -> Counted:
        for word in words(line):
            yield word, b"1"

    def combiner(self, word: bytes, counts: Iterator[bytes]) -> Counted:
        yield word, b"%d" % sum(map(int, counts))

    def reducer(self, word: bytes, counts: Iterator[bytes]) -> Counted:
        yield word, b"%d" % sum(map(int, counts))


if __name__ == "__main__":
    WordCount.run()
