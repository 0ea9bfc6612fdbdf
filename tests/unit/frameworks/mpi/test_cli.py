"""What `mesos-py mpi run` makes of its options."""

from pathlib import Path
from typing import Any

import click
import pytest

from frameworks.mpi.cli import command, settings_of
from mesos_py.errors import InvalidValue


def settings(*words: str) -> Any:
    run = command.get_command(click.Context(command), "run")
    assert run is not None
    options = run.make_context("run", ["-n", "2", *words]).params
    return settings_of(options.pop("master") or "m:1", options)


def test_what_follows_the_program_is_its_own():
    made = settings("--ppn", "1", "/bin/ring", "-n", "9", "--file", "no")
    assert made.program == ("/bin/ring", "-n", "9", "--file", "no")
    assert (made.ask.slots, made.ask.per_agent, made.name) == (2, 1, "ring")


def test_variables_are_given_or_taken_from_here(monkeypatch):
    monkeypatch.setenv("HERE", "there")
    made = settings("-e", "HERE", "-e", "A=b=c", "-e", "EMPTY=", "true")
    assert made.env == {"HERE": "there", "A": "b=c", "EMPTY": ""}


def test_files_are_named_as_they_are_called_not_as_what_they_lead_to(tmp_path):
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    made = settings("--file", str(tmp_path / "link"), "./link")
    assert [path.name for path in made.files] == ["link"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("./ring",), "PROGRAM: './ring': is not where ranks run"),
        (("bin/ring",), "send it along (--file)"),
        (("",), "PROGRAM"),
        (("--file", "/no/such", "ring"), "--file: '/no/such': is no file here"),
        (("--file", "/etc", "ring"), "--file: '/etc': is no file here"),
        (("-e", "1A=b", "true"), "--env"),
        (("-e", "NOT_IN_HERE", "true"), "is not in this environment"),
        (("--address", "host", "true"), "must be an IPv4 address"),
        (("--cpus", "0", "--mem", "0", "true"), "a rank needs something"),
        (("--cpus", "-1", "true"), "--cpus"),
        (("--uri", "", "true"), "--uri"),
    ],
)
def test_what_cannot_be_is_told_with_its_option(words, told):
    with pytest.raises(InvalidValue) as raised:
        settings(*words)
    assert told in str(raised.value)


def test_two_files_of_the_same_name_are_one_too_many(tmp_path):
    (tmp_path / "sub").mkdir()
    files = [tmp_path / "ring", tmp_path / "sub" / "ring"]
    for file in files:
        file.write_text("")
    with pytest.raises(InvalidValue, match="is the second one called ring"):
        settings("--file", str(files[0]), "--file", str(files[1]), "./ring")


def test_a_program_may_be_relative_to_a_directory_that_is_named():
    assert settings("--wdir", "/shared", "./ring").directory == "/shared"
    assert Path(settings("--image", "ring:1", "bin/ring").program[0]).name == "ring"
