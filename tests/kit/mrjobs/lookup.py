"""Keeps the lines whose first word is in a file that is given; passes a variable through."""

import os

from mrjob.job import MRJob


class Lookup(MRJob):
    def configure_args(self):
        super().configure_args()
        self.add_file_arg("--wanted")

    def mapper_init(self):
        with open(self.options.wanted) as file:  # noqa: PTH123
            self.wanted = set(file.read().split())

    def mapper(self, _, line):
        first, _, rest = line.partition(" ")
        if first in self.wanted:
            yield first, rest

    def reducer(self, first, rests):
        yield first, [os.environ.get("GREETING", ""), sorted(rests)]


if __name__ == "__main__":
    Lookup.run()
