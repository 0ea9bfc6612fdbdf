"""The numbers of usage and their form on the wire."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.usage.statistics import (
    MAX_OTHER,
    NUMBERS,
    as_mesos,
    note_asked,
    numbers_of,
    statistics,
)
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb


def test_every_number_has_a_place_of_its_own():
    fields = [number.field for number in NUMBERS.values()]
    assert len(set(fields)) == len(fields)
    assert set(fields) <= set(pb.ResourceStatistics.DESCRIPTOR.fields_by_name)


@pytest.mark.parametrize("name", NUMBERS)
def test_what_goes_in_comes_out(name):
    message = statistics({name: 3.0}, 12.5)
    assert message.timestamp == 12.5
    assert list(numbers_of(message)) == [(name, 3.0)]


def test_times_and_cores_are_fractions():
    message = statistics({"cpu_user_seconds": 0.25, "cpu_limit_cores": 1.5}, 1)
    assert (message.cpus_user_time_secs, message.cpus_limit) == (0.25, 1.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_what_is_no_amount_is_left_out(value):
    assert list(numbers_of(statistics({"memory_bytes": value, "pids": 2}, 1))) == [("pids", 2)]


def test_numbers_of_other_isolators_go_along_so_many_of_them():
    found = dict(numbers_of(statistics({f"gpu_{n}": n for n in range(100)}, 1)))
    assert len(found) == MAX_OTHER
    assert found["gpu_3"] == 3


@given(st.dictionaries(st.sampled_from(sorted(NUMBERS)) | st.text(max_size=5), st.floats()))
def test_whatever_an_isolator_says_can_be_sent(numbers):
    message = statistics(numbers, 1.0)
    assert pb.ResourceStatistics.FromString(message.SerializeToString()) == message
    assert all(value >= 0 for _, value in numbers_of(message))


def test_what_was_asked_for_stands_beside_what_is_used():
    message = pb.ResourceStatistics()
    first = Resources.of(cpus=0.5, mem=32).to_proto()
    note_asked(message, [*first, *Resources.of(cpus=1, disk=7).to_proto()])
    assert (message.cpus_soft_limit, message.mem_soft_limit_bytes) == (1.5, 32 << 20)
    assert not message.HasField("mem_limit_bytes")


def test_names_that_mesos_has_beside_ours():
    given = pb.ResourceStatistics(mem_rss_bytes=1, mem_cache_bytes=2, mem_soft_limit_bytes=3)
    found = as_mesos(given)
    assert (found.mem_anon_bytes, found.mem_file_bytes, found.mem_limit_bytes) == (1, 2, 3)
    assert not given.HasField("mem_limit_bytes")
    given.mem_limit_bytes = 5
    assert as_mesos(given).mem_limit_bytes == 5
    assert as_mesos(pb.ResourceStatistics()) == pb.ResourceStatistics()
