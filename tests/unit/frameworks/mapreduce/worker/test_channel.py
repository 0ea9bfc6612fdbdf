from __future__ import annotations

import socket
import threading

import msgspec
import pytest

from frameworks.mapreduce.messages import Maps, Running, WantMaps
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone
from frameworks.mapreduce.worker.channel import Ended, Said, for_attempt, for_worker


@pytest.fixture
def ends():
    one, other = socket.socketpair()
    with one, other:
        yield for_worker(one), for_attempt(other)


def test_records_come_as_they_were_sent(ends):
    worker, attempt = ends
    attempt.send(Said(Running(0.5, "map", "so", {"g": {"n": 1}})))
    attempt.send(WantMaps("a", 3))
    assert worker.receive() == [Said(Running(0.5, "map", "so", {"g": {"n": 1}})), WantMaps("a", 3)]
    worker.send(Maps("a", 0, ()))
    assert attempt.receive() == [Maps("a", 0, ())]


def test_large_records_come_in_pieces(ends):
    worker, attempt = ends
    sent = Ended(failure=Failure(blame="program", message="m", details="é\n" * 300_000))
    sender = threading.Thread(target=attempt.send, args=(sent,))
    sender.start()
    while not (got := worker.receive()):
        pass
    sender.join()
    assert got == [sent]


def test_the_end_is_none(ends):
    worker, attempt = ends
    attempt.send(Said(Running(1.0)))
    attempt.close()
    assert len(worker.receive()) == 1
    assert worker.receive() is None


def test_nothing_there_is_no_end():
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        assert for_worker(one).receive() == []


def test_what_is_no_record_is_said():
    one, other = socket.socketpair()
    with one, other:
        other.sendall(b'{"type": "Unknown"}\n')
        with pytest.raises(msgspec.MsgspecError):
            for_worker(one).receive()


@pytest.mark.parametrize(
    "one",
    [
        Ended(map=MapDone(part=0)),
        Ended(reduce=ReduceDone()),
        Ended(failure=Failure(blame="data", message="x")),
    ],
)
def test_an_end_has_one_outcome(one):
    assert one.outcome in (one.map, one.reduce, one.failure)


def test_an_end_without_a_word_is_a_failure():
    assert isinstance(Ended().outcome, Failure)
