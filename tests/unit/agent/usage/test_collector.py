"""The collector: isolators first, processes for what they do not know, once for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from agent.usage import collector as collecting
from agent.usage.collector import UsageCollector
from mesos_py.clock import ManualClock
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor

CGROUPS = {"cpu_user_seconds": 1.0, "cpu_system_seconds": 2.0, "memory_rss_bytes": 3, "pids": 4}


class Source:
    """Isolators: what they know by container, or an error; `None`: no answer."""

    def __init__(self) -> None:
        self.numbers: dict[str, Any] = {}
        self.asked: list[str] = []

    async def usage(self, container_id: str) -> Any:
        self.asked.append(container_id)
        found = self.numbers.get(container_id, {})
        if found is None:
            await asyncio.Event().wait()
        if isinstance(found, Exception):
            raise found
        return found


class Scene:
    def __init__(self) -> None:
        self.world = AgentWorld()
        self.source = Source()
        self.collector = UsageCollector(self.world.core.state, self.source.usage, ManualClock())
        self.sampled: list[dict[str, int]] = []
        self.collector._sample = self.sample

    def sample(self, leaders: Mapping[str, int]) -> dict[str, dict[str, float]]:
        self.sampled.append(dict(leaders))
        return {cid: {"pids": 1, "memory_bytes": 9} for cid in leaders}

    def run(self, task_id: str, pid: int) -> str:
        self.world.run(command(task_id))
        self.world.started(task_id, pid)
        return self.world.container(task_id)

    async def collect(self) -> dict[str, Any]:
        found = await self.collector.collect()
        return {each.executor_id.value: each for each in found}


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    await made.collector.close()


async def test_what_isolators_count_is_not_looked_for_among_processes(scene):
    scene.source.numbers[scene.run("counted", 7)] = CGROUPS
    plain = scene.run("plain", 8)
    found = await scene.collect()
    assert scene.sampled == [{plain: 8}]
    assert found["counted"].resource_statistics.processes == 4
    assert not found["counted"].resource_statistics.HasField("mem_total_bytes")
    assert found["plain"].resource_statistics.mem_total_bytes == 9


async def test_an_isolator_that_counts_some_things_is_added_to_and_counts_first(scene):
    container = scene.run("t", 7)
    scene.source.numbers[container] = {"pids": 5, "disk_bytes": 6}
    found = await scene.collect()
    statistics = found["t"].resource_statistics
    assert (statistics.processes, statistics.disk_used_bytes) == (5, 6)
    assert statistics.mem_total_bytes == 9


async def test_what_is_not_started_yet_is_listed_without_numbers(scene):
    scene.world.run(command("t"))
    found = await scene.collect()
    assert not found["t"].HasField("resource_statistics")
    assert scene.sampled == []


async def test_who_asks_meanwhile_gets_the_same_answer(scene):
    scene.run("t", 7)
    first, second = await asyncio.gather(scene.collector.collect(), scene.collector.collect())
    assert first is second
    assert len(scene.source.asked) == 1
    await scene.collector.collect()
    assert len(scene.source.asked) == 2


async def test_an_isolator_that_fails_or_hangs_hides_no_other_number(scene, monkeypatch):
    monkeypatch.setattr(collecting, "ISOLATORS_S", 0.01)
    slow, broken = scene.run("slow", 7), scene.run("broken", 8)
    scene.source.numbers = {slow: None, broken: RuntimeError("no such group")}
    found = await scene.collect()
    assert {name: each.resource_statistics.processes for name, each in found.items()} == {
        "slow": 1,
        "broken": 1,
    }
    await scene.collect()
    assert scene.source.asked.count(slow) == 1  # not asked again while it has not answered


async def test_who_gives_up_waiting_spoils_it_for_nobody(scene):
    scene.run("t", 7)
    waiting = asyncio.create_task(scene.collector.collect())
    await asyncio.sleep(0)
    waiting.cancel()
    assert len(await scene.collector.collect()) == 1


async def test_a_custom_executors_container_is_that_of_its_tasks(scene):
    scene.world.run(for_executor("t1", executor_info("x")), for_executor("t2", executor_info("x")))
    scene.world.started("x", 5)
    container = (await scene.collect())["x"]
    assert container.custom_executor
    assert [each.value for each in container.task_ids] == ["t1", "t2"]
    assert container.container_status.executor_pid == 5
    (cpus,) = [each.scalar.value for each in container.resources if each.name == "cpus"]
    assert cpus == 2.5  # its own and theirs
