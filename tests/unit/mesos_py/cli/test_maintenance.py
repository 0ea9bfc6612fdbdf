"""maintenance: schedules as options and as files, down and up, and what is shown."""

import json

import pytest

from mesos_py.cli import windows
from mesos_py.errors import InvalidValue
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1.maintenance_pb2 import ClusterStatus, InverseOfferStatus, Schedule
from mesos_py.v1.types_pb2 import FrameworkID, MachineID, TimeInfo
from tests.kit.operators import machine, window


@pytest.fixture
def planned(master):
    """web1 (by name), db1 (by both), and another db1."""
    both = machine("db1", "10.0.0.1")
    master.schedule = Schedule(
        windows=[window("web1", start_s=100), window(both, machine("db1", "10.0.0.2"), start_s=200)]
    )
    return master


def entries(schedule: Schedule) -> list[list[str]]:
    return [[windows.text_of(each) for each in one.machine_ids] for one in schedule.windows]


# ---- schedule --------------------------------------------------------------------------------


def test_a_machine_is_added_to_the_schedule(planned, cli):
    ended = cli(
        "maintenance",
        "schedule",
        "--machine",
        "a",
        "--machine",
        "10.0.0.9",
        "--start",
        "2033-05-18T03:33:20+00:00",
        "--duration",
        "2h",
    )
    assert (ended.code, ended.out) == (0, "scheduled a, 10.0.0.9\n")
    assert entries(planned.schedule)[:2] == [["web1"], ["db1,10.0.0.1", "db1,10.0.0.2"]]
    added = planned.schedule.windows[2]
    assert list(added.machine_ids) == [MachineID(hostname="a"), MachineID(ip="10.0.0.9")]
    assert added.unavailability.start.nanoseconds == 2_000_000_000 * 10**9
    assert added.unavailability.duration.nanoseconds == 7200 * 10**9


def test_a_machine_that_is_planned_gets_the_new_window(planned, cli):
    assert cli("maintenance", "schedule", "--machine", "WEB1").code == 0
    assert entries(planned.schedule) == [["db1,10.0.0.1", "db1,10.0.0.2"], ["WEB1"]]
    assert not planned.schedule.windows[1].unavailability.HasField("duration")


def test_without_anything_it_is_printed_and_can_be_given_back(planned, cli, tmp_path):
    before = Schedule.FromString(planned.schedule.SerializeToString())
    printed = cli("maintenance", "schedule").out
    first = json.loads(printed)["windows"][0]
    assert first["machine_ids"] == [{"hostname": "web1"}]
    planned.schedule = Schedule()
    file = tmp_path / "schedule.json"
    file.write_text(printed)
    ended = cli("maintenance", "schedule", str(file))
    assert (ended.code, ended.out) == (0, "scheduled 3 machines\n")
    assert planned.schedule == before


def test_a_file_in_the_form_of_mesos_is_read(master, cli, tmp_path):
    file = tmp_path / "schedule.json"
    file.write_text(
        '{"windows": [{"machine_ids": [{"hostname": "m1", "ip": "10.0.0.1"}],'
        ' "unavailability": {"start": {"nanoseconds": 1443830400000000000},'
        ' "duration": {"nanoseconds": 3600000000000}}}]}'
    )
    assert cli("maintenance", "schedule", str(file)).code == 0
    assert entries(master.schedule) == [["m1,10.0.0.1"]]
    assert master.schedule.windows[0].unavailability.duration.nanoseconds == 3600 * 10**9


@pytest.mark.parametrize("text", ["", "[]", '{"windows": 3}', '{"window": []}', "\xff"])
def test_a_file_that_is_none_is_refused_and_nothing_changed(planned, cli, tmp_path, text):
    file = tmp_path / "schedule.json"
    file.write_bytes(text.encode("latin-1"))
    ended = cli("maintenance", "schedule", str(file))
    assert ended.code == 2
    assert ended.err.startswith("mesos-py: error: schedule: 'the file': is none: ")
    assert len(planned.schedule.windows) == 2


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--start", "now"], "machine: '': must be given with --start and --duration"),
        (["--machine", "a", "--start", "soon"], "start: 'soon': must be +DURATION from now"),
        (["--machine", "a,b"], "machine: 'a,b': 'b' is no IP address"),
        (["--machine", ","], "machine: ',': must be a host name"),
        (["-", "--machine", "a"], "machine: 'a': cannot be given together with a file"),
    ],
)
def test_what_cannot_be_is_refused(planned, cli, args, error):
    ended = cli("maintenance", "schedule", *args)
    assert ended.code == 2
    assert error in ended.err


