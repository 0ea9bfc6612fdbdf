"""The units for systemd say what they must, so that tasks outlive their agent."""

import configparser
import re
from pathlib import Path

import pytest

from agent.flags import ENV_PREFIX as AGENT_PREFIX
from agent.flags import AgentFlags
from master.flags import ENV_PREFIX as MASTER_PREFIX
from mesos_py.cli.exits import of_error
from mesos_py.config import flags_of
from mesos_py.errors import Conflict, InvalidValue, PortInUse

UNITS = Path(__file__).parents[3] / "deploy" / "systemd"
PREFIXES = {"master": MASTER_PREFIX, "agent": AGENT_PREFIX}


def unit(daemon: str) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string((UNITS / f"mesos-py-{daemon}.service").read_text())
    return parsed


@pytest.mark.parametrize("daemon", PREFIXES)
def test_it_runs_the_daemon_with_its_flags(daemon):
    service = unit(daemon)["Service"]
    assert service["ExecStart"].split()[1:] == [daemon]
    text = (UNITS / f"mesos-py-{daemon}.service").read_text()
    assert f"Environment={PREFIXES[daemon]}CONFIG=/etc/mesos-py/{daemon}.conf\n" in text
    # The dash: there need not be such a file.
    assert service["EnvironmentFile"] == f"-/etc/default/mesos-py-{daemon}"
    # Where the example of the configuration has the work directory.
    assert service["StateDirectory"] == f"mesos-py/{daemon}"


@pytest.mark.parametrize("daemon", PREFIXES)
def test_it_is_started_again_for_ever_but_not_with_a_wrong_flag(daemon):
    parsed = unit(daemon)
    assert parsed["Service"]["Restart"] == "always"
    assert parsed["Unit"]["StartLimitIntervalSec"] == "0"
    prevented = {int(code) for code in parsed["Service"]["RestartPreventExitStatus"].split()}
    assert of_error(InvalidValue("port", "x", "is no port")) in prevented
    # What another process holds, it may give back.
    assert of_error(PortInUse("taken", ip="127.0.0.1", port=5050)) not in prevented
    assert of_error(Conflict("taken", field="work-dir", value="/", pid="1")) not in prevented


def test_the_end_of_the_agent_is_not_that_of_its_tasks():
    service = unit("agent")["Service"]
    assert service["KillMode"] == "process"
    assert service["Delegate"] == "yes"
    assert service["TasksMax"] == "infinity"
    # Beneath the top: beneath the unit's own group tasks would keep systemd from starting it again.
    assert service["Environment"] == "MESOS_PY_AGENT_CGROUPS_ROOT=/mesos_py"
    # A namespace of mounts, users or devices of its own would be that of the tasks, too.
    assert not [key for key in service if re.match("Protect|Private|Restrict|NoNew|User", key)]


def test_there_is_time_for_a_polite_end():
    (grace,) = (f for f in flags_of(AgentFlags) if f.name == "executor-shutdown-grace-period")
    assert grace.default is not None
    assert int(unit("agent")["Service"]["TimeoutStopSec"]) > 2 * grace.default


def test_nothing_is_never_killed():
    """-1000 would make a control group that is out of memory hang."""
    for daemon in PREFIXES:
        assert -1000 < int(unit(daemon)["Service"]["OOMScoreAdjust"]) < 0


def test_the_master_has_no_rights():
    service = unit("master")["Service"]
    assert service["User"] == "mesos-py"
    assert service["CapabilityBoundingSet"] == ""
    assert service["ProtectSystem"] == "strict"
