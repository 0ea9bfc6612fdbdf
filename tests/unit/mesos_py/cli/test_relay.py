"""How `run` reads logs and explanations beside its subscription."""

import asyncio

import pytest

from mesos_py.cli.running import relay
from mesos_py.cli.running.relay import Relay
from mesos_py.errors import NotFound, NotLeader, Refused, Unavailable
from mesos_py.v1 import operator_pb2 as pb
from tests.unit.mesos_py.cli import fake_master as fake


@pytest.fixture
async def opened():
    made = []

    def open_relay(*masters: fake.FakeMaster) -> Relay:
        made.append(Relay(",".join(f"127.0.0.1:{each.port}" for each in masters)))
        return made[-1]

    yield open_relay
    for each in made:
        await each.close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(relay, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(relay, "MAX_PAUSE_S", 0.002)


async def read(from_: Relay, *, known: bool = False) -> bytes:
    parts = from_.read("f", "t", "stdout", known=known)
    return b"".join([data async for data in parts])


def break_at(*offsets: int):
    broken: set[int] = set()

    def before_chunk(offset: int) -> None:
        if offset in offsets and offset not in broken:
            broken.add(offset)
            raise Unavailable("agent S0 is away")

    return before_chunk


async def test_a_log_is_followed(master, opened):
    master.files["t", "stdout"] = b"hello"
    assert await read(opened(master)) == b"hello"
    assert master.reads[-1].follow


async def test_breaks_cost_no_byte_and_repeat_none(master, opened):
    master.files["t", "stdout"] = b"0123456789"
    master.chunk = 1
    master.before_chunk = break_at(0, 4, 9)
    assert await read(opened(master)) == b"0123456789"


async def test_a_master_that_does_not_lead_is_left(make_master, opened):
    first, second = make_master(), make_master()
    second.files["t", "stdout"] = b"from the leader"

    def does_not_lead(offset: int) -> None:
        raise NotLeader(f"127.0.0.1:{second.port}")

    first.files["t", "stdout"] = b"x"
    first.before_chunk = does_not_lead
    assert await read(opened(first)) == b"from the leader"


async def test_what_stays_away_is_given_up(master, opened, monkeypatch):
    monkeypatch.setattr(relay, "PATIENCE_S", 0.05)
    master.files["t", "stdout"] = b"x"

    def away(offset: int) -> None:
        raise Unavailable("agent S0 is away")

    master.before_chunk = away
    with pytest.raises(Unavailable, match="agent S0 is away"):
        await read(opened(master))


async def test_a_file_that_is_not_there_is_not_waited_for(master, opened):
    with pytest.raises(NotFound):
        await read(opened(master))
    assert len(master.reads) == 1


async def test_a_file_that_must_be_there_is_waited_for(master, opened):
    """As after a restart of the master, before the agent is back."""

    def not_yet(_) -> None:
        if len(master.reads) == 3:
            master.files["t", "stdout"] = b"there now"

    master.before_read = not_yet
    assert await read(opened(master), known=True) == b"there now"


async def test_a_file_that_was_there_is_waited_for_when_it_is_not(master, opened):
    master.files["t", "stdout"] = b"0123456789"
    master.chunk = 5

    def restart(offset: int) -> None:
        if offset == 5 and len(master.reads) < 3:
            raise NotFound("task", "t")

    master.before_chunk = restart
    assert await read(opened(master)) == b"0123456789"


async def test_a_file_that_never_comes_is_given_up(master, opened, monkeypatch):
    monkeypatch.setattr(relay, "PATIENCE_S", 0.05)
    with pytest.raises(NotFound):
        await read(opened(master), known=True)
    assert len(master.reads) > 1


async def test_a_reader_that_is_cancelled_leaves_nothing(master, opened):
    master.files["t", "stdout"] = b"0123456789"
    master.chunk = 1
    reader = asyncio.create_task(read(opened(master)))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader


async def test_findings_are_the_explanation(master, opened):
    master.explanations.append(pb.Response.Explain.Framework(findings=["one", "two"]))
    assert await opened(master).explain("") == ["one", "two"]


async def test_no_explanation_is_no_error(master, opened):
    master.failure = Refused("no")
    assert await opened(master).explain("f") == []
