"""Finds the word used most: three steps, one of them with sorted values."""

import re

from mrjob.job import MRJob
from mrjob.step import MRStep

WORD = re.compile(r"[\w']+")


class MostUsedWord(MRJob):
    def steps(self):
        return [
            MRStep(mapper=self.words, combiner=self.total, reducer=self.total),
            MRStep(reducer=self.pairs),
            MRStep(reducer=self.largest),
        ]

    def words(self, _, line):
        for word in WORD.findall(line):
            yield word.lower(), 1

    def total(self, word, counts):
        yield word, sum(counts)

    def pairs(self, word, counts):
        yield None, (sum(counts), word)

    def largest(self, _, pairs):
        yield max(pairs)


if __name__ == "__main__":
    MostUsedWord.run()
