"""The group: finding sub-commands, and turning errors into one line and an exit code."""

import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import click
import pytest

from mesos_py.cli import exits, main, summaries
from mesos_py.errors import (
    Conflict,
    InternalError,
    InvalidValue,
    MasterUnreachable,
    NotFound,
    NotLeader,
    TooLarge,
    Unavailable,
)
from mesos_py.v1.types_pb2 import TaskID


def commands_are(monkeypatch, **values: str) -> None:
    entries = [EntryPoint(name, value, main.GROUP) for name, value in values.items()]
    monkeypatch.setattr(main, "entry_points", lambda group: entries)


def failing(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


def raising(monkeypatch, error: BaseException) -> None:
    monkeypatch.setattr(main, "_load", lambda name, found: failing(error))
    commands_are(monkeypatch, boom="x:y")


# --- finding them -------------------------------------------------------------


def test_our_commands_are_the_entry_points_that_are_summarised():
    ours = {each.name for each in entry_points(group=main.GROUP)}
    assert set(summaries.SUMMARIES) <= ours


def test_a_command_is_summarised_once():
    names = [name for part in summaries.SECTIONS.values() for name in part]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", sorted(set(summaries.SUMMARIES) - {"master", "agent"}))
def test_each_of_our_commands_loads_and_explains_itself(name, cli):
    ended = cli(name, "--help")
    assert ended.code == 0
    assert ended.out.startswith(f"Usage: mesos-py {name} ")


def test_help_names_every_command_and_every_exit_code(cli):
    ended = cli("--help")
    assert ended.code == 0
    for name in summaries.SUMMARIES:
        assert f"\n  {name} " in ended.out
    for code in exits.Exit:
        assert f"\n  {int(code)} " in ended.out


def test_the_page_lists_the_same_exit_codes():
    page = (Path(__file__).parents[4] / "docs" / "command-line.md").read_text()
    listed = re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    assert listed == [str(int(code)) for code in exits.Exit]


def test_help_imports_no_command_and_no_grpc():
    code = (
        "import sys; from mesos_py.cli import main; main.run(['--help']);"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('grpc', 'rich', 'master', 'agent')"
        " or m in ('mesos_py.cli.tasks', 'mesos_py.cli.run')];"
        "sys.exit(', '.join(bad) or None)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_version_imports_no_grpc():
    code = (
        "import sys; from mesos_py.cli import main; main.run(['version']);"
        "sys.exit('grpc' in sys.modules or 'rich' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0
    assert ended.stdout.startswith("mesos-py ")


def test_a_plugin_command_stands_in_the_help(monkeypatch, cli):
    commands_are(monkeypatch, extra="tests.unit.mesos_py.cli.test_main:plugin")
    ended = cli("--help")
    assert "Plug-ins:\n  extra  Do something else.\n" in ended.out


def test_a_broken_plugin_is_shown_as_broken_and_harms_no_other(monkeypatch, cli):
    commands_are(
        monkeypatch,
        extra="no.such.module:command",
        version="mesos_py.cli.version:command",
    )
    ended = cli("--help")
    assert ended.code == 0
    assert "extra  (broken: no.such.module:command" in ended.out
    assert cli("version").code == 0


def test_calling_a_broken_plugin_says_why(monkeypatch, cli):
    commands_are(monkeypatch, extra="no.such.module:command")
    ended = cli("extra", "--any", "thing")
    assert ended.code == 1
    assert ended.err.startswith("mesos-py: error: the command 'extra' is broken: ")
    assert "ModuleNotFoundError" in ended.err


def test_an_entry_point_that_is_no_click_command_is_broken(monkeypatch, cli):
    commands_are(monkeypatch, extra="os:getcwd")
    assert "is not a click command" in cli("extra").err


def test_an_unknown_command_suggests_the_nearest(cli):
    ended = cli("taks")
    assert ended.code == 2
    assert ended.err == (
        "mesos-py: error: no such command 'taks'; did you mean 'tasks'? (see mesos-py --help)\n"
    )


@click.command()
def plugin() -> None:
    """Do something else."""


# --- how they end -------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidValue("cpus", -1, "must be above zero"), 2),
        (TooLarge("too much"), 2),
        (NotFound("task", "x"), 1),
        (Conflict("clash"), 1),
        (Unavailable("agent S0 is away"), 1),
        (MasterUnreachable("nobody there"), 3),
        (NotLeader("other:5050"), 3),
        (InternalError("bug"), 70),
        (RuntimeError("bug"), 70),
        (PermissionError(13, "Permission denied", "/etc/x"), 1),
        (click.UsageError("no"), 2),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (BrokenPipeError(), 141),
        (click.exceptions.Exit(7), 7),
    ],
)
def test_every_kind_of_end_has_its_code(monkeypatch, cli, error, code):
    raising(monkeypatch, error)
    assert cli("boom").code == code


def test_an_error_is_one_line_that_names_field_and_value(monkeypatch, cli):
    raising(monkeypatch, InvalidValue("cpus", "-1\n", "must be\nabove zero"))
    assert cli("boom").err == "mesos-py: error: cpus: '-1\\n': must be above zero\n"


def test_an_argument_that_is_not_utf_8_is_named(monkeypatch, cli):
    @click.command()
    @click.argument("words", nargs=-1)
    def command(words: tuple[str, ...]) -> None:
        TaskID(value=words[-1])

    monkeypatch.setattr(main, "_load", lambda name, found: command)
    commands_are(monkeypatch, boom="x:y")
    ended = cli("boom", "a", "b\udcff")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "mesos-py: error: argument: 'b\\udcff': must be UTF-8\n"
    raising(monkeypatch, UnicodeEncodeError("utf-8", "\udcff", 0, 1, "no"))
    assert cli("boom").code == 70


def test_no_traceback_unless_asked_for(monkeypatch, cli):
    raising(monkeypatch, ZeroDivisionError("oops"))
    ended = cli("boom")
    assert ended.err == (
        "mesos-py: error: internal error: ZeroDivisionError: oops (MESOS_PY_DEBUG=1 shows where)\n"
    )
    monkeypatch.setenv("MESOS_PY_DEBUG", "1")
    assert "Traceback" in cli("boom").err


def test_no_arguments_show_the_help_and_are_no_success(cli):
    ended = cli()
    assert ended.code == 2
    assert "Usage: mesos-py" in ended.err


def test_a_reader_that_went_away_ends_us_quietly():
    script = (
        "import sys; from mesos_py.cli import main\n"
        "import click\n"
        "@click.command()\n"
        "def command():\n"
        "    for _ in range(100000): click.echo('x' * 100)\n"
        "main._load = lambda name, found: command\n"
        "main.main(['version'])\n"
    )
    read, write = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", script], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    os.read(read, 10)
    os.close(read)
    _, err = process.communicate()
    assert (process.returncode, err) == (141, b"")


def test_garbage_is_looked_for_once_the_command_is_imported():
    script = (
        "import gc, click\n"
        "from mesos_py.cli import main\n"
        "@click.command()\n"
        "def command():\n"
        "    click.echo(f'in the command: {gc.isenabled()} {gc.get_freeze_count() > 0}')\n"
        "def load(name, found):\n"
        "    click.echo(f'while it is imported: {gc.isenabled()}')\n"
        "    return command\n"
        "main._load = load\n"
        "main.main(['version'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert ended.stdout == b"while it is imported: False\nin the command: True True\n"
