"""The operator's client: finding the leader, errors, logs that go on after a break."""

import socket
from collections.abc import Callable, Iterator

import pytest

from mesos_py import operator
from mesos_py.errors import (
    InvalidValue,
    MasterUnreachable,
    NotFound,
    NotLeader,
    Refused,
    Unavailable,
)
from mesos_py.operator import OperatorClient
from mesos_py.reservations import reserved_for
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.volumes import volume_on
from tests.unit.mesos_py.cli import fake_master as fake


@pytest.fixture
def make_master() -> Iterator:
    running = []

    def make() -> fake.FakeMaster:
        master = fake.FakeMaster()
        running.append(fake.serve(master))
        return master

    yield make
    for server, pool in running:
        server.stop(0).wait()
        pool.shutdown()


@pytest.fixture
def master(make_master: Callable[[], fake.FakeMaster]) -> fake.FakeMaster:
    return make_master()


@pytest.fixture
def client(master) -> Iterator[OperatorClient]:
    with OperatorClient(f"127.0.0.1:{master.port}") as client:
        yield client


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where connections are refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address that takes connections and says nothing."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def no_pauses(monkeypatch):
    class Time:
        now = 0.0

        def monotonic(self):
            return self.now

        def sleep(self, seconds):
            self.now += seconds

    time = Time()
    monkeypatch.setattr(operator, "time", time)
    return time


def lead(follower: fake.FakeMaster, leader: fake.FakeMaster) -> None:
    follower.failure = NotLeader(f"127.0.0.1:{leader.port}")


# --- finding the leader -------------------------------------------------------


def test_a_master_that_does_not_lead_is_left_for_the_one_it_names(make_master):
    first, second = make_master(), make_master()
    lead(first, second)
    second.agents.append(fake.agent(0))
    with OperatorClient(f"127.0.0.1:{first.port}") as client:
        assert len(client.agents()) == 1
        client.agents()
    # The second question goes to the leader at once.
    assert (len(first.calls), len(second.calls)) == (1, 2)


def test_masters_that_name_each_other_are_no_endless_loop(make_master):
    first, second = make_master(), make_master()
    lead(first, second)
    lead(second, first)
    with OperatorClient(f"127.0.0.1:{first.port}") as client:
        with pytest.raises(MasterUnreachable, match="does not lead"):
            client.agents()


def test_a_master_that_does_not_know_the_leader_is_no_answer(master, client):
    master.failure = NotLeader(None)
    with pytest.raises(MasterUnreachable, match="the leader is not known"):
        client.agents()


def test_the_next_address_of_the_list_is_tried(master, nobody):
    with OperatorClient(f"{nobody},127.0.0.1:{master.port}") as client:
        assert client.version().version == "9.9.9"


def test_an_address_that_swallows_everything_leaves_time_for_the_next(master, black_hole):
    address = f"{black_hole},127.0.0.1:{master.port}"
    with OperatorClient(address, timeout_s=0.4) as client:
        assert client.version().version == "9.9.9"


def test_when_none_answers_each_is_named(nobody, black_hole):
    with OperatorClient(f"{nobody},{black_hole}", timeout_s=0.2) as client:
        with pytest.raises(MasterUnreachable) as caught:
            client.version()
    assert f"cannot reach {nobody}: Connection refused" in str(caught.value)
    assert black_hole in str(caught.value)


def test_after_a_change_of_leader_the_list_is_tried_again(make_master):
    first, second = make_master(), make_master()
    with OperatorClient(f"127.0.0.1:{first.port},127.0.0.1:{second.port}") as client:
        client.agents()
        lead(first, second)
        client.agents()
        lead(second, first)
        first.failure = None
        client.agents()
    assert [len(first.calls), len(second.calls)] == [3, 2]


@pytest.mark.parametrize(
    "text", ["", "host", "host:0", "http://host:1", "zk://h:1", "h:1,h:1", "h:1,,h:2"]
)
def test_an_address_that_is_none_is_named(text):
    with pytest.raises(InvalidValue, match=r"^master: "):
        OperatorClient(text)


# --- errors -------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [NotFound("task", "x"), Refused("no"), InvalidValue("a", "b", "c")]
)
def test_what_the_master_raises_is_raised_here(master, client, error):
    master.failure = error
    with pytest.raises(type(error)) as caught:
        client.agents()
    assert str(caught.value) == str(error)


def test_an_agent_that_is_away_is_not_a_master_that_is_away(master, client):
    master.failure = Unavailable("agent S0 is away")
    with pytest.raises(Unavailable) as caught:
        client.agents()
    assert not isinstance(caught.value, MasterUnreachable)


# --- orders -------------------------------------------------------------------