@pytest.mark.parametrize(
    ("text", "moment"),
    [(None, 1000), ("now", 1000), ("+90s", 1090), ("+1h30m", 6400), ("1970-01-01T00:00Z", 0)],
)
def test_when_it_begins(text, moment):
    assert windows.when(text, 1000.0) == moment


def test_a_time_without_a_zone_is_local():
    assert windows.when("2026-03-01T22:00", 0.0) > 0
    with pytest.raises(InvalidValue):
        windows.when("+soon", 0.0)


# ---- cancel, start, stop ---------------------------------------------------------------------


def test_cancel_takes_a_machine_out(planned, cli):
    ended = cli("maintenance", "cancel", "web1", "10.0.0.2")
    assert (ended.code, ended.out) == (0, "cancelled web1, 10.0.0.2\n")
    assert entries(planned.schedule) == [["db1,10.0.0.1"]]


@pytest.mark.parametrize(("word", "said"), [("start", "down"), ("stop", "up")])
def test_the_machine_is_named_as_it_is_in_the_schedule(planned, cli, word, said):
    ended = cli("maintenance", word, "WEB1", "10.0.0.1")
    assert (ended.code, ended.out) == (0, f"{said}: WEB1, 10.0.0.1\n")
    order = planned.calls[-1]
    assert pb.Call.Type.Name(order.type) == f"{word.upper()}_MAINTENANCE"
    named = getattr(order, f"{word}_maintenance").machines
    assert list(named) == [machine("web1"), machine("db1", "10.0.0.1")]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("db1", "machine 'db1' means 2: db1,10.0.0.1 db1,10.0.0.2"),
        ("web2", "machine 'web2': is not in the maintenance schedule"),
        ("web1,10.0.0.1", "is not in the maintenance schedule"),
    ],
)
def test_what_does_not_mean_one_machine_is_refused(planned, cli, text, error):
    ended = cli("maintenance", "start", text)
    assert ended.code == 1
    assert error in ended.err
    assert planned.calls[-1].type == pb.Call.GET_MAINTENANCE_SCHEDULE


# ---- status ----------------------------------------------------------------------------------


def test_the_status_shows_windows_and_answers(planned, cli):
    planned.schedule.windows[0].unavailability.duration.nanoseconds = 7200 * 10**9
    answers = [
        InverseOfferStatus(
            status=each,
            framework_id=FrameworkID(value=name),
            timestamp=TimeInfo(nanoseconds=5 * 10**9),
        )
        for name, each in (
            ("f1", InverseOfferStatus.ACCEPT),
            ("f2", InverseOfferStatus.DECLINE),
            ("f3", InverseOfferStatus.UNKNOWN),
        )
    ]
    planned.maintenance = ClusterStatus(
        draining_machines=[
            ClusterStatus.DrainingMachine(id=machine("web1"), statuses=answers),
            ClusterStatus.DrainingMachine(id=machine("db1", "10.0.0.1")),
        ],
        down_machines=[machine("db1", "10.0.0.2")],
    )
    first, _, last = cli("maintenance", "status", "--json").json
    assert (first["machine"], first["state"], first["start"]) == ("web1", "draining", 100.0)
    assert first["duration"] == 7200.0
    assert first["answers"] == [
        {"framework_id": "f1", "answer": "leaves", "time": 5.0},
        {"framework_id": "f2", "answer": "stays", "time": 5.0},
        {"framework_id": "f3", "answer": "has not answered", "time": 5.0},
    ]
    assert (last["machine"], last["state"], last["ip"]) == ("db1,10.0.0.2", "down", "10.0.0.2")
    assert last["duration"] is None
    shown = cli("maintenance", "status").out.splitlines()
    assert "f1 leaves, f2 stays, f3 has not answered" in shown[1]
    assert "2h" in shown[1]


def test_nothing_scheduled_is_said(master, cli):
    ended = cli("maintenance", "status")
    assert (ended.code, ended.out, ended.err) == (0, "", "nothing is scheduled\n")
