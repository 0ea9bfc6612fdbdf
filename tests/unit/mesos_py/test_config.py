from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mesos_py import config
from mesos_py.address import Address
from mesos_py.config import (
    REQUIRED,
    at_least,
    boolean,
    choice,
    duration_s,
    flag,
    host_port,
    integer,
    load,
    port_number,
    size_bytes,
    text,
    text_list,
)
from mesos_py.errors import InvalidValue

PREFIX = "MESOS_PY_MASTER_"


@dataclass(frozen=True)
class Flags:
    ip: str = flag("127.0.0.1", kind=text, help="Where to listen")
    port: int = flag(5050, kind=port_number, help="The port; 0 picks one")
    offer_timeout_s: float = flag(
        30.0, kind=duration_s, check=at_least(1), help="How long an offer stands"
    )
    max_message_bytes: int = flag(
        2**25, kind=size_bytes, name="message-limit", help="Largest | one"
    )
    verbose: bool = flag(False, kind=boolean, help="Say more")
    roles: tuple[str, ...] = flag((), kind=text_list, help="Known roles")
    allocator: str = flag("drf", kind=choice("drf", "lottery"), help="Who gets what")
    hostname: str | None = flag(None, kind=text, help="The name others know")
    join_token: str = flag("", kind=text, help="Shared secret", secret=True)


@dataclass(frozen=True)
class AgentFlags:
    cpus: int = flag(1, kind=integer, help="How many")
    master: tuple[str, int] = flag(REQUIRED, kind=host_port, help="Where the master is")


# --- declaration ------------------------------------------------------------


def test_names_come_from_fields_without_their_unit() -> None:
    names = {each.field: each.name for each in config.flags_of(Flags)}
    assert names["offer_timeout_s"] == "offer-timeout"
    assert names["max_message_bytes"] == "message-limit"
    # Only a unit is cut off: "roles" and "ip" end as they are.
    assert names["roles"] == "roles"


def test_defaults_make_the_flags() -> None:
    assert load(Flags, PREFIX) == Flags()


def test_a_field_without_flag_is_a_mistake() -> None:
    @dataclass
    class Wrong:
        port: int = 5050

    with pytest.raises(TypeError, match=r"Wrong\.port is not declared by flag"):
        config.flags_of(Wrong)


@pytest.mark.parametrize("name", ["config", "port"])
def test_a_name_is_given_once(name: str) -> None:
    wrong = dataclasses.make_dataclass(
        "wrong",
        [
            ("port", int, flag(1, kind=integer, help="")),
            ("other", int, flag(1, kind=integer, name=name, help="")),
        ],
    )
    with pytest.raises(TypeError, match="is taken"):
        config.flags_of(wrong)


# --- precedence -------------------------------------------------------------


@given(
    line=st.none() | st.integers(0, 65535),
    env=st.none() | st.integers(0, 65535),
    file=st.none() | st.integers(0, 65535),
)
def test_the_command_line_beats_the_environment_beats_the_file(
    line: int | None, env: int | None, file: int | None
) -> None:
    flags = load(
        Flags,
        PREFIX,
        command_line={"port": None if line is None else str(line)},
        environ={} if env is None else {"MESOS_PY_MASTER_PORT": str(env)},
        config_text=None if file is None else f"[master]\nport = {file}\n",
    )
    given_ones = [value for value in (line, env, file) if value is not None]
    assert flags == Flags(port=given_ones[0] if given_ones else 5050)


def test_each_source_speaks_its_own_way() -> None:
    assert load(Flags, PREFIX, command_line={"offer_timeout": "2m"}).offer_timeout_s == 120
    assert load(Flags, PREFIX, command_line={"offer-timeout": "2m"}).offer_timeout_s == 120
    environ = {"MESOS_PY_MASTER_OFFER_TIMEOUT": "2m", "MESOS_PY_MASTER_ROLES": "a,b"}
    assert load(Flags, PREFIX, environ=environ) == Flags(offer_timeout_s=120, roles=("a", "b"))
    text = '[master]\noffer-timeout = "2m"\nroles = ["a", "b"]\nverbose = true\n[agent]\nx = 1\n'
    expected = Flags(offer_timeout_s=120, roles=("a", "b"), verbose=True)
    assert load(Flags, PREFIX, config_text=text) == expected


