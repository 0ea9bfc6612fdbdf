"""Followers of files whose task is not there yet."""

import asyncio

import pytest

from agent.api import files
from agent.api.files import ON_ITS_WAY_LOOKS, FileService
from agent.core.records import Place
from agent.sandboxes.logfile import Cuts
from agent.sandboxes.removals import Removals
from mesos_py.errors import NotFound
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb

SANDBOX = ("agents", "A1", "frameworks", "F", "executors", "t", "runs", "c1")
REQUEST = agent_pb2.ReadLogRequest(
    framework_id=pb.FrameworkID(value="F"),
    task_id=pb.TaskID(value="t"),
    path="stdout",
    follow=True,
)


@pytest.fixture
async def stalls(monkeypatch):
    """Between two looks the whole machine stands still for a minute."""
    loop = asyncio.get_running_loop()
    began, looks = loop.time(), []

    async def stood_still(changed, timeout_s):
        looks.append(timeout_s)
        await asyncio.sleep(0)

    monkeypatch.setattr(files, "_changed", stood_still)
    monkeypatch.setattr(loop, "time", lambda: began + 60 * len(looks))
    return looks


def service(tmp_path, find):
    removals = Removals(tmp_path / "removed")
    return FileService(str(tmp_path), lambda: "A1", find, removals, lambda *_: Cuts())


async def read(made):
    return b"".join([chunk.data async for chunk in made._read(REQUEST)])


@pytest.mark.parametrize("late", [1, 3])
async def test_a_task_that_is_on_its_way_is_waited_for_also_while_nothing_moves(
    tmp_path, stalls, late
):
    sandbox = tmp_path.joinpath(*SANDBOX)
    ended = Place(SANDBOX, started=True, ended=True)

    def find(_):
        if len(stalls) < late:
            return None
        sandbox.mkdir(parents=True, exist_ok=True)
        (sandbox / "stdout").write_text("x")
        return ended

    assert await read(service(tmp_path, find)) == b"x"


async def test_one_that_never_comes_is_given_up(tmp_path, stalls):
    with pytest.raises(NotFound):
        await read(service(tmp_path, lambda _: None))
    assert len(stalls) == ON_ITS_WAY_LOOKS - 1
