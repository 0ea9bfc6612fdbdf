"""Which partition lines are in."""

import pytest

from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.data.partitions import Partitioner
from frameworks.mapreduce.job import JobSpec, Program
from mesos_py.errors import InvalidValue


def spec(reduces=1, partitioner="hash", **conf):
    return JobSpec(
        job_id="job_20261128141500_0001",
        name="",
        user="",
        inputs=(),
        output="",
        mapper=Program(command="cat"),
        reduces=reduces,
        partitioner=partitioner,
        conf={name.replace("_", "."): value for name, value in conf.items()},
    )


def test_words_are_where_they_have_always_been():
    partitioner = Partitioner.of(spec(7))
    words = [b"", b"a", b"the", b"12345678", b"123456789", b"\0"]
    assert [partitioner.of_key(word) for word in words] == [6, 2, 5, 4, 5, 0]


def test_lines_are_divided_by_key_in_the_order_in_which_they_come():
    partitioner = Partitioner(Keys(), 3)
    lines = [b"%d\t%d\n" % (number % 10, number) for number in range(100)]
    parts = partitioner.divide(b"".join(lines))
    for number, part in enumerate(parts):
        due = [line for line in lines if partitioner.of_key(Keys().key(line)) == number]
        assert part == b"".join(due)


def test_keys_are_spread_evenly():
    partitioner = Partitioner(Keys(), 16)
    parts = partitioner.divide(b"".join(b"key-%d\n" % number for number in range(16_000)))
    counts = [part.count(b"\n") for part in parts]
    # 1000 each with a deviation of 31.
    assert min(counts) > 850
    assert max(counts) < 1150


def test_only_named_fields_count_with_key_field():
    partitioner = Partitioner.of(
        spec(
            8,
            "key-field",
            **{
                "stream.num.map.output.key.fields": "2",
                "mapreduce.partition.keypartitioner.options": "-k1,1",
            },
        )
    )
    parts = partitioner.divide(b"".join(b"a\t%d\tx\n" % number for number in range(100)))
    assert sorted(part.count(b"\n") for part in parts) == [0] * 7 + [100]
    assert parts[partitioner.of_key(b"a\twhatever")]


@pytest.mark.parametrize("both", [False, True])
def test_the_older_property_counts_fields(both):
    newer = {"mapreduce.partition.keypartitioner.options": "-k1,2"}
    older = {"num.key.fields.for.partition": "2", **(newer if both else {})}
    found = Partitioner.of(spec(8, "key-field", **older))
    assert found == Partitioner.of(spec(8, "key-field", **newer))
    assert found.parts


def test_no_block_is_too_small():
    assert Partitioner(Keys(), 3).divide(b"") == [b"", b"", b""]
    assert Partitioner(Keys(), 1).divide(b"\n") == [b"\n"]


@pytest.mark.parametrize(
    ("job", "named"),
    [
        (spec(2, "total-order"), "partitioner"),
        (
            spec(2, "key-field", **{"mapreduce.partition.keypartitioner.options": "-k0"}),
            "keypartitioner.options",
        ),
        (
            spec(
                2,
                "key-field",
                **{
                    "num.key.fields.for.partition": "2",
                    "mapreduce.partition.keypartitioner.options": "-k1,1",
                },
            ),
            "num.key.fields.for.partition: '2': contradicts",
        ),
    ],
)
def test_wrong_properties_are_named(job, named):
    with pytest.raises(InvalidValue, match=named):
        Partitioner.of(job)
