"""Records as JSON, and what is wrong with what others have sent."""

import pytest

from frameworks.mapreduce.job import JobSpec, Piece, Program, Split
from frameworks.mapreduce.messages import Forget, MapOutput, Maps, Progress, Running, WantMaps
from frameworks.mapreduce.records import decode, encode, from_worker, to_worker
from frameworks.mapreduce.work import Segment, Work
from mesos_py.errors import InvalidValue

SPEC = JobSpec(
    job_id="job_1_0001",
    name="n",
    user="u",
    inputs=("a b", "é\n"),
    output="o",
    mapper=Program(function=bytes(range(256))),
    conf={"k": "v"},
)
SPLIT = Split((Piece("file:///a", 0, -1), Piece("s3://b/c", 2**40, 5)), 7, ("h",))


def test_what_is_written_is_read():
    for record in (SPEC, Work(attempt="a", job_url="u", split=SPLIT)):
        assert decode(type(record), encode(record), "it") == record


def test_messages_know_what_they_are():
    progress = Progress(attempts={"a": Running(0.5, "map", "s", {"g": {"n": 1}})})
    assert from_worker(encode(progress)) == progress
    assert from_worker(encode(WantMaps("a", 3))) == WantMaps("a", 3)
    maps = Maps("a", 0, (MapOutput(1, "m", "s", "u", "p", Segment(1, 2, 3, 4)),))
    assert to_worker(encode(maps)) == maps
    with pytest.raises(InvalidValue):
        to_worker(encode(progress))
    with pytest.raises(InvalidValue):
        from_worker(encode(Forget("job_1_0001")))


def test_what_is_unknown_in_a_later_record_is_passed_over():
    assert decode(Piece, b'{"url":"u","start":1,"length":2,"later":[]}', "it") == Piece("u", 1, 2)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"", "truncated"),
        (b"\xff\xfe", "malformed"),
        (b"[]", "Expected `object`"),
        (b'{"url":"u","start":"x","length":2}', "`$.start`"),
        (b'{"url":"u","start":1}', "missing required field `length`"),
        (b'{"url":null,"start":1,"length":2}', "`$.url`"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(data, where):
    with pytest.raises(InvalidValue) as caught:
        decode(Piece, data, "the piece")
    assert caught.value.field == "the piece"
    assert where in caught.value.message
