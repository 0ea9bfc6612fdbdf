"""Has no reducer: what the mapper writes is the output."""

from mrjob.job import MRJob
from mrjob.protocol import RawValueProtocol


class MapOnly(MRJob):
    OUTPUT_PROTOCOL = RawValueProtocol

    def mapper(self, _, line):
        yield None, line.upper()


if __name__ == "__main__":
    MapOnly.run()
