"""An isolator of somebody else, found by its entry point, at each step of a container."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_master import AgentProcess, FakeMaster, eventually, processes_of, running_agent

PLUGIN = """
import json, pathlib, resource, threading
from agent.isolation.base import Isolator, Limitation, Preparation
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

class Recorder(Isolator):
    def _note(self, *what):
        with open(pathlib.Path(self.facts.work_dir, "calls"), "a") as notes:
            notes.write(json.dumps(what) + "\\n")
    def __init__(self, facts):
        super().__init__(facts)
        self.labels = {}
        self._note("init", facts.agent_id, str(facts.resources))
    def prepare(self, container):
        self.labels[container.container_id] = labels = dict(container.labels)
        made = pathlib.Path(container.sandbox).is_dir()
        self._note("prepare", container.executor_id, str(container.resources), made)
        if labels.get("fail") == "prepare":
            raise RuntimeError("no room in the cgroup")
        return Preparation(environment={"FROM": "isolator", "OVER": "isolator"},
                           rlimits=((resource.RLIMIT_NOFILE, 77, 77),))
    def isolate(self, container_id, pid):
        self._note("isolate", pathlib.Path(f"/proc/{pid}").exists())
        if self.labels[container_id].get("fail") == "isolate":
            raise RuntimeError("cannot hold it")
    def watch(self, container_id, exceeded):
        self._note("watch")
        if self.labels[container_id].get("fail") == "limit":
            exceeded(Limitation(pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY,
                                "used 2 MB of 1 MB", Resources.of(mem=1)))
    def cleanup(self, container_id):
        self._note("cleanup", container_id in self.labels)
"""


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(
    master: FakeMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AgentProcess]:
    plugins = tmp_path / "plugins"
    distribution = plugins / "recorder-1.0.dist-info"
    distribution.mkdir(parents=True)
    (plugins / "recorder.py").write_text(PLUGIN)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: recorder\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text(
        "[mesos_py.isolators]\nrecorder = recorder:Recorder\n"
    )
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(plugins), os.environ.get("PYTHONPATH", "")])
    )
    async with running_agent(master, tmp_path / "agent", "--isolation", "recorder,posix") as made:
        yield made


def calls(agent: AgentProcess) -> list[list[object]]:
    return [json.loads(line) for line in (agent.work_dir / "calls").read_text().splitlines()]


async def until_cleaned(agent: AgentProcess) -> list[list[object]]:
    await eventually(lambda: calls(agent)[-1][0] == "cleanup")
    return calls(agent)


def labelled(name: str, script: str, fail: str) -> pb.TaskInfo:
    return command(name, script, labels=pb.Labels(labels=[pb.Label(key="fail", value=fail)]))


async def test_an_isolator_is_called_in_order_and_what_it_prepares_reaches_the_task(master, agent):
    given = pb.Environment(variables=[pb.Environment.Variable(name="OVER", value="user")])
    info = pb.CommandInfo(value="echo $FROM $OVER; ulimit -n", environment=given)
    master.run(command("t", cpus=0.5, command=info))
    await master.status("t", pb.TASK_FINISHED)
    assert agent.output("t") == "isolator user\n77\n"
    made, *rest = await until_cleaned(agent)
    assert (
        made == ["init", "A1", "cpus:8;mem:1024;disk:1024;ports:[31000-32000]"] or made[1] == "A1"
    )
    assert [each[0] for each in rest] == ["prepare", "isolate", "watch", "cleanup"]
    assert rest[0] == ["prepare", "t", "cpus:0.5", True]


async def test_a_failed_preparation_fails_the_task_with_its_words_and_is_cleaned_up(master, agent):
    master.run(labelled("t", "true", "prepare"))
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.reason == pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert "no room in the cgroup" in failed.message
    assert (await until_cleaned(agent))[-1] == ["cleanup", True]


async def test_a_container_that_cannot_be_isolated_is_killed(master, agent):
    master.run(labelled("t", "sleep 1000", "isolate"))
    failed = await master.status("t", pb.TASK_FAILED)
    assert "cannot hold it" in failed.message
    assert not processes_of("t")


async def test_a_container_over_its_limit_is_killed_for_the_isolators_reason(master, agent):
    master.run(labelled("t", "sleep 1000", "limit"))
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    assert failed.message == "used 2 MB of 1 MB"
    assert failed.limitation.resources[0].name == "mem"
    assert failed.exit_status.signal == 9
    assert not processes_of("t")
