"""Links: the core's outbox over bounded queues."""

import asyncio

import pytest

from master.api.links import Links
from mesos_py.errors import NotLeader
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

AEvent = agent_pb2.Event
MB = 1024 * 1024


@pytest.fixture
def links():
    return Links(max_items=1000, max_bytes=MB)


def never():
    raise AssertionError("the peer is cut off")


async def queued(link, kind=sched.Events):
    link.queue.close("end")
    return [
        event
        async for batch in link.queue.batches()
        for event in kind.FromString(b"".join(batch)).events
    ]


async def test_events_go_to_their_link_in_order(links):
    first, second = links.open("a", never), links.open("b", never)
    assert first.number != second.number
    for number in range(3):
        links.to_framework(first.number, sched.Event(type=sched.Event.HEARTBEAT))
        links.to_agent(second.number, AEvent(type=AEvent.PING, ping=AEvent.Ping(sequence=number)))
    assert len(await queued(first)) == 3
    pings = await queued(second, agent_pb2.Events)
    assert [event.ping.sequence for event in pings] == [0, 1, 2]


async def test_a_link_that_is_gone_takes_nothing(links):
    link = links.open("a", never)
    assert len(links) == 1
    links.forget(link)
    links.forget(link)
    assert len(links) == 0
    links.to_framework(link.number, sched.Event())
    links.to_agent(link.number, AEvent())
    links.close(link.number, "why")
    assert len(link.queue) == 0
    assert link.queue.closed is None


async def test_numbers_are_never_used_again(links):
    link = links.open("a", never)
    links.forget(link)
    assert links.open("a", never).number > link.number


async def test_a_closed_link_sends_what_was_put_before_and_nothing_after(links):
    link = links.open("a", never)
    links.to_framework(link.number, sched.Event(type=sched.Event.ERROR))
    links.close(link.number, "the framework failed over")
    links.to_framework(link.number, sched.Event(type=sched.Event.HEARTBEAT))
    assert link.queue.closed == "the framework failed over"
    assert [event.type for event in await queued(link)] == [sched.Event.ERROR]


@pytest.mark.parametrize("drain", [True, False])
async def test_all_links_end_with_the_same_error_after_what_is_queued_or_at_once(links, drain):
    opened = [links.open("a", never) for _ in range(3)]
    for link in opened:
        links.to_framework(link.number, sched.Event(type=sched.Event.HEARTBEAT))
    error = NotLeader("b:5050")
    links.end(error, drain=drain)
    assert links.ended is error
    assert {link.queue.closed for link in opened} == {error.message}
    assert [len(await queued(link)) for link in opened] == [1 if drain else 0] * 3


async def test_who_waits_for_the_last_link_is_told_when_it_is_gone(links):
    await links.gone()
    first, second = links.open("a", never), links.open("b", never)
    waiting = asyncio.create_task(links.gone())
    links.forget(first)
    await asyncio.sleep(0)
    assert not waiting.done()
    links.forget(second)
    await waiting


async def test_writes_to_the_registry_wait_in_order_and_somebody_is_told(links):
    told = []
    links.on_store = lambda: told.append(len(links.writes))
    links.store(1, {"a": b"1"})
    links.store(2, {})
    assert (told, list(links.writes)) == ([1, 2], [(1, {"a": b"1"}), (2, {})])


async def test_a_peer_that_reads_too_slowly_is_cut_off_once_and_not_in_the_middle_of_a_step():
    links = Links(max_items=5, max_bytes=MB)
    cuts = []
    link = links.open("slow", lambda: cuts.append("cut"))
    for _ in range(20):
        links.to_framework(link.number, sched.Event(type=sched.Event.HEARTBEAT))
    assert cuts == []
    await asyncio.sleep(0)
    assert cuts == ["cut"]
    assert links.overflows == 1
    assert len(link.queue) == 0


def update(**fields):
    status = pb.TaskStatus(state=pb.TASK_RUNNING, **fields)
    return sched.Event(type=sched.Event.UPDATE, update=sched.Event.Update(status=status))


LARGE = "x" * 100_000
INFO = pb.FrameworkInfo(labels=pb.Labels(labels=[pb.Label(key=LARGE)]))


@pytest.mark.parametrize(
    "event",
    [
        update(data=LARGE.encode()),
        update(message=LARGE),
        update(task_id=pb.TaskID(value=LARGE)),
        sched.Event(type=sched.Event.MESSAGE, message=sched.Event.Message(data=LARGE.encode())),
    ],
    ids=["data", "message", "task id", "executor's message"],
)
async def test_what_a_scheduler_does_not_read_counts_with_its_size(links, event):
    link = links.open("a", never)
    links.to_framework(link.number, event)
    assert 100_000 <= link.queue.queued_bytes <= 101_000


async def test_offers_count_with_their_size(links):
    link = links.open("a", never)
    resources = Resources.parse("cpus:4;mem:4096;disk:1000;ports:[31000-32000]").to_proto()
    offers = [pb.Offer(hostname="host", resources=resources)] * 100
    event = sched.Event(type=sched.Event.OFFERS, offers=sched.Event.Offers(offers=offers))
    links.to_framework(link.number, event)
    assert link.queue.queued_bytes == sched.Events(events=[event]).ByteSize()


async def test_what_is_queued_cannot_be_changed_any_more(links):
    link = links.open("a", never)
    event = sched.Event(type=sched.Event.ERROR, error=sched.Event.Error(message="before"))
    links.to_framework(link.number, event)
    event.error.message = "after"
    assert [event.error.message for event in await queued(link)] == ["before"]


@pytest.mark.parametrize(
    "event",
    [
        AEvent(
            type=AEvent.RUN_TASKS,
            run_tasks=AEvent.RunTasks(tasks=[pb.TaskInfo(data=LARGE.encode())]),
        ),
        AEvent(
            type=AEvent.EXECUTOR_MESSAGE,
            executor_message=AEvent.ExecutorMessage(data=LARGE.encode()),
        ),
        AEvent(
            type=AEvent.UPDATE_FRAMEWORK,
            update_framework=AEvent.UpdateFramework(framework_info=INFO),
        ),
    ],
    ids=["tasks", "message", "framework"],
)
async def test_what_an_agent_does_not_read_counts_with_its_size(links, event):
    link = links.open("a", never)
    links.to_agent(link.number, event)
    assert 100_000 <= link.queue.queued_bytes <= 101_000


async def test_what_was_dropped_is_only_logged(links):
    links.dropped("agent-refused", hostname="h")
    assert len(links) == 0
