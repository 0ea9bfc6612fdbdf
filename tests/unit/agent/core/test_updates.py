"""One acknowledged stream per task: order, repeats, acknowledgements, pauses."""

from agent.core.journal import Journal
from agent.core.updates import (
    FIRST_RETRY_S,
    MAX_RETRY_S,
    NEWS_RETRY_S,
    SLICE,
    SLICE_S,
    Ack,
    UpdateStreams,
)
from mesos_py.clock import ManualClock
from mesos_py.v1 import types_pb2 as pb

KEY = ("F1", "t")


class Streams:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.sent: list[tuple[str, str]] = []
        self.streams = UpdateStreams(self._sent, Journal())
        self.streams.resume(self.clock.now())

    def _sent(self, call) -> None:
        update = call.update
        self.sent.append((update.status.uuid.decode(), pb.TaskState.Name(update.latest_state)))

    def add(self, uuid: str, state, key=KEY) -> None:
        status = pb.TaskStatus(task_id=pb.TaskID(value=key[1]), state=state, uuid=uuid.encode())
        self.streams.add(key, status, state, self.clock.now())

    def ack(self, uuid: str, key=KEY) -> Ack:
        return self.streams.acknowledge(key, uuid.encode(), self.clock.now())

    def advance(self, seconds: float) -> None:
        end = self.clock.monotonic_s + seconds
        while (at := self.streams.next_s()) is not None and at <= end:
            self.clock.advance(at - self.clock.monotonic_s)
            self.streams.repeat(self.clock.now())
        self.clock.advance(end - self.clock.monotonic_s)

    def uuids(self) -> list[str]:
        return [uuid for uuid, _ in self.sent]


def test_only_the_head_is_in_flight_and_the_next_goes_out_after_its_acknowledgement():
    s = Streams()
    s.add("1", pb.TASK_STARTING)
    s.add("2", pb.TASK_RUNNING)
    assert s.uuids() == ["1"]
    assert s.ack("1") is Ack.NEXT
    assert s.uuids() == ["1", "2"]


def test_every_update_carries_the_newest_state():
    s = Streams()
    s.add("1", pb.TASK_STARTING)
    s.add("2", pb.TASK_RUNNING)
    s.ack("1")
    s.add("3", pb.TASK_FINISHED)
    s.ack("2")
    assert s.sent == [("1", "TASK_STARTING"), ("2", "TASK_RUNNING"), ("3", "TASK_FINISHED")]


def test_an_unacknowledged_head_is_repeated_at_doubling_intervals_for_ever():
    s = Streams()
    s.add("1", pb.TASK_RUNNING)
    began = s.clock.monotonic_s
    moments = []
    for _ in range(10):
        at = s.streams.next_s()
        assert at is not None
        moments.append(at - began)
        s.advance(at - s.clock.monotonic_s)
    intervals = [b - a for a, b in zip([0, *moments], moments, strict=False)]
    assert intervals[:7] == [FIRST_RETRY_S * 2**n for n in range(6)] + [MAX_RETRY_S]
    assert intervals[-1] == MAX_RETRY_S
    assert set(s.uuids()) == {"1"}


def test_the_interval_starts_anew_with_each_head():
    s = Streams()
    s.add("1", pb.TASK_STARTING)
    s.add("2", pb.TASK_RUNNING)
    s.advance(100)
    s.ack("1")
    assert s.streams.next_s() == s.clock.monotonic_s + FIRST_RETRY_S


def test_an_end_behind_an_unacknowledged_head_is_told_soon_so_that_resources_are_freed():
    s = Streams()
    s.add("1", pb.TASK_STARTING)
    s.add("2", pb.TASK_FINISHED)
    assert s.sent == [("1", "TASK_STARTING")]
    s.advance(NEWS_RETRY_S)
    assert s.sent[-1] == ("1", "TASK_FINISHED")


def test_an_end_shortly_before_the_repeat_waits_for_it():
    s = Streams()
    s.add("1", pb.TASK_STARTING)
    s.advance(FIRST_RETRY_S - NEWS_RETRY_S / 2)
    s.add("2", pb.TASK_FINISHED)
    assert len(s.sent) == 1
    s.advance(NEWS_RETRY_S / 2)
    assert s.sent[-1] == ("1", "TASK_FINISHED")


def test_nothing_is_repeated_while_there_is_no_master():
    s = Streams()
    s.add("1", pb.TASK_RUNNING)
    s.streams.pause()
    s.streams.repeat(s.clock.advance(FIRST_RETRY_S))
    assert s.uuids() == ["1"]


def test_an_acknowledgement_of_another_update_changes_nothing():
    s = Streams()
    s.add("1", pb.TASK_STARTING)
    s.add("2", pb.TASK_RUNNING)
    assert s.ack("2") is Ack.MISMATCH
    assert s.ack("x", ("F1", "other")) is Ack.UNKNOWN
    assert s.uuids() == ["1"]
    assert s.ack("1") is Ack.NEXT
    assert s.ack("1") is Ack.MISMATCH


