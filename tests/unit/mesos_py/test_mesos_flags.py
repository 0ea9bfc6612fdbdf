"""Flags of Apache Mesos on the command line and in the environment of our daemons."""

from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from agent.mesos_flags import TABLE as AGENT
from master.mesos_flags import TABLE as MASTER
from mesos_py import config, mesos_flags
from mesos_py.config import flag
from mesos_py.config_kinds import boolean, duration_s, text
from mesos_py.errors import InvalidValue
from mesos_py.mesos_flags import MesosFlag, Table, path_of

PREFIX = "MESOS_PY_IT_"


@dataclass(frozen=True)
class Flags:
    work_dir: str = flag("", kind=text, help="Where.")
    hard: bool = flag(False, kind=boolean, help="Whether.")
    wait_s: float = flag(1.0, kind=duration_s, help="How long.")
    zk: str = flag("", kind=text, help="Who.")
    port: str = flag("", kind=text, help="Ours.")
    http_port: str = flag("", kind=text, help="Theirs.")


IT = Table(
    Flags,
    PREFIX,
    (
        MesosFlag("work_dir", "work-dir"),
        MesosFlag("be_hard", "hard"),
        MesosFlag("wait_timeout", "wait"),
        MesosFlag("zk", "zk", convert=path_of),
        MesosFlag("port", "http-port", env_only=True),
        MesosFlag("quorum", note="is not asked"),
        MesosFlag("acls", note="there are none", refused=True),
    ),
)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("", ""),
        ("--work_dir=/x --work-dir=/y", "--work-dir=/x --work-dir=/y"),
        ("--work_dir /x", "--work-dir=/x"),
        ("--work_dir", "--work-dir"),
        ("--be_hard", "--hard"),
        ("--be_hard=true --zk a", "--hard --zk=a"),
        ("--be_hard=false", "--no-hard"),
        ("--no-be_hard", "--no-hard"),
        ("--wait_timeout=10secs", "--wait=10secs"),
        ("--zk=file:///etc/zk", "--zk=/etc/zk"),
        ("--zk file:///etc/zk", "--zk=/etc/zk"),
        ("--port=1", "--port=1"),
        ("--quorum=2 --zk=a", "--zk=a"),
        ("--quorum 2 --zk=a", "--zk=a"),
        ("--quorum --zk=a", "--zk=a"),
        ("--no-acls", ""),
        ("--acls=false", ""),
        ("--other_thing=1 x -y", "--other_thing=1 x -y"),
        ("-- --work_dir=/x", "-- --work_dir=/x"),
    ],
)
def test_words_of_theirs_become_ours_and_others_stay(given, made):
    assert IT.arguments(given.split())[0] == made.split()


def test_what_has_no_use_is_told_and_what_asks_for_protection_is_refused():
    _, useless = IT.arguments(["--quorum=2"])
    assert [(each.name, each.note) for each in useless] == [("quorum", "is not asked")]
    with pytest.raises(InvalidValue, match="acls: '/etc/acls': there are none"):
        IT.arguments(["--acls=/etc/acls"])
    with pytest.raises(InvalidValue, match="MESOS_ACLS: 'x': there are none"):
        IT.environment({"MESOS_ACLS": "x"})


def test_our_variables_come_before_those_of_mesos():
    made, useless = IT.environment(
        {
            "MESOS_WORK_DIR": "/theirs",
            "MESOS_ZK": "file:///etc/zk",
            "MESOS_PY_IT_WORK_DIR": "/ours",
            "MESOS_PORT": "5050",
            "MESOS_QUORUM": "2",
            "MESOS_SANDBOX": "/sandbox",
        }
    )
    assert (made["MESOS_PY_IT_WORK_DIR"], made["MESOS_PY_IT_ZK"]) == ("/ours", "/etc/zk")
    assert made["MESOS_PY_IT_HTTP_PORT"] == "5050"
    assert "MESOS_PY_IT_PORT" not in made
    assert [each.name for each in useless] == ["quorum"]


@click.command(cls=mesos_flags.MesosCommand)
@config.click_options(Flags, PREFIX)
def command(**options):
    environ = {"MESOS_WAIT_TIMEOUT": "2secs", "MESOS_QUORUM": "1"}
    flags, useless = mesos_flags.from_command(IT, Flags, PREFIX, options, environ)
    click.echo(f"{flags.work_dir} {flags.wait_s} {[each.name for each in useless]}")


command.table = IT


def test_a_command_takes_both_spellings():
    ended = CliRunner().invoke(command, ["--work_dir=/x", "--quorum", "2"])
    assert (ended.exit_code, ended.output) == (0, "/x 2.0 ['quorum', 'quorum']\n")
    ended = CliRunner().invoke(command, ["--work_dri=/x"])
    assert ended.exit_code == 2
    assert "--work_dri" in ended.output


@pytest.mark.parametrize(
    "flags",
    [
        (MesosFlag("x", "no-such"),),
        (MesosFlag("port", note="is ours"),),
        (MesosFlag("x", "zk"), MesosFlag("x", "port")),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(flags):
    with pytest.raises(TypeError):
        Table(Flags, PREFIX, flags)


def test_a_command_line_of_mesos_is_understood_as_a_whole():
    given = "--zk=zk://a:1/mesos --quorum=2 --work_dir=/var/lib/mesos --ip=10.0.0.1 --cluster=c"
    assert MASTER.arguments(given.split())[0] == [
        *("--zk=zk://a:1/mesos", "--work-dir=/var/lib/mesos", "--ip=10.0.0.1"),
    ]
    given = (
        "--master=zk://a:1/mesos --work_dir=/w --containerizers=docker,mesos "
        "--isolation=cgroups/cpu,cgroups/mem,disk/du --executor_registration_timeout=5mins"
    )
    assert AGENT.arguments(given.split())[0] == [
        *("--master=zk://a:1/mesos", "--work-dir=/w", "--containerizers=docker,posix"),
        *("--isolation=cgroups,disk", "--executor-registration-timeout=5mins"),
    ]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("posix/cpu,posix/mem", "posix"),
        ("cgroups/cpu, cgroups/mem, disk/du", "cgroups,disk"),
        ("posix,posix", "posix,posix"),
        ("cgroups/cpu,cgroups/cpu", "cgroups,cgroups"),
        ("posix,nonesuch", "posix,nonesuch"),
        ("posix,", "posix,"),
    ],
)
def test_isolators_of_mesos_become_one_and_a_name_given_twice_stays_to_be_refused(given, made):
    assert AGENT.arguments([f"--isolation={given}"])[0] == [f"--isolation={made}"]


@pytest.mark.parametrize("table", [MASTER, AGENT])
def test_the_page_tells_every_flag_and_why_it_has_no_use(table):
    page = table.markdown()
    for each in table.flags:
        assert each.name in page or each.name.upper() in page
        assert each.ours or each.note


def test_our_flags_are_shown_under_names_as_mesos_writes_them():
    shown = mesos_flags.as_texts(Flags(work_dir="/x", wait_s=2.0))
    assert (shown["work_dir"], shown["wait"]) == ("/x", "2s")
    assert not any("-" in name for name in shown)
