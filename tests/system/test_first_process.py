"""The agent as process 1, as in a container without an init: nobody else reaps orphans."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_master import AgentProcess, FakeMaster, children_of, eventually, until_gone

pytestmark = pytest.mark.needs("root", "unshare")

TASKS = 200
# Half of them leave a grandchild in a session of its own, which outlives them for a moment.
STRAY = "(setsid sh -c 'sleep 0.05; (exec -a stray sleep 0.05) &' &) ; exit 0"


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


def zombies_below(pid: int) -> list[int]:
    found = []
    for child in children_of(pid):
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
            found += [child] if state == "Z" else zombies_below(child)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended, and been reaped
    return found


def number_within(pid: int) -> int:
    """What the process is called in its own namespace."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("NSpid")).split()[-1])


async def test_an_agent_that_is_process_1_leaves_no_zombies(master, tmp_path):
    # The signal goes to unshare, which has it passed on to the agent.
    wrapper = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGTERM"]
    agent = AgentProcess(master.address, tmp_path / "agent", wrapper=wrapper)
    await eventually(lambda: children_of(agent.pid))
    [inner] = children_of(agent.pid)
    try:
        await master.registered()
        assert number_within(inner) == 1
        names = [f"t{number}" for number in range(TASKS)]
        for start in range(0, TASKS, 8):
            batch = names[start : start + 8]
            commands = [STRAY if n % 2 else "true" for n, _ in enumerate(batch)]
            master.run(*[command(t, c, cpus=0.5) for t, c in zip(batch, commands, strict=True)])
            for task_id in batch:
                await master.status(task_id, pb.TASK_FINISHED)
        await eventually(lambda: zombies_below(agent.pid) == [])
        # The warden, and nothing of a task.
        await eventually(lambda: len(children_of(inner)) == 1)
        [warden] = children_of(inner)
        await eventually(lambda: children_of(warden) == [])
    finally:
        agent.process.kill()
        await agent.ended()
        await until_gone(inner)
    log = agent.log.read_text()
    assert "Traceback" not in log, log