def test_after_the_acknowledged_end_the_stream_is_closed():
    s = Streams()
    s.add("1", pb.TASK_FAILED)
    assert s.streams.ended(KEY)
    assert s.ack("1") is Ack.ENDED
    assert KEY not in s.streams
    assert s.streams.next_s() is None
    assert s.ack("1") is Ack.UNKNOWN


def test_nothing_is_sent_while_there_is_no_master_and_all_heads_when_there_is():
    s = Streams()
    s.add("1", pb.TASK_RUNNING)
    s.streams.pause()
    s.add("2", pb.TASK_RUNNING, ("F1", "u"))
    s.advance(10_000)
    assert s.uuids() == ["1"]
    s.streams.resume(s.clock.now())
    assert s.uuids() == ["1", "1", "2"]
    assert s.streams.next_s() == s.clock.monotonic_s + FIRST_RETRY_S


def test_an_acknowledgement_that_comes_while_paused_is_taken():
    s = Streams()
    s.add("1", pb.TASK_STARTING)
    s.add("2", pb.TASK_RUNNING)
    s.streams.pause()
    assert s.ack("1") is Ack.NEXT
    s.streams.resume(s.clock.now())
    assert s.uuids() == ["1", "2"]


def test_a_removed_frameworks_streams_go():
    s = Streams()
    s.add("1", pb.TASK_RUNNING)
    s.add("2", pb.TASK_RUNNING, ("F2", "t"))
    s.streams.drop_framework("F1")
    assert list(s.streams) == [("F2", "t")]


def test_uuids_are_known_until_the_stream_is_closed():
    s = Streams()
    s.add("1", pb.TASK_STARTING)
    s.ack("1")
    assert s.streams.has(KEY, b"1")
    assert not s.streams.has(KEY, b"2")


# ---- A scheduler that has subscribed anew ---------------------------------------------------


def test_a_scheduler_that_subscribed_anew_is_sent_all_heads_at_once_and_intervals_start_anew():
    s = Streams()
    s.add("1", pb.TASK_RUNNING)
    s.add("2", pb.TASK_FINISHED)
    s.add("u", pb.TASK_RUNNING, ("F1", "u"))
    s.add("v", pb.TASK_RUNNING, ("F2", "v"))
    s.add("w", pb.TASK_RUNNING, ("F1", "w"))
    s.ack("w", ("F1", "w"))
    s.advance(100)
    s.sent.clear()
    s.streams.repeat_framework("F1", s.clock.now())
    assert s.sent == [("1", "TASK_FINISHED"), ("u", "TASK_RUNNING")]
    s.sent.clear()
    s.advance(FIRST_RETRY_S)
    assert s.uuids() == ["1", "u"]


def test_of_a_framework_without_updates_nothing_is_repeated():
    s = Streams()
    s.add("1", pb.TASK_RUNNING)
    s.streams.repeat_framework("F9", s.clock.now())
    assert s.uuids() == ["1"]


def test_thousands_of_heads_go_out_in_slices_each_once():
    s = Streams()
    count = 2 * SLICE + 1
    for number in range(count):
        s.add(str(number), pb.TASK_FINISHED, ("F1", str(number)))
    # The agent's own repeat, of which the order makes nothing later.
    s.advance(FIRST_RETRY_S - SLICE_S / 2)
    s.sent.clear()
    s.streams.repeat_framework("F1", s.clock.now())
    assert len(s.sent) == SLICE
    s.sent.clear()
    s.advance(SLICE_S / 2)
    assert len(s.sent) == SLICE + 1
    assert len(set(s.uuids())) == SLICE + 1


def test_orders_to_repeat_that_come_in_a_row_send_no_more_than_the_slices_hold():
    s = Streams()
    for number in range(3 * SLICE):
        s.add(str(number), pb.TASK_FINISHED, ("F1", str(number)))
    s.sent.clear()
    for _ in range(100):
        s.streams.repeat_framework("F1", s.clock.now())
        s.advance(SLICE_S / 100)
    assert 0 < len(s.sent) <= 2 * SLICE
    s.advance(4 * SLICE_S)
    assert len(set(s.uuids())) == 3 * SLICE


def test_what_is_asked_for_while_there_is_no_master_goes_out_once_when_there_is():
    s = Streams()
    s.add("1", pb.TASK_RUNNING)
    s.streams.pause()
    s.streams.repeat_framework("F1", s.clock.now())
    assert s.uuids() == ["1"]
    s.streams.resume(s.clock.now())
    assert s.uuids() == ["1", "1"]


def test_what_was_acknowledged_before_its_slice_came_is_not_sent():
    s = Streams()
    for number in range(SLICE + 2):
        s.add(str(number), pb.TASK_FINISHED, ("F1", str(number)))
    s.streams.repeat_framework("F1", s.clock.now())
    s.sent.clear()
    last = str(SLICE)
    assert s.ack(last, ("F1", last)) is Ack.ENDED
    s.advance(SLICE_S)
    assert s.uuids() == [str(SLICE + 1)]
    assert s.streams.drop_framework("F1")
    s.advance(MAX_RETRY_S)
    assert s.uuids() == [str(SLICE + 1)]
