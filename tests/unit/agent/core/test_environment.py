"""Durations as Mesos writes them; the variables that name a task's own ports."""

import pytest

from agent.core.environment import NUMBERED_PORTS, duration_text, of_ports
from mesos_py.resources import Resources
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5, "5secs"),
        (0, "0ns"),
        (90, "90secs"),
        (1.5, "1500ms"),
        (5400, "90mins"),
        (864_000, "10days"),
        (0.001234567, "1.234567ms"),
        (1234.567890123, "20.57613150205mins"),
        (1.000000001, "1.000000001secs"),
        (60, "1mins"),
        (0.25, "250ms"),
        (0.0000015, "1500ns"),
        (1e-9, "1ns"),
        (3600, "1hrs"),
        (86400, "1days"),
        (1209600, "2weeks"),
    ],
)
def test_durations_are_written_as_mesos_does(seconds, text):
    assert duration_text(seconds) == text


def ports(*pairs):
    return Resources.of(cpus=1, ports=pairs).to_proto()


def test_a_task_without_ports_is_told_of_none():
    assert of_ports(Resources.of(cpus=1).to_proto()) == {}


def test_a_task_is_told_its_ports_in_rising_order():
    assert of_ports(ports((31005, 31005), (31000, 31001))) == {
        "MESOS_PORTS": "31000,31001,31005",
        "PORTS": "31000,31001,31005",
        "PORT": "31000",
        "PORT0": "31000",
        "PORT1": "31001",
        "PORT2": "31005",
    }


def test_thousand_ports_are_listed_one_by_one_but_not_each_has_a_variable():
    told = of_ports(ports((31000, 31999)))
    assert len(told["MESOS_PORTS"].split(",")) == 1000
    assert f"PORT{NUMBERED_PORTS - 1}" in told
    assert f"PORT{NUMBERED_PORTS}" not in told


def test_more_ports_than_fit_a_variable_are_told_as_ranges():
    told = of_ports(ports((1, 1), (3, 65535)))
    assert told["MESOS_PORTS"] == "1,3-65535"
    assert (told["PORT0"], told["PORT1"]) == ("1", "3")


def test_a_command_finds_its_ports_in_its_environment_and_may_set_others():
    world = AgentWorld()
    task = command("t")
    del task.resources[:]
    task.resources.extend(ports((31000, 31000)))
    task.command.environment.variables.add(name="PORT", value="80")
    world.run(task)
    spec = world.specs()[0]
    assert spec.environment["MESOS_PORTS"] == "31000"
    assert (spec.environment["PORT"], spec.command_environment["PORT"]) == ("31000", "80")


def test_an_executor_is_told_its_own_ports_and_not_those_of_its_tasks():
    world = AgentWorld()
    info = executor_info("e")
    info.resources.extend(ports((31000, 31000)))
    task = for_executor("t", info)
    task.resources.extend(ports((31001, 31001)))
    world.run(task)
    assert world.specs()[0].environment["MESOS_PORTS"] == "31000"
