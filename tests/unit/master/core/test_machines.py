"""Which machine an entry of the schedule means, and which schedules there can be."""

import pytest

from master.core import machines
from master.core.machines import MODE, Machines
from mesos_py.errors import InvalidValue
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import types_pb2 as pb
from tests.kit.operators import machine, window


def agent(hostname="web1", ip="10.0.0.1"):
    return pb.AgentInfo(hostname=hostname, ip=ip)


def scheduled(*windows, now=None):
    return Machines(machines.scheduled(now or Machines(), mt.Schedule(windows=windows)))


def down(*entries, rest=()):
    found = scheduled(window(*entries, *rest))
    return Machines(machines.started(found, entries))


# ---- Which agents ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "fits"),
    [
        (machine("web1"), True),
        (machine("WEB1"), True),
        (machine("web1", "10.0.0.1"), True),
        (machine("", "10.0.0.1"), True),
        (machine("web1", "10.0.0.2"), False),
        (machine("web2", "10.0.0.1"), False),
        (machine("web"), False),
        (machine("", "10.0.0.2"), False),
    ],
)
def test_what_the_entry_says_must_fit_the_agent(entry, fits):
    assert (scheduled(window(entry)).of(agent()) is not None) == fits


def test_an_agent_with_its_name_in_capitals_fits():
    assert scheduled(window("web1")).of(agent("WEB1")) is not None


def test_addresses_are_compared_as_such():
    found = scheduled(window(machine("", "2001:DB8:0:0::1")))
    assert found.of(agent(ip="2001:db8::1")) is not None


@pytest.mark.parametrize("ip", ["", "nonsense"])
def test_an_agent_without_an_address_fits_by_name_only(ip):
    assert scheduled(window("web1")).of(agent(ip=ip)) is not None
    assert scheduled(window(machine("web1", "10.0.0.1"))).of(agent(ip=ip)) is None


def test_nothing_fits_an_empty_schedule():
    assert Machines().of(agent()) is None
    assert not Machines()


def test_of_several_entries_the_earliest_counts():
    found = scheduled(window("web1", start_s=50), window(machine("", "10.0.0.1"), start_s=40))
    assert found.unavailability_of(agent()).start.nanoseconds == 40 * 10**9


def test_of_several_entries_one_that_is_down_counts():
    found = scheduled(window("web1", start_s=50), window(machine("", "10.0.0.1"), start_s=40))
    found = Machines(machines.started(found, [machine("web1")]))
    assert found.is_down(agent())


# ---- Schedules -------------------------------------------------------------------------------


def test_scheduled_machines_drain():
    found = scheduled(window("a", "b", start_s=5, duration_s=60))
    assert [(each.id.hostname, each.mode) for each in found] == [
        ("a", MODE.DRAINING),
        ("b", MODE.DRAINING),
    ]
    assert {each.unavailability.duration.nanoseconds for each in found} == {60 * 10**9}


NO_START = mt.Window(machine_ids=[machine("a")])
NEGATIVE = window("a", duration_s=-1)


@pytest.mark.parametrize(
    ("windows", "field", "reason"),
    [
        ([window()], "machine_ids", "at least one machine"),
        ([window(machine())], "machine_ids", "a host name or an IP address"),
        ([window(machine("a", "nonsense"))], "machine_ids.ip", "no IP address"),
        ([window("a", "A")], "machine_ids", "named twice"),
        ([window("a"), window("b", "a")], "machine_ids", "more than one window"),
        ([NO_START], "unavailability.start", "missing"),
        ([NEGATIVE], "unavailability.duration", "negative"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(windows, field, reason):
    with pytest.raises(InvalidValue, match=reason) as caught:
        scheduled(*windows)
    assert caught.value.field == f"schedule.windows.{field}"


def test_a_name_alone_and_with_an_address_are_two_entries():
    assert len(list(scheduled(window("a", machine("a", "10.0.0.1"))))) == 2


def test_a_machine_that_is_down_must_stay_in_the_schedule():
    now = down(machine("a"), rest=[machine("b")])
    with pytest.raises(InvalidValue, match="'a': is down, and must stay in the schedule"):
        scheduled(window("b"), now=now)
    found = scheduled(window("A", "c", start_s=7), now=now)
    assert [each.mode for each in found] == [MODE.DOWN, MODE.DRAINING]


# ---- Down and up -----------------------------------------------------------------------------


def test_only_scheduled_machines_can_be_taken_down_and_once():
    found = scheduled(window("a", "b"))
    with pytest.raises(InvalidValue, match="'c': is not in the schedule"):
        machines.started(found, [machine("c")])
    with pytest.raises(InvalidValue, match="machines: 'a': is named twice"):
        machines.started(found, [machine("a"), machine("a")])
    with pytest.raises(InvalidValue, match="at least one machine"):
        machines.started(found, [])
    found = Machines(machines.started(found, [machine("a")]))
    assert [each.mode for each in found] == [MODE.DOWN, MODE.DRAINING]
    with pytest.raises(InvalidValue, match="'a': is down already"):
        machines.started(found, [machine("a")])


def test_a_machine_that_is_back_is_in_no_window():
    now = down(machine("a"), rest=[machine("b")])
    found = Machines(machines.stopped(now, [machine("A")]))
    assert [each.id.hostname for each in found] == ["b"]
    assert [list(each.machine_ids) for each in found.record.schedule.windows] == [[machine("b")]]


def test_a_window_without_machines_goes():
    now = Machines(machines.started(scheduled(window("a"), window("b")), [machine("a")]))
    found = Machines(machines.stopped(now, [machine("a")]))
    assert len(found.record.schedule.windows) == 1
    assert not Machines(machines.stopped(down(machine("a")), [machine("a")]))


def test_only_machines_that_are_down_can_be_back():
    with pytest.raises(InvalidValue, match="'a': is not down"):
        machines.stopped(scheduled(window("a")), [machine("a")])
    with pytest.raises(InvalidValue, match=r"'c 10\.0\.0\.1': is not down"):
        machines.stopped(Machines(), [machine("c", "10.0.0.1")])
