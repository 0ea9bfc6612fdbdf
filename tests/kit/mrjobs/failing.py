"""Raises at one line of its input."""

from mrjob.job import MRJob


class Failing(MRJob):
    def mapper(self, _, line):
        if "poison" in line:
            raise ValueError(f"cannot digest {line!r}")
        yield line, 1


if __name__ == "__main__":
    Failing.run()
