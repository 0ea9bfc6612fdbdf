"""Command probes: what the warden is asked, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from agent.checks.command import CommandProbes
from agent.containers.spawn import StartRequest
from agent.core.health import Outcome
from mesos_py.tasks import health_command, health_tcp
from mesos_py.v1 import types_pb2 as pb

COMMAND = pb.CommandInfo(value="test -f up")


def base() -> StartRequest:
    return StartRequest(
        id="c",
        exe="/bin/sh",
        argv=["sh", "-c", "serve"],
        env={"PATH": "/bin", "MESOS_CONTAINER_ID": "c", "A": "1"},
        sandbox=["agents", "c"],
        owner=(7, 7),
        user=(7, 7, []),
        enter=["/cg/procs"],
        namespaces=["/ns/net"],
        rlimits=[(1, 2, 3)],
    )


class Scene:
    def __init__(self, *, known: bool = True) -> None:
        self.sent: list[list[Any]] = []
        self.ended: list[tuple[int, Outcome]] = []
        self.probes = CommandProbes(
            self.sent.append,
            lambda container, kind, number, outcome: self.ended.append((number, outcome)),
        )
        if known:
            task = pb.TaskInfo(health_check=health_command("true"))
            self.probes.about_to_start(base(), [task])

    def probe(self, number: int = 1, timeout_s: float = 20, **command: Any) -> None:
        asked = pb.CommandInfo(**command) if command else COMMAND
        self.probes.probe("c", "health", number, asked, timeout_s)

    def outcome(self, *detail: Any) -> Outcome:
        """Of a probe with this answer."""
        self.probe()
        self.probes.heard("probed", "c.health", list(detail))
        return self.ended[-1][1]


def test_a_probe_is_started_as_its_container_was_with_a_mark_of_its_own():
    scene = Scene()
    given = pb.Environment.Variable(name="A", value="2")
    scene.probe(value="look", environment=pb.Environment(variables=[given]))
    ((what, request, (container, limit_s)),) = scene.sent
    assert (what, container, limit_s) == ("probe", "c", 25)
    like = base()
    for same in ("sandbox", "owner", "user", "enter", "namespaces", "rlimits"):
        assert request[same] == like[same]
    assert (request["id"], request["argv"]) == ("c.health", ["sh", "-c", "look"])
    assert request["env"] == {"PATH": "/bin", "A": "2", "MESOS_CONTAINER_ID": "c.health"}


def test_a_probe_without_a_time_has_none_at_the_warden_either():
    scene = Scene()
    scene.probe(timeout_s=0)
    assert scene.sent[0][2] == ["c", 0.0]


@pytest.mark.parametrize(
    ("detail", "good", "value", "text"),
    [
        ((0, "fine\n", ""), True, 0, "the command exited with status 0"),
        ((256, "a\nno disk \x1b[1m\n\n", ""), False, 1, "exited with status 1: no disk  [1m"),
        ((9, "", "it took too long"), False, None, "signal SIGKILL, since it took too long"),
        ((None, "", "no such file"), False, None, "it could not be run: no such file"),
    ],
)
def test_what_an_answer_means(detail, good, value, text):
    outcome = Scene().outcome(*detail)
    assert (outcome.good, outcome.value) == (good, value)
    assert text in outcome.text


def test_what_was_not_even_tried_says_nothing():
    scene = Scene()
    scene.probe()
    scene.probes.heard("unprobed", "c.health", "OSError: Too many open files")
    assert scene.ended == [(1, Outcome(None, None, "OSError: Too many open files"))]


def test_the_next_waits_until_the_one_that_was_stopped_is_gone():
    scene = Scene()
    scene.probe(1)
    scene.probes.stop_probe("c", "health")
    scene.probes.stop_probe("c", "health")
    scene.probe(2)
    assert [message[0] for message in scene.sent] == ["probe", "signal"]
    scene.probes.heard("probed", "c.health", [9, "", ""])
    assert [message[0] for message in scene.sent] == ["probe", "signal", "probe"]
    assert scene.ended == []  # nobody wants to know of the first
    scene.probes.heard("probed", "c.health", [0, "", ""])
    assert [number for number, _ in scene.ended] == [2]


def test_what_was_to_follow_is_given_up_with_it():
    scene = Scene()
    scene.probe(1)
    scene.probes.stop_probe("c", "health")
    scene.probe(2)
    scene.probes.stop_probe("c", "health")
    scene.probes.heard("probed", "c.health", [9, "", ""])
    assert [message[0] for message in scene.sent] == ["probe", "signal"]


@pytest.mark.parametrize(("stopped", "told"), [(False, [1]), (True, [])])
def test_with_the_warden_its_probes_are_lost(stopped, told):
    scene = Scene()
    scene.probe(1)
    scene.probes.heard("probing", "c.health", 77)
    if stopped:
        scene.probes.stop_probe("c", "health")
    taken: list[tuple[str, int]] = []
    scene.probes.lost(lambda probe, pid: taken.append((probe, pid)))
    assert taken == [("c.health", 77)]
    assert [number for number, outcome in scene.ended if outcome.good is None] == told
    scene.probe(2)
    assert scene.sent[-1][0] == "probe"


def test_the_one_that_waited_for_its_turn_is_lost_too():
    scene = Scene()
    scene.probe(1)
    scene.probes.stop_probe("c", "health")
    scene.probe(2)
    scene.probes.lost(lambda probe, pid: None)
    assert [number for number, _ in scene.ended] == [2]


def test_after_a_restart_the_warden_is_asked_to_remember():
    scene = Scene(known=False)
    scene.probe()
    request = scene.sent[0][1]
    assert request["sandbox"] == []
    assert request["env"] == {"MESOS_CONTAINER_ID": "c.health"}


def test_only_what_is_checked_by_commands_is_remembered():
    scene = Scene(known=False)
    plain, tcp = base(), base()
    scene.probes.about_to_start(plain, [pb.TaskInfo()])
    scene.probes.about_to_start(tcp, [pb.TaskInfo(health_check=health_tcp(1))])
    assert "probed" not in plain
    assert "probed" not in tcp
    checked = base()
    task = pb.TaskInfo()
    task.check.command.command.value = "true"
    scene.probes.about_to_start(checked, [pb.ExecutorInfo(), task])
    assert checked["probed"]
    scene.probes.forget("c")
    scene.probe()
    assert scene.sent[0][1]["sandbox"] == []
