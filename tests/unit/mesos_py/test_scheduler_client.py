"""The asyncio client against the fake master."""

import asyncio
from typing import Any

import pytest

from mesos_py.errors import MasterUnreachable, Refused, Unavailable
from mesos_py.rpc import LinkTimeouts
from mesos_py.scheduler import SchedulerClient
from mesos_py.scheduler.aio import Acknowledgements
from mesos_py.testing.builders import (
    make_framework,
    make_inverse_offer,
    make_offer,
    make_status,
    make_task,
)
from mesos_py.testing.fake_master import FakeMaster, update_event
from mesos_py.v1.scheduler_pb2 import Call, Event

QUICK = LinkTimeouts(backoff_first_s=0.01, backoff_cap_s=0.02, connect_s=5)


@pytest.fixture
def master():
    with FakeMaster() as fake:
        yield fake


def client_of(master, **options):
    return SchedulerClient(make_framework(), master.address, timeouts=QUICK, **options)


def kinds(master):
    return [call.type for call in master.calls]


async def next_of(events, kind):
    """The next event, which must be of this type."""
    async with asyncio.timeout(10):
        event = await anext(events)
    assert event.type == kind
    return event


async def test_events_come_one_by_one_and_calls_go_out(master):
    async with client_of(master) as client:
        events = aiter(client)
        subscribed = await next_of(events, Event.SUBSCRIBED)
        assert subscribed.subscribed.framework_id.value == client.framework_id
        master.offer(make_offer("o1"))
        offers = await next_of(events, Event.OFFERS)
        client.launch_tasks(offers.offers.offers, make_task("t1"))
        await asyncio.to_thread(master.wait_for, Call.ACCEPT)
    assert kinds(master)[-1] == Call.TEARDOWN


async def test_inverse_offers_come_and_are_answered(master):
    async with client_of(master) as client:
        events = aiter(client)
        await next_of(events, Event.SUBSCRIBED)
        master.inverse_offer(make_inverse_offer("i1"), make_inverse_offer("i2"))
        asked = await next_of(events, Event.INVERSE_OFFERS)
        first, second = asked.inverse_offers.inverse_offers
        assert first.unavailability.HasField("start")
        client.accept_inverse_offers(first, filters=60)
        client.decline_inverse_offers([second])
        await asyncio.to_thread(master.wait_for, Call.DECLINE_INVERSE_OFFERS)
        [accepted] = await asyncio.to_thread(master.wait_for, Call.ACCEPT_INVERSE_OFFERS)
        assert accepted.accept_inverse_offers.inverse_offer_ids == [first.id]
        master.rescind_inverse_offer("i2")
        gone = await next_of(events, Event.RESCIND_INVERSE_OFFER)
        assert gone.rescind_inverse_offer.inverse_offer_id == second.id


async def test_update_is_acknowledged_once_what_follows_is_asked_for(master):
    async with client_of(master) as client:
        events = aiter(client)
        await next_of(events, Event.SUBSCRIBED)
        master.send(update_event(make_status("t1")), Event(type=Event.MESSAGE))
        await next_of(events, Event.UPDATE)
        assert Call.ACKNOWLEDGE not in kinds(master)
        await next_of(events, Event.MESSAGE)
        master.send(Event(type=Event.FAILURE))
        await next_of(events, Event.FAILURE)
        await asyncio.to_thread(master.wait_for, Call.ACKNOWLEDGE)


async def test_explicit_acknowledgement(master):
    async with client_of(master, implicit_acknowledgements=False) as client:
        events = aiter(client)
        await next_of(events, Event.SUBSCRIBED)
        status = make_status("t1")
        master.update(status)
        await next_of(events, Event.UPDATE)
        client.acknowledge(status)
        await asyncio.to_thread(master.wait_for, Call.ACKNOWLEDGE)


