"""The operator's guide is true: what it names is there."""

import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

from agent.flags import AgentFlags
from master.flags import MasterFlags
from mesos_py.cli.main import GROUP
from mesos_py.config import flags_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
SPANS = re.findall(r"`([^`\n]+)`", PAGE)
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def code() -> str:
    folders = ("mesos_py", "master", "agent")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return "".join(path.read_text() for path in files)


def uses() -> list[list[str]]:
    """The words of each `mesos-py COMMAND ...` on the page, without comments."""
    lines = [*SPANS, *"".join(BLOCKS).splitlines()]
    found = [re.sub(r"^.*run --rm client ", "mesos-py ", line) for line in lines]
    return [shlex.split(line, comments=True) for line in found if line.startswith("mesos-py ")]


def command(name: str) -> click.Command:
    (found,) = entry_points(group=GROUP, name=name)
    loaded: click.Command = found.load()
    return loaded


def test_its_log_messages_are_said(code):
    messages = [span for span in SPANS if span.startswith('"')]
    assert len(messages) > 5
    assert [each for each in messages if f"({each}" not in code and f" {each}" not in code] == []


def test_its_metrics_are_counted(code):
    names = [span for span in SPANS if re.fullmatch(r"mesos_py_master_\w+", span)]
    assert names
    stems = [n.removeprefix("mesos_py_master_").removesuffix("_total") for n in names]
    assert [stem for stem in stems if f'"{stem}' not in code] == []


def test_its_commands_and_their_options_are_there():
    assert len(uses()) > 10
    for words in uses():
        if words[1].startswith("--"):
            continue
        known = {text for each in command(words[1]).params for text in each.opts}
        # What follows `--`, or the first word of what is run, is not ours.
        asked = {word for word in words[2:] if word.startswith("--")}
        assert asked <= known, words


def test_its_flags_are_declared():
    known = {f"--{flag.name}" for cls in (MasterFlags, AgentFlags) for flag in flags_of(cls)}
    commands = {
        text
        for words in uses()
        if not words[1].startswith("--")
        for each in command(words[1]).params
        for text in each.opts
    }
    # Of a line that is somebody else's program all is theirs.
    asked = {span.split()[0].split("=")[0] for span in SPANS if span.startswith("--")}
    assert asked <= known | commands