def test_an_empty_text_takes_back_what_may_be_left_out() -> None:
    text = '[master]\nhostname = "node1"'
    environ = {"MESOS_PY_MASTER_HOSTNAME": ""}
    assert load(Flags, PREFIX, config_text=text).hostname == "node1"
    assert load(Flags, PREFIX, environ=environ, config_text=text).hostname is None


# --- refusals ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("sources", "where"),
    [
        ({"command_line": {"offer-timeout": "soon"}}, "--offer-timeout on the command line"),
        (
            {"environ": {"MESOS_PY_MASTER_OFFER_TIMEOUT": "soon"}},
            "MESOS_PY_MASTER_OFFER_TIMEOUT in the environment",
        ),
        (
            {"config_text": '[master]\noffer-timeout = "soon"', "config_name": "m.toml"},
            r"offer-timeout in \[master\] of m.toml",
        ),
    ],
)
def test_a_bad_value_names_flag_value_source_and_what_is_allowed(sources, where: str) -> None:
    with pytest.raises(InvalidValue, match=where) as caught:
        load(Flags, PREFIX, **sources)
    assert (caught.value.field, caught.value.value) == ("offer-timeout", "soon")
    assert "is not a duration" in caught.value.reason
    assert "allowed: a duration such as" in caught.value.reason


def test_a_check_that_fails_says_what_must_hold() -> None:
    with pytest.raises(InvalidValue, match=r"must be at least 1 .*given by --offer-timeout"):
        load(Flags, PREFIX, command_line={"offer-timeout": "10ms"})


def test_a_check_may_raise_invalid_value() -> None:
    @dataclass(frozen=True)
    class Checked:
        address: tuple[str, int] = flag(Address("a", 1), kind=host_port, help="")

    with pytest.raises(InvalidValue, match=r"has no port.*given by --address") as caught:
        load(Checked, PREFIX, command_line={"address": "a"})
    assert caught.value.field == "address"


def test_a_secret_is_in_no_error_text() -> None:
    with pytest.raises(InvalidValue) as caught:
        load(Flags, PREFIX, environ={"MESOS_PY_MASTER_JOIN_TOKEN": "hunter2\0"})
    assert "hunter2" not in str(caught.value)


def test_a_bad_value_of_the_file_is_an_error_even_when_overridden() -> None:
    with pytest.raises(InvalidValue, match="port in"):
        load(Flags, PREFIX, command_line={"port": "1"}, config_text='[master]\nport = "x"')


def test_an_option_helps_against_a_variable_that_nobody_asked_for() -> None:
    # As Kubernetes sets it for a service called mesos-py-master.
    environ = {"MESOS_PY_MASTER_PORT": "tcp://10.0.0.1:5050"}
    assert load(Flags, PREFIX, command_line={"port": "1"}, environ=environ).port == 1
    with pytest.raises(InvalidValue, match="MESOS_PY_MASTER_PORT in the environment"):
        load(Flags, PREFIX, environ=environ)


@pytest.mark.parametrize("key", ["offer-timeuot", "offer_timeout", "OfferTimeout"])
def test_an_unknown_key_names_the_nearest_flag(key: str) -> None:
    with pytest.raises(InvalidValue, match="nearest is 'offer-timeout'"):
        load(Flags, PREFIX, config_text=f'[master]\n{key} = "1s"')


def test_an_unknown_option_names_the_nearest_flag() -> None:
    with pytest.raises(InvalidValue, match="on the command line; the nearest is 'port'"):
        load(Flags, PREFIX, command_line={"prot": "1"})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[master\n", "not valid TOML"),
        ("x = " + "[" * 5000, "not valid TOML"),
        ("port = 1\n", r"put it under \[master\]"),
        ("[mster]\nport = 1\n", r"did you mean \[master\]"),
        ("[master.port]\nx = 1\n", "must not be of type dict"),
        ("[[master]]\nport = 1\n", r"put it under \[master\]"),
        ("[master]\nport = true\n", "must not be of type bool"),
        ("[master]\nport = 2024-01-01\n", "must not be of type date"),
        ("[master]\noffer-timeout = nan\n", "must be finite"),
        ("[master]\noffer-timeout = inf\n", "must be finite"),
    ],
)
def test_a_file_that_is_wrong_says_why(content: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        load(Flags, PREFIX, config_text=content)


def test_a_required_flag_says_how_it_can_be_given() -> None:
    prefix = "MESOS_PY_AGENT_"
    with pytest.raises(InvalidValue, match=r"--master .* MESOS_PY_AGENT_MASTER .* \[agent\]"):
        load(AgentFlags, prefix)
    flags = load(AgentFlags, prefix, command_line={"master": "a:1"})
    assert flags == AgentFlags(master=Address("a", 1))


@pytest.mark.parametrize("given_text", ["", "nonsense"])
def test_a_required_flag_refuses_an_empty_text(given_text: str) -> None:
    with pytest.raises(InvalidValue, match="given by --master"):
        load(AgentFlags, "MESOS_PY_AGENT_", command_line={"master": given_text})


# --- command line -----------------------------------------------------------


def run(arguments: list[str], environ: dict[str, str] | None = None) -> tuple[Flags, int]:
    found: list[Flags] = []

    @click.command()
    @config.click_options(Flags, PREFIX)
    @click.option("--once", is_flag=True)
    def command(once: bool, **options: object) -> None:
        found.append(config.from_command(Flags, PREFIX, options, environ or {}))

    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0], result.exit_code


