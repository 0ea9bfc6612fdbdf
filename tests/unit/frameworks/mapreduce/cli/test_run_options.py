"""Options of the sub-commands: ours and Hadoop's, in any order; flags of the tracker."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from frameworks.mapreduce.cli import command
from frameworks.mapreduce.cli.flags import ENV_PREFIX, TrackerFlags, options_of
from frameworks.mapreduce.cli.run import parted
from mesos_py import Resources
from mesos_py.config import load
from mesos_py.errors import InvalidValue


def test_ours_have_two_dashes_and_the_rest_is_hadoops():
    words = "-input in --local 2 -mapper cat --quiet -output out --tracker=http://t:1"
    ours, hadoops = parted(words.split())
    assert ours == ["--local", "2", "--quiet", "--tracker=http://t:1"]
    assert hadoops == ["-input", "in", "-mapper", "cat", "-output", "out"]


def test_what_looks_like_ours_as_a_value_of_hadoops_is_a_value():
    ours, hadoops = parted(["-cmdenv", "--local=1", "-mapper", "--quiet"])
    assert ours == []
    assert hadoops == ["-cmdenv", "--local=1", "-mapper", "--quiet"]


def test_letters_of_hadoops_options_are_not_ours():
    assert parted(["-archives", "a", "-help"]) == ([], ["-archives", "a", "-help"])


def run(*words):
    return CliRunner().invoke(command, list(words))


def test_help_shows_both_kinds():
    found = run("run", "--help")
    assert found.exit_code == 0
    assert "--local" in found.output
    assert "-numReduceTasks N" in found.output


def test_info_shows_properties():
    found = run("run", "-info")
    assert found.exit_code == 0
    assert "mapreduce.map.maxattempts" in found.output


@pytest.mark.parametrize(
    "words",
    [
        ["-maper", "x"],
        ["-input", "i", "-output", "o", "-mapper", "cat", "--local", "1", "--master", "m:1"],
        ["-input", "i", "-output", "o", "-mapper", "cat", "--local", "1", "-background"],
    ],
)
def test_wrong_options_are_refused_before_anything_runs(words):
    found = run("run", *words)
    assert isinstance(found.exception, InvalidValue)


def test_an_unknown_sub_command_names_the_nearest():
    found = run("statu")
    assert found.exit_code == 2
    assert "did you mean 'status'?" in found.output


def test_every_sub_command_loads_and_has_help():
    names = command.list_commands(click.Context(command))
    assert "run" in names
    for name in names:
        found = run(name, "--help")
        assert found.exit_code == 0, (name, found.output, found.exception)


# ---- Flags of the tracker ------------------------------------------------------------------


def flags(**given):
    return load(TrackerFlags, ENV_PREFIX, command_line={"master": "m:1", "state": "/s", **given})


def test_flags_become_what_a_tracker_is_given():
    found = options_of(flags(order="fifo", worker_resources="cpus:0.5;mem:64", idle="2m"))
    assert (found.master, found.state, found.order) == ("m:1", "/s", "fifo")
    assert found.worker_needs == Resources.of(cpus=0.5, mem=64)
    assert found.idle_s == 120.0
    assert found.worker_python == sys.executable


@pytest.mark.parametrize(
    "given",
    [
        {"order": "random"},
        {"worker_resources": "cpus:1"},
        {"worker_resources": "lots"},
        {"max_workers": "0"},
        {"state": ""},
    ],
)
def test_bad_flags_are_refused_by_their_names(given):
    with pytest.raises(InvalidValue) as caught:
        flags(**given)
    assert caught.value.field == next(iter(given)).replace("_", "-")


def test_a_python_by_a_relative_path_is_refused():
    with pytest.raises(InvalidValue) as caught:
        options_of(flags(worker_python="bin/python"))
    assert caught.value.field == "--worker-python"


def test_without_its_extra_it_says_what_brings_it():
    # None in sys.modules: not to be found.
    script = "import sys; sys.modules['msgspec'] = None; from mesos_py.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", script, "mapreduce", "run"], capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "msgspec is not installed: pip install 'mesos-py[mapreduce]'" in ended.stderr