async def test_lost_link_is_told_and_renewed(master):
    lost: list[str] = []
    async with client_of(master, on_disconnected=lost.append) as client:
        events = aiter(client)
        await next_of(events, Event.SUBSCRIBED)
        master.cut()
        await next_of(events, Event.SUBSCRIBED)
    assert lost == ["the fake master cut the stream"]


async def test_stop_inside_the_loop_ends_it(master):
    seen = []
    async with client_of(master) as client:
        async for event in client:
            seen.append(event.type)
            client.stop()
    assert seen == [Event.SUBSCRIBED]
    assert kinds(master) == [Call.SUBSCRIBE, Call.TEARDOWN]


async def test_stop_for_failover_is_not_overruled_by_leaving_the_block(master):
    async with client_of(master) as client:
        await next_of(aiter(client), Event.SUBSCRIBED)
        client.stop(failover=True)
    assert kinds(master) == [Call.SUBSCRIBE]


async def test_exception_in_the_block_leaves_the_framework_registered(master):
    async def work():
        async with client_of(master) as client:
            await next_of(aiter(client), Event.SUBSCRIBED)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    assert kinds(master) == [Call.SUBSCRIBE]


async def test_cancellation_tears_down(master):
    inside = asyncio.Event()

    async def work():
        async with client_of(master) as client:
            async for _ in client:
                inside.set()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert kinds(master)[-1] == Call.TEARDOWN


async def test_error_of_the_master_is_raised_by_the_iteration_after_what_came_before(master):
    seen = []
    client = client_of(master)

    async def work():
        async with client:
            async for event in client:
                seen.append(event.type)
                if event.type == Event.SUBSCRIBED:
                    master.offer(make_offer("o1"))
                    master.error("no more")

    with pytest.raises(Refused, match="no more"):
        await work()
    assert seen == [Event.SUBSCRIBED, Event.OFFERS]
    with pytest.raises(Unavailable, match="no more"):
        client.kill_task("t1")


async def test_connect_timeout_names_what_was_tried():
    client = SchedulerClient(make_framework(), "127.0.0.1:1", timeouts=QUICK, connect_timeout_s=0.5)

    async def work():
        async with client:
            return [event async for event in client]

    with pytest.raises(MasterUnreachable, match=r"127\.0\.0\.1:1: cannot reach"):
        await work()


async def test_client_is_used_once_and_inside_its_block(master):
    client = client_of(master)
    with pytest.raises(RuntimeError, match="not started"):
        await anext(aiter(client))
    async with client:
        pass
    with pytest.raises(RuntimeError, match="once"):
        async with client:
            pass


async def test_calls_from_another_thread(master):
    async with client_of(master) as client:
        await next_of(aiter(client), Event.SUBSCRIBED)
        await asyncio.to_thread(client.kill_task, "t1")
        await asyncio.to_thread(master.wait_for, Call.KILL)


async def test_reader_is_held_back_while_very_much_waits_and_goes_on_after(master, monkeypatch):
    monkeypatch.setattr("mesos_py.inbox.MAX_WAITING", 10)
    async with client_of(master) as client:
        events = aiter(client)
        await next_of(events, Event.SUBSCRIBED)
        for n in range(100):
            master.update(make_status(f"t{n}"))
        for n in range(100):
            event = await next_of(events, Event.UPDATE)
            assert event.update.status.task_id.value == f"t{n}"


def test_acknowledgements_go_out_early_when_a_batch_takes_long(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("mesos_py.scheduler.aio.time.monotonic", lambda: now[0])
    sent: list[Any] = []
    done = Acknowledgements(sent.append)
    first, second, third = (make_status(f"t{n}") for n in range(3))
    done.add(first)
    now[0] += 1
    done.add(second)
    assert sent == [[first, second]]
    done.add(third)
    done.add(make_status("t4", acknowledged=False))
    assert len(sent) == 1
    done.flush()
    done.flush()
    assert sent[1:] == [[third]]
