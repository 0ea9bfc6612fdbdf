"""Joins people with their cities: the values of a key come in order, the city first."""

from mrjob.job import MRJob


class Join(MRJob):
    SORT_VALUES = True

    def mapper(self, _, line):
        kind, *fields = line.split(",")
        if kind == "city":
            number, name = fields
            yield number, ("A", name)
        else:
            name, number = fields
            yield number, ("B", name)

    def reducer(self, number, rows):
        city = None
        for kind, name in rows:
            if kind == "A":
                city = name
            else:
                yield name, city


if __name__ == "__main__":
    Join.run()