def test_an_order_names_framework_task_and_grace(master, client):
    client.kill_task("f", "t", grace_s=1.5)
    order = master.calls[-1]
    assert order.type == pb.Call.KILL_TASK
    assert (order.kill_task.framework_id.value, order.kill_task.task_id.value) == ("f", "t")
    assert order.kill_task.kill_policy.grace_period.nanoseconds == 1_500_000_000


def test_without_a_grace_the_task_keeps_its_own(master, client):
    client.kill_task("f", "t")
    assert not master.calls[-1].kill_task.HasField("kill_policy")


def test_volumes_are_named_with_their_agent(master, client):
    disk = reserved_for(Resources.of(disk=40), "ads")
    volume = volume_on(disk, "v1", "data")
    client.create_volumes("S1", volume)
    asked = master.calls[-1].create_volumes
    assert (asked.agent_id.value, list(asked.volumes)) == ("S1", list(volume.to_proto()))
    client.destroy_volumes("S1", volume)
    asked = master.calls[-1].destroy_volumes
    assert (asked.agent_id.value, list(asked.volumes)) == ("S1", list(volume.to_proto()))
    client.grow_volume("S1", volume, disk)
    asked = master.calls[-1].grow_volume
    assert (asked.agent_id.value, asked.volume) == ("S1", volume.to_proto()[0])
    assert asked.addition == disk.to_proto()[0]
    client.shrink_volume("S1", volume, 10.5)
    asked = master.calls[-1].shrink_volume
    assert (asked.agent_id.value, asked.volume) == ("S1", volume.to_proto()[0])
    assert asked.subtract.value == 10.5


# --- logs ---------------------------------------------------------------------


def read(client: OperatorClient, **options) -> bytes:
    return b"".join(part.data for part in client.read_log("f", "t", **options))


def test_a_log_is_read_through_the_leader(make_master):
    first, second = make_master(), make_master()
    lead(first, second)
    second.files["t", "stdout"] = b"hello\n"
    with OperatorClient(f"127.0.0.1:{first.port}") as client:
        assert read(client) == b"hello\n"


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, b"0123456789"),
        ({"offset": 4}, b"456789"),
        ({"offset": -3}, b"789"),
        ({"offset": 2, "length": 5}, b"23456"),
        ({"offset": -4, "length": 2}, b"67"),
    ],
)
@pytest.mark.parametrize("follow", [False, True])
def test_a_broken_link_in_the_middle_costs_nothing(
    master, client, no_pauses, options, wanted, follow
):
    master.files["t", "stdout"] = b"0123456789"
    master.chunk = 1
    broken = set()

    def break_once(offset: int) -> None:
        if offset in (3, 5, 8) and offset not in broken:
            broken.add(offset)
            raise Unavailable("the agent has gone")

    master.before_chunk = break_once
    # A plain reader is told at once of an agent that is away before the first byte.
    if not follow and options.get("offset") == -3:
        return
    assert read(client, follow=follow, **options) == wanted


def test_a_plain_reader_is_told_at_once_that_the_agent_is_away(master, client):
    master.files["t", "stdout"] = b"x"
    master.before_chunk = raise_away
    with pytest.raises(Unavailable, match="agent S0 is away"):
        read(client)
    assert len(master.reads) == 1


def test_after_a_restart_of_the_master_the_agent_is_waited_for(master, client, no_pauses):
    """A new master does not know the task before its agent is back."""
    errors = [Unavailable("the master ends"), NotFound("task", "t"), NotFound("task", "t")]
    master.files["t", "stdout"] = b"x"

    def fail(_: int) -> None:
        if errors:
            raise errors.pop(0)

    master.before_chunk = fail
    assert read(client, follow=True) == b"x"


def test_a_task_that_nobody_ever_knew_is_not_waited_for(master, client):
    with pytest.raises(NotFound):
        read(client, follow=True)
    assert len(master.reads) == 1


def test_a_follower_waits_for_the_agent_but_not_for_ever(master, client, no_pauses):
    master.files["t", "stdout"] = b"x"
    master.before_chunk = raise_away
    with pytest.raises(Unavailable, match="agent S0 is away"):
        read(client, follow=True)
    assert len(master.reads) > 10
    assert no_pauses.now <= operator.FOLLOW_PATIENCE_S


def raise_away(offset: int) -> None:
    raise Unavailable("agent S0 is away")


def test_a_log_that_is_not_there_is_not_found(client):
    with pytest.raises(NotFound, match="stdout"):
        read(client)


def test_a_log_with_nothing_in_it_is_empty(master, client):
    master.files["t", "stdout"] = b""
    assert read(client) == b""
