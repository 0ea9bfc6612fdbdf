"""Entries of a batch, joined, are the batch."""

import pytest

from master.api.frames import entry
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched


# Lengths around those at which the length itself becomes a byte longer, and the table ends.
@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 1000, 1023, 1024, 16_383, 16_384, 3_000_000])
def test_entries_joined_are_what_the_message_would_be(size):
    events = [
        sched.Event(type=sched.Event.MESSAGE, message=sched.Event.Message(data=b"x" * more))
        for more in (size, max(0, size - 10), 0)
    ]
    assert b"".join(map(entry, events)) == sched.Events(events=events).SerializeToString()


def test_other_fields_may_follow_the_entries():
    ping = agent_pb2.Event(type=agent_pb2.Event.PING, ping=agent_pb2.Event.Ping(sequence=7))
    tail = agent_pb2.Events(epoch=3).SerializeToString()
    batch = agent_pb2.Events.FromString(entry(ping) + entry(ping) + tail)
    assert batch == agent_pb2.Events(events=[ping, ping], epoch=3)