def test_options_that_are_not_given_leave_the_rest_to_speak(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text('[master]\nport = 1\nip = "0.0.0.0"\nverbose = true\n')
    environ = {"MESOS_PY_MASTER_PORT": "2"}
    flags, _ = run(["--config", str(file), "--roles", "a,b", "--once"], environ)
    assert flags == Flags(ip="0.0.0.0", port=2, roles=("a", "b"), verbose=True)


def test_a_boolean_can_be_said_and_denied() -> None:
    environ = {"MESOS_PY_MASTER_VERBOSE": "true"}
    assert run(["--verbose"])[0].verbose is True
    assert run([], environ)[0].verbose is True
    assert run(["--no-verbose"], environ)[0].verbose is False


def test_the_environment_can_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text("[master]\nport = 7\n")
    assert run([], {"MESOS_PY_MASTER_CONFIG": str(file)})[0].port == 7


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "m.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidValue, match=r"m\.toml.*cannot be read"):
        config.from_command(Flags, PREFIX, {"config": str(file)}, {})


def test_help_shows_default_and_variable() -> None:
    @click.command()
    @config.click_options(Flags, PREFIX)
    def command(**options: object) -> None: ...

    shown = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "--offer-timeout DURATION How long an offer stands" in shown
    assert "[default: 30s; environment: MESOS_PY_MASTER_OFFER_TIMEOUT]" in shown
    assert "--verbose / --no-verbose" in shown
    assert shown.index("--ip") < shown.index("--port") < shown.index("--offer-timeout")


# --- what is shown ----------------------------------------------------------


def test_the_reference_has_a_row_for_each_flag() -> None:
    lines = config.reference_table(Flags, PREFIX).splitlines()
    assert lines[0] == "| flag | environment | value | default | what it does |"
    assert len(lines) == 2 + len(dataclasses.fields(Flags))
    row = next(line for line in lines if "message-limit" in line)
    assert row == (
        "| `--message-limit` | `MESOS_PY_MASTER_MESSAGE_LIMIT` "
        "| a size such as 64KB, 512MB, 2GB (powers of 1024) | `32MB` | Largest \\| one |"
    )
    assert "| (none) |" in next(line for line in lines if "hostname" in line)


def test_the_reference_without_a_prefix_has_no_environment() -> None:
    table = config.reference_table(AgentFlags)
    assert table.startswith("| flag | value | default | what it does |\n")
    assert "(required)" in table


def test_values_as_texts_can_be_given_again_but_secrets_stay() -> None:
    flags = Flags(offer_timeout_s=90, roles=("a", "b"), join_token="hunter2")
    texts = config.as_texts(flags)
    assert texts["offer-timeout"] == "90s"
    assert texts["join-token"] == "***"
    assert "hostname" not in texts
    again = load(Flags, PREFIX, command_line={**texts, "join-token": "hunter2"})
    assert again == flags


def test_misspelt_variables_can_be_warned_of() -> None:
    environ = {
        "MESOS_PY_MASTER_OFFER_TIMEUOT": "1s",
        "MESOS_PY_MASTER_PORT": "1",
        "MESOS_PY_MASTER_CONFIG": "x",
        "MESOS_PY_MASTER": "a:1",
        "HOME": "/",
    }
    unknown = config.unknown_variables(Flags, PREFIX, environ)
    assert unknown == ["MESOS_PY_MASTER_OFFER_TIMEUOT"]
