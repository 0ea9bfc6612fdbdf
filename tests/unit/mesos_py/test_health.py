"""Health checks and checks as frameworks state them: read, and refused with the field."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.errors import InvalidValue
from mesos_py.health import (
    MIN_INTERVAL_S,
    CommandProbe,
    HttpProbe,
    Plan,
    TcpProbe,
    check_plan,
    health_plan,
)
from mesos_py.v1 import types_pb2 as pb

CheckInfo, HealthCheck = pb.CheckInfo, pb.HealthCheck
Http, Tcp = HealthCheck.HTTPCheckInfo, HealthCheck.TCPCheckInfo
Command = CheckInfo.Command
COMMAND = pb.CommandInfo(value="true")


def test_where_nothing_is_said_the_numbers_of_mesos_count():
    plan = health_plan("h", HealthCheck(type=HealthCheck.TCP, tcp=Tcp(port=80)))
    assert plan == Plan(TcpProbe(80), 15, 10, 20, grace_s=10, failures=3)
    plan = check_plan("c", CheckInfo(type=CheckInfo.TCP, tcp=CheckInfo.Tcp(port=80)))
    assert (plan.delay_s, plan.interval_s, plan.timeout_s) == (15, 10, 20)


@pytest.mark.parametrize(
    ("health", "probe"),
    [
        (HealthCheck(command=COMMAND), CommandProbe(COMMAND)),
        (HealthCheck(http=Http(port=1)), HttpProbe(1, "/")),
        (
            HealthCheck(
                type=HealthCheck.HTTP,
                http=Http(port=8443, path="/up?a=%20b", scheme="https", statuses=[500]),
            ),
            HttpProbe(8443, "/up?a=%20b", "https"),
        ),
        (
            HealthCheck(type=HealthCheck.TCP, tcp=Tcp(port=65535, protocol=pb.NetworkInfo.IPv6)),
            TcpProbe(65535, ipv6=True),
        ),
    ],
)
def test_what_is_to_be_tried(health, probe):
    assert health_plan("h", health).probe == probe


def test_all_times_are_taken_over():
    health = HealthCheck(
        type=HealthCheck.COMMAND,
        command=COMMAND,
        delay_seconds=0,
        interval_seconds=1.5,
        timeout_seconds=0,
        grace_period_seconds=7,
        consecutive_failures=9,
    )
    assert health_plan("h", health) == Plan(CommandProbe(COMMAND), 0, 1.5, 0, 7, 9)


def test_probes_do_not_follow_each_other_without_a_pause():
    health = HealthCheck(command=COMMAND, interval_seconds=0)
    assert health_plan("h", health).interval_s == MIN_INTERVAL_S


def variable(name: str, value: str = "", **more) -> pb.CommandInfo:
    made = pb.Environment.Variable(name=name, value=value, **more)
    return pb.CommandInfo(value="true", environment=pb.Environment(variables=[made]))


@pytest.mark.parametrize(
    ("health", "words"),
    [
        (HealthCheck(), "h.type: 'UNKNOWN': must be COMMAND, HTTP or TCP"),
        (HealthCheck(tcp=Tcp(port=80)), "h.type: 'UNKNOWN'"),
        (HealthCheck(type=HealthCheck.HTTP, command=COMMAND), "h.http: '': is missing"),
        (HealthCheck(type=HealthCheck.COMMAND), "h.command: '': is missing"),
        (HealthCheck(command=pb.CommandInfo()), "h.command.value: '': must be there: the shell"),
        (HealthCheck(command=pb.CommandInfo(shell=False)), "h.command.value: '': .*the program"),
        (HealthCheck(command=pb.CommandInfo(value="a\0b")), "h.command: 'a.x00b'"),
        (HealthCheck(command=variable("")), "h.command.environment: ''"),
        (HealthCheck(command=variable("A=B")), "h.command.environment: 'A=B'"),
        (HealthCheck(command=variable("A", "\0")), "h.command.environment: 'A'"),
        (
            HealthCheck(command=variable("A", type=pb.Environment.Variable.SECRET)),
            "h.command.environment: 'A': .*secrets",
        ),
        (HealthCheck(http=Http()), "h.http.port: 0: must be a port"),
        (HealthCheck(http=Http(port=65536)), "h.http.port: 65536"),
        (HealthCheck(http=Http(port=1, path="up")), "h.http.path: 'up': must begin with /"),
        (HealthCheck(http=Http(port=1, path="/a b")), "h.http.path: '/a b'"),
        (HealthCheck(http=Http(port=1, path="/\r\nX: y")), "h.http.path"),
        (HealthCheck(http=Http(port=1, path="/" + "a" * 5000)), "h.http.path: .*longer"),
        (HealthCheck(http=Http(port=1, scheme="ftp")), "h.http.scheme: 'ftp'"),
        (HealthCheck(type=HealthCheck.TCP, tcp=Tcp()), "h.tcp.port: 0"),
        (HealthCheck(command=COMMAND, delay_seconds=-1), "h.delay_seconds: -1"),
        (HealthCheck(command=COMMAND, interval_seconds=float("nan")), "h.interval_seconds: nan"),
        (HealthCheck(command=COMMAND, timeout_seconds=float("inf")), "h.timeout_seconds: inf"),
        (HealthCheck(command=COMMAND, grace_period_seconds=1e300), "h.grace_period_seconds"),
    ],
)
def test_a_wrong_health_check_is_refused_with_field_and_value(health, words):
    with pytest.raises(InvalidValue, match=f"^{words}"):
        health_plan("h", health)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (CheckInfo(), "c.type: 'UNKNOWN': must be COMMAND, HTTP or TCP"),
        # Unlike those of health checks: their type is not guessed (Mesos).
        (CheckInfo(command=Command(command=COMMAND)), "c.type: 'UNKNOWN'"),
        (CheckInfo(type=CheckInfo.TCP), "c.tcp: '': is missing"),
        (CheckInfo(type=CheckInfo.COMMAND, command=Command()), "c.command.command.value: ''"),
        (CheckInfo(type=CheckInfo.HTTP, http=CheckInfo.Http(port=0)), "c.http.port: 0"),
        (CheckInfo(type=CheckInfo.HTTP, http=CheckInfo.Http(port=1, path="x")), "c.http.path: 'x'"),
        (
            CheckInfo(type=CheckInfo.TCP, tcp=CheckInfo.Tcp(port=1), delay_seconds=-2),
            "c.delay_seconds: -2",
        ),
    ],
)
def test_a_wrong_check_is_refused_with_field_and_value(check, words):
    with pytest.raises(InvalidValue, match=f"^{words}"):
        check_plan("c", check)


@given(st.binary(max_size=200))
def test_whatever_bytes_come_they_are_a_plan_or_an_error_that_names_the_field(data):
    for kind, read in ((HealthCheck, health_plan), (CheckInfo, check_plan)):
        message = kind()
        try:
            message.ParseFromString(data)
        except Exception:
            continue  # no message at all: gRPC's affair
        plan = plan_or_field(partial(read, "x", message))  # type: ignore[arg-type]
        if isinstance(plan, str):
            assert plan.startswith("x.")
        else:
            assert plan.interval_s >= MIN_INTERVAL_S
            assert plan.failures >= 1
            assert min(plan.delay_s, plan.timeout_s, plan.grace_s) >= 0


def plan_or_field(read: Callable[[], Plan]) -> Plan | str:
    try:
        return read()
    except InvalidValue as error:
        return error.field


@given(
    delay=st.floats(),
    interval=st.floats(),
    failures=st.integers(0, 2**32 - 1),
    port=st.integers(0, 2**32 - 1),
    path=st.text(max_size=20),
)
def test_whatever_numbers_and_texts_come(delay, interval, failures, port, path):
    health = HealthCheck(
        http=Http(port=port, path=path),
        delay_seconds=delay,
        interval_seconds=interval,
        consecutive_failures=failures,
    )
    plan = plan_or_field(lambda: health_plan("h", health))
    if isinstance(plan, str):
        assert plan.startswith("h.")
        return
    assert isinstance(plan.probe, HttpProbe)
    assert plan.probe.url.isprintable()
    assert plan.interval_s >= MIN_INTERVAL_S
