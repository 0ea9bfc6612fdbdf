"""The example configuration files are true: their flags exist and have those defaults."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent.flags import AgentFlags
from master.flags import MasterFlags
from mesos_py.config import flags_of, load

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples"
DAEMONS = {"master": MasterFlags, "agent": AgentFlags}
# "#port = 5050" says the default; "# e.g. port = 80" is an example; "# port ..." is prose.
DEFAULT = re.compile(r"^#([a-z][a-z-]* = .+)$", re.MULTILINE)
EXAMPLE = re.compile(r"^# e\.g\. (.+)$", re.MULTILINE)


def text_of(daemon: str) -> str:
    return (EXAMPLES / f"{daemon}.conf").read_text()


def loaded(daemon: str, lines: str) -> Any:
    """The flags from these lines of the file, and from nothing else."""
    required = {f.name: "somewhere:1" for f in flags_of(DAEMONS[daemon]) if f.required}
    given = tomllib.loads(lines)
    environ = {
        f"MESOS_PY_{daemon.upper()}_{name.upper().replace('-', '_')}": value
        for name, value in required.items()
        if name not in given
    }
    text = f"[{daemon}]\n{lines}"
    return load(DAEMONS[daemon], f"MESOS_PY_{daemon.upper()}_", environ=environ, config_text=text)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_the_file_can_be_used_as_it_is(daemon):
    load(DAEMONS[daemon], f"MESOS_PY_{daemon.upper()}_", config_text=text_of(daemon))


@pytest.mark.parametrize("daemon", DAEMONS)
def test_what_is_commented_out_is_the_default(daemon):
    declared = {each.name: each for each in flags_of(DAEMONS[daemon])}
    lines = DEFAULT.findall(text_of(daemon))
    assert len(lines) > 5
    for line in lines:
        (name,) = tomllib.loads(line)
        flag = declared[name]
        assert not flag.required, line
        assert getattr(loaded(daemon, line), flag.field) == flag.default, line


@pytest.mark.parametrize("daemon", DAEMONS)
def test_examples_can_be_used(daemon):
    lines = EXAMPLE.findall(text_of(daemon))
    assert lines
    for line in lines:
        loaded(daemon, line)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_every_line_is_one_of_these(daemon):
    """A comment that looks like a setting, and would be checked as none of them, is a slip."""
    for line in text_of(daemon).splitlines():
        if re.match(r"#\s*[a-z][a-z-]* = ", line):
            assert DEFAULT.match(line), line
