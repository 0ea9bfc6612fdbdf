"""What haproxy 2.6 says, as it was seen, and what is not that."""

import pytest

from frameworks.webfarm.core.balancer import Mode, Slot
from frameworks.webfarm.core.haproxy import (
    Front,
    complaint,
    configuration,
    put,
    reading,
    slots,
    state,
    statistics,
)
from mesos_py.errors import InternalError

# Shortened: columns in their order, of which there are more.
STAT = """\
# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,wretr,wredis,status,hrsp_5xx,
web,FRONTEND,,,3,3,9983,70,0,0,,,OPEN,4,
farm,s1,0,0,2,2,,40,0,0,1,0,UP,0,
farm,s2,0,0,0,0,,30,0,0,0,0,MAINT,0,
farm,s3,0,0,1,1,,5,0,0,0,0,DRAIN,0,
farm,BACKEND,0,0,3,3,999,75,0,0,3,2,UP,4,

"""
STATE = """\
1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight \
srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state \
srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord
3 farm 1 s1 127.0.0.2 2 4 1 1 1 15 3 2 6 0 0 0 slot.invalid 19001 - 0 0 - - 0
3 farm 2 s2 127.0.0.1 0 5 1 1 7 1 0 0 14 0 0 0 slot.invalid 1 - 0 0 - - 0
3 farm 3 s3 10.0.0.7 0 12 1 1 7 1 0 0 14 0 0 0 slot.invalid 31000 - 0 0 - - 0
4 other 1 s1 10.0.0.9 2 0 1 1 7 1 0 0 14 0 0 0 - 80 - 0 0 - - 0

"""
INFO = (
    "Name: HAProxy\nVersion: 2.6.12\nPid: 26633\nUptime: 0d 0h00m03s\nStart_time_sec: 1795888828\n"
)


def test_a_reading_is_made_of_three_answers():
    found = reading(STAT, STATE, INFO)
    assert found.epoch == "26633@1795888828"
    # All that came, also what no server could take.
    assert found.sessions == 75
    assert found.errors == 4
    assert found.retries == 5
    assert found.slots == (
        Slot("s1", Mode.OPEN, "127.0.0.2", 19001, sessions=2, total=40, well=True),
        Slot("s2", Mode.FREE, "127.0.0.1", 1, sessions=0, total=30, well=False),
        Slot("s3", Mode.HELD, "10.0.0.7", 31000, sessions=1, total=5, well=False),
    )


@pytest.mark.parametrize(
    ("admin", "mode"),
    [
        (0x00, Mode.OPEN),
        (0x01, Mode.FREE),  # by us
        (0x04, Mode.OPEN),  # only was disabled in the configuration
        (0x05, Mode.FREE),
        (0x08, Mode.HELD),
        (0x09, Mode.FREE),
        (0x20, Mode.FREE),  # its name means nothing
    ],
)
def test_the_mode_is_in_the_bits_of_the_administrative_state(admin, mode):
    text = STATE.replace("127.0.0.2 2 4 ", f"127.0.0.2 2 {admin} ")
    assert slots(text)[0].mode is mode


@pytest.mark.parametrize("text", ["", "Unknown command.\n", "<html>", "pxname,svname\n"])
def test_statistics_that_are_none_are_refused(text):
    with pytest.raises(InternalError):
        statistics(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1\n",
        STATE.replace("1\n#", "2\n#", 1),
        STATE.replace("srv_admin_state", "something"),
        STATE.replace("2 4 1", "2 x 1"),
        STATE.replace(" 127.0.0.2 2 4 1 1 1 15 3 2 6 0 0 0 slot.invalid 19001 - 0 0 - - 0", ""),
    ],
)
def test_a_state_of_servers_that_is_none_is_refused(text):
    with pytest.raises(InternalError):
        slots(text)


@pytest.mark.parametrize(
    ("stat", "info"),
    [
        (STAT.replace("web,FRONTEND", "www,FRONTEND"), INFO),
        (STAT.replace("farm,s3", "farm,s4"), INFO),
        (STAT.replace(",75,", ",many,"), INFO),
        (STAT, INFO.replace("Pid: 26633\n", "")),
        (STAT, ""),
    ],
)
def test_a_reading_that_lacks_something_is_refused(stat, info):
    with pytest.raises(InternalError, match="do not understand"):
        reading(stat, STATE, info)


def test_a_server_is_put_in_held_and_not_well_before_a_look_at_it():
    assert put("s2", "10.0.0.7", 31000) == [
        "set server farm/s2 addr 10.0.0.7 port 31000",
        "set server farm/s2 state drain",
        "set server farm/s2 health down",
    ]
    assert state("s2", "ready") == ["set server farm/s2 state ready"]


def test_what_haproxy_has_against_a_command():
    done = "IP changed from '127.0.0.1' to '10.0.0.7', port changed from '1' to '2' by 'stats'\n"
    assert complaint(done) == ""
    assert complaint("no need to change the addr, port changed from '1' to '19001'\n\n") == ""
    assert complaint("\n\n") == ""
    assert complaint("\nNo such server.\n\n") == "No such server."


def test_the_configuration_has_slots_that_nobody_is_in():
    text = configuration(Front(port=8081, slots=12, check_path="/ok", check_s=0.5))
    assert "    bind :8081\n" in text
    assert "    server-template s 1-12 slot.invalid:1 disabled\n" in text
    assert "    option httpchk GET /ok\n" in text
    assert "check inter 500ms" in text
    assert "    option redispatch 1\n" in text


@pytest.mark.parametrize(
    ("bind", "line"),
    [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("*", ":80"), ("", ":80")],
)
def test_the_address_that_users_come_to(bind, line):
    assert f"    bind {line}\n" in configuration(Front(bind=bind, port=80))


def test_requests_are_logged_when_that_is_asked_for():
    assert "log" not in configuration(Front())
    text = configuration(Front(log_requests=True))
    assert "    log stdout format raw daemon\n" in text.partition("defaults\n")[0]
    assert "    log global\n    option httplog\n" in text.partition("defaults\n")[2]
