"""Counts words, with a combiner and counters of its own."""

import re

from mrjob.job import MRJob

WORD = re.compile(r"[\w']+")


class WordCount(MRJob):
    def mapper(self, _, line):
        words = WORD.findall(line)
        self.increment_counter("lines", "with words" if words else "without words")
        for word in words:
            yield word.lower(), 1

    def combiner(self, word, counts):
        yield word, sum(counts)

    def reducer(self, word, counts):
        yield word, sum(counts)


if __name__ == "__main__":
    WordCount.run()
