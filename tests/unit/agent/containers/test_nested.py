"""Containers within others: started once, ended with what they are in, bounded, forgotten."""

from __future__ import annotations

import asyncio
import io
import signal
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.containers import nested
from agent.containers.session import Session
from agent.containers.users import User
from agent.core.effects import Signal
from agent.core.nested import MAX_DEPTH, Allowed, Size
from agent.core.records import Exit
from agent.sandboxes.erasing import Trash
from mesos_py.errors import Conflict, InvalidValue, NotFound, Refused
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.nested import WANTED, NestedScene

WITHIN_S = 60
KILL, TERM = int(signal.SIGKILL), int(signal.SIGTERM)


@pytest.fixture
async def scene() -> AsyncIterator[NestedScene]:
    made = NestedScene()
    yield made
    made.host.close()


async def over(scene: NestedScene, *names: str) -> Exit:
    async with asyncio.timeout(WITHIN_S):
        return await scene.nested.wait(scene.id(*names))


async def asked(scene: NestedScene) -> None:
    """Until the warden is to start the next one."""
    async with asyncio.timeout(WITHIN_S):
        await scene.host.asked.wait()


async def test_it_is_started_in_its_container_with_a_directory_of_its_own(scene):
    assert await scene.launch("a")
    what, request, (container_id, stdio) = scene.host.request()
    assert (what, container_id, stdio) == ("within", scene.outermost, None)
    assert (request["id"], request["exe"]) == (scene.mark("a"), "/bin/sh")
    sandbox = scene.world.specs()[-1].sandbox
    assert request["sandbox"] == [*sandbox, "containers", "a"]
    assert request["env"]["MESOS_SANDBOX"].endswith("/c1/containers/a")
    assert request["env"]["OWN"] == "1"
    (shown,) = scene.nested.shown()
    assert shown.container_id == pb.ContainerID(value="a")
    assert shown.container_status.container_id == scene.id("a")
    assert shown.container_status.executor_pid == 1000


async def test_a_session_looks_into_the_other_container(scene):
    session = await scene.nested.open_session(scene.id("s"), WANTED)
    assert session is scene.nested.session(scene.id("s"))
    _, request, (_, stdio) = scene.host.request()
    assert len(stdio) == 3
    assert request["sandbox"] == list(scene.world.specs()[-1].sandbox)
    assert request["env"]["MESOS_TASK_ID"] == "t1"
    assert await scene.nested.open_session(scene.id("s"), WANTED) is None
    scene.nested.end_session(scene.id("s"), session)
    assert scene.host.signals() == [(scene.mark("s"), KILL)]
    assert not session.closed.done()
    scene.ended("s", status=9)
    assert session.closed.done()
    with pytest.raises(NotFound, match="has ended already"):
        scene.nested.session(scene.id("s"))


async def test_nothing_is_launched_within_a_session(scene):
    session = await scene.nested.open_session(scene.id("s"), WANTED)
    with pytest.raises(InvalidValue, match=r"'c1\.s': is a session"):
        await scene.launch("s", "a")
    with pytest.raises(InvalidValue, match=r"'c1\.s': is a session"):
        await scene.nested.open_session(scene.id("s", "a"), WANTED)
    assert scene.shown() == ["s"]
    scene.nested.end_session(scene.id("s"), session)


async def test_a_session_with_a_terminal_is_started_with_that(scene):
    scene.host.silent = True
    with_terminal = replace(WANTED, terminal=(0, 0))
    opening = asyncio.create_task(scene.nested.open_session(scene.id("s"), with_terminal))
    await asked(scene)
    _, request, (_, stdio) = scene.host.request()
    assert request["terminal"]
    assert len(set(stdio)) == 1
    scene.host.answer(scene.mark("s"))
    session = await opening
    scene.nested.end_session(scene.id("s"), session)
    scene.ended("s", status=9)
    assert session.closed.done()


async def test_what_is_no_session_is_none(scene):
    await scene.launch("a")
    for names in ((), ("a",)):
        with pytest.raises(InvalidValue, match="is no session"):
            scene.nested.session(scene.id(*names))
    for unknown in (scene.id("b"), pb.ContainerID(value="c9")):
        with pytest.raises(NotFound):
            scene.nested.session(unknown)


async def test_a_session_whose_client_goes_while_it_is_started_is_ended(scene):
    scene.host.silent = True
    opening = asyncio.create_task(scene.nested.open_session(scene.id("s"), WANTED))
    await asked(scene)
    opening.cancel()
    await asyncio.wait([opening])
    # As long as the warden may open them they are nobody else's.
    _, _, (_, stdio) = scene.host.request()
    for path in stdio:
        io.FileIO(path, "r" if path == stdio[0] else "w").close()
    scene.host.answer(scene.mark("s"))
    async with asyncio.timeout(WITHIN_S):
        await scene.host.signalled.wait()
    assert scene.host.signals() == [(scene.mark("s"), KILL)]
    scene.ended("s", status=9)


async def test_a_session_that_cannot_be_started_leaves_nothing_open(scene):
    scene.host.refusal = "no"
    for names in (("s",), ("m", "s")):
        with pytest.raises(InvalidValue):
            await scene.nested.open_session(scene.id(*names), WANTED)


async def test_a_session_that_may_not_be_named_so_leaves_nothing_open(scene, monkeypatch):
    made: list[Session] = []

    def kept(terminal: Size | None) -> Session:
        made.append(Session(terminal))
        return made[-1]

    monkeypatch.setattr(nested, "Session", kept)
    deep = [f"n{number}" for number in range(MAX_DEPTH)]
    for names in (deep, ["no name"]):
        with pytest.raises(InvalidValue):
            await scene.nested.open_session(scene.id(*names), WANTED)
    assert not any(each._theirs or not each.closed.done() for each in made)


async def test_while_it_runs_it_is_not_started_again_and_afterwards_it_is(scene):
    assert await scene.launch("a")
    assert not await scene.launch("a")
    scene.ended("a", status=3 << 8)
    assert await over(scene, "a") == Exit(3 << 8)
    assert await scene.launch("a")
    assert scene.shown() == ["a"]


async def test_what_it_would_be_in_must_be_there(scene):
    with pytest.raises(InvalidValue, match=r"c1.m': does not exist"):
        await scene.launch("m", "z")
    unknown = pb.ContainerID(value="a", parent=pb.ContainerID(value="c9"))
    with pytest.raises(InvalidValue, match=r"^container_id.parent: 'c9': does not exist"):
        await scene.nested.launch(unknown, WANTED)
    scene.world.run(command("t2"))
    waits = pb.ContainerID(value="a", parent=pb.ContainerID(value=scene.world.container("t2")))
    with pytest.raises(InvalidValue, match="has not started yet"):
        await scene.nested.launch(waits, WANTED)
    scene.world.core.state.containers["docker"] = scene.world.core.state.containers["c1"]
    docker = pb.ContainerID(value="a", parent=pb.ContainerID(value="docker"))
    with pytest.raises(InvalidValue, match="is dockerd's"):
        await scene.nested.launch(docker, WANTED)
    assert scene.host.sent == []


async def test_nothing_is_launched_within_what_has_ended_and_waits_for_the_others(scene):
    await scene.launch("m")
    await scene.launch("m", "z")
    scene.ended("m", status=9)
    with pytest.raises(InvalidValue, match=r"^container_id.parent: 'c1.m': is ending"):
        await scene.launch("m", "y")
    scene.ended("m", "z", status=9)
    assert await over(scene, "m") == Exit(9)


async def test_nothing_is_launched_within_what_may_yet_fail_to_start(scene):
    scene.host.silent = True
    launching = asyncio.create_task(scene.launch("m"))
    await asked(scene)
    with pytest.raises(InvalidValue, match=r"^container_id.parent: 'c1.m': has not started yet"):
        await scene.launch("m", "z")
    scene.host.within.heard("probed", scene.mark("m"), [None, "", "no such file"])
    with pytest.raises(InvalidValue, match="no such file"):
        await launching
    assert len([each for each in scene.host.sent if each[0] == "within"]) == 1


async def test_whoever_asks_can_name_no_directory_but_its_own(tmp_path: Path):
    scene = NestedScene(tmp_path)
    sandbox = tmp_path.joinpath(*scene.world.specs()[-1].sandbox)
    victim = tmp_path / "elsewhere" / "victim"
    victim.mkdir(parents=True)
    (sandbox / "containers").mkdir(parents=True)
    (sandbox / "containers" / ("a" * 198)).symlink_to(victim.parent)
    for name in ("a" * 198 + "/victim", "..", "a.b"):
        with pytest.raises(InvalidValue, match=r"^container_id.value: .*must be of letters"):
            await scene.nested.remove(scene.id(name))
        with pytest.raises(InvalidValue, match=r"^container_id.value: .*must be of letters"):
            await scene.launch(name)
    assert victim.is_dir()


def known_users(monkeypatch: pytest.MonkeyPatch, scene: NestedScene) -> None:
    """alice and al are names of one account."""
    numbers = {"": 0, "alice": 7, "al": 7, "bob": 8}
    monkeypatch.setattr(
        scene.host.users, "find", lambda name: User(numbers[name], numbers[name], None)
    )


async def test_it_runs_as_the_user_of_what_it_is_in_unless_any_is_allowed(monkeypatch):
    scene = NestedScene()
    known_users(monkeypatch, scene)
    scene.world.core.state.containers["c1"].framework.info.user = "alice"
    for user in ("", "alice", "al"):
        assert await scene.launch(f"as-{user}", wanted=replace(WANTED, user=user))
        assert scene.host.request()[1]["owner"] == (7, 7)
    for names in (("other",), ("as-al", "other")):
        with pytest.raises(InvalidValue, match=r"^command.user: 'bob': must be that of the"):
            await scene.launch(*names, wanted=replace(WANTED, user="bob"))
    scene = NestedScene(allowed=Allowed.ANY_USER)
    known_users(monkeypatch, scene)
    assert await scene.launch("other", wanted=replace(WANTED, user="bob"))
    assert scene.host.request()[1]["owner"] == (8, 8)


async def test_it_can_be_forbidden():
    scene = NestedScene(allowed=Allowed.OFF)
    with pytest.raises(Refused, match=r"launches no containers within others"):
        await scene.launch("a")
    assert scene.host.sent == []


async def test_nothing_is_launched_in_place_of_a_task(scene):
    with pytest.raises(InvalidValue, match=r"^container_id.parent: '': must be there"):
        await scene.launch()
    assert scene.host.sent == []


async def test_what_cannot_be_started_is_said_and_forgotten(scene):
    scene.host.refusal = "cannot run '/no': No such file"
    with pytest.raises(InvalidValue, match=r"c1.a': cannot be launched: cannot run '/no': No such"):
        await scene.launch("a")
    with pytest.raises(NotFound):
        await over(scene, "a")
    scene.host.refusal = None
    with pytest.raises(InvalidValue, match="user 'no such user' does not exist"):
        await scene.launch("a", wanted=replace(WANTED, user="no such user"))
    assert await scene.launch("a")


async def test_signals_reach_it_as_long_as_it_runs(scene):
    await scene.launch("a")
    scene.nested.kill(scene.id("a"), TERM)
    scene.nested.kill(scene.id("a"))
    assert scene.host.signals() == [(scene.mark("a"), TERM), (scene.mark("a"), KILL)]
    for number in (-1, 999):
        with pytest.raises(InvalidValue, match="signal"):
            scene.nested.kill(scene.id("a"), number)
    scene.ended("a", status=9)
    for names in (("a",), ("b",)):
        with pytest.raises(NotFound):
            scene.nested.kill(scene.id(*names))


async def test_a_signal_that_comes_during_the_start_is_sent_after_it(scene):
    scene.host.silent = True
    launching = asyncio.create_task(scene.launch("a"))
    await asked(scene)
    scene.nested.kill(scene.id("a"))
    scene.nested.kill(scene.id("a"), TERM)
    assert scene.host.signals() == []
    scene.host.answer(scene.mark("a"))
    assert await launching
    assert scene.host.signals() == [(scene.mark("a"), KILL)]


async def test_who_goes_away_does_not_keep_it_from_being_started(scene):
    scene.host.silent = True
    launching = asyncio.create_task(scene.launch("a"))
    await asked(scene)
    launching.cancel()
    await asyncio.wait([launching])
    assert not await scene.launch("a")
    scene.host.answer(scene.mark("a"))
    scene.host.within.heard("probing", scene.mark("a"), 7)
    scene.ended("a")
    assert await over(scene, "a") == Exit(0)


async def test_it_ends_after_those_within_it_which_end_with_it(scene):
    await scene.launch("m")
    await scene.launch("m", "z")
    await scene.launch("m", "z", "y")
    scene.ended("m", status=9)
    assert scene.host.signals() == [(scene.mark("m", "z"), KILL), (scene.mark("m", "z", "y"), KILL)]
    waiting = asyncio.create_task(over(scene, "m"))
    scene.ended("m", "z", status=9)
    assert scene.shown() == ["m", "z", "y"]
    scene.ended("m", "z", "y", status=9)
    assert await waiting == Exit(9)
    assert scene.shown() == []


async def test_the_end_of_the_outermost_is_that_of_all(scene):
    await scene.launch("a")
    await scene.launch("b")
    waiting = [asyncio.create_task(over(scene, *names)) for names in ((), ("a",), ("b",))]
    await asyncio.sleep(0)
    scene.ended("a", status=9)
    scene.outermost_ended(15)
    outermost, ended, unknown = await asyncio.gather(*waiting)
    assert (outermost, ended) == (Exit(15), Exit(9))
    assert (unknown.status, unknown.unknown) == (None, "it ended with its container")
    assert scene.host.signals() == [(scene.mark("b"), KILL)]
    # What the warden says afterwards is heard and changes nothing.
    scene.ended("b")
    with pytest.raises(NotFound):
        await over(scene, "a")


async def test_one_that_is_being_started_when_the_outermost_ends_is_not(scene):
    scene.host.silent = True
    launching = asyncio.create_task(scene.launch("a"))
    await asked(scene)
    scene.outermost_ended()
    scene.host.within.heard("unprobed", scene.mark("a"), "its container has ended")
    with pytest.raises(InvalidValue, match="its container has ended"):
        await launching


async def test_the_containers_of_tasks_are_ended_by_kill_and_term_alone(scene):
    scene.nested.kill(scene.id())
    scene.nested.kill(scene.id(), TERM)
    assert scene.host.killed == [("c1", Signal.KILL), ("c1", Signal.TERM)]
    with pytest.raises(InvalidValue, match="must be 15 or 9"):
        scene.nested.kill(scene.id(), int(signal.SIGUSR1))
    for method in (scene.nested.kill, scene.nested.wait, scene.nested.remove):
        with pytest.raises(NotFound):
            await method(pb.ContainerID(value="c9"))
    with pytest.raises(InvalidValue, match="is that of a task or an executor"):
        await scene.nested.remove(scene.id())


async def test_removed_it_is_forgotten_with_its_directory(tmp_path: Path):
    scene = NestedScene(tmp_path)
    await scene.launch("m")
    await scene.launch("m", "z")
    directory = tmp_path.joinpath(*scene.host.request()[1]["sandbox"])
    directory.mkdir(parents=True)
    (directory / "stdout").write_text("out")
    with pytest.raises(Conflict, match=r"c1.m': has not ended yet"):
        await scene.nested.remove(scene.id("m"))
    scene.ended("m")
    scene.ended("m", "z")
    await scene.nested.remove(scene.id("m"))
    assert not directory.parents[1].exists()
    assert directory.parents[2].name == "containers"
    for names in (("m",), ("m", "z")):
        with pytest.raises(NotFound):
            await over(scene, *names)
    await scene.nested.remove(scene.id("m"))
    await scene.nested.remove(scene.id("never"))


async def test_while_it_is_removed_nothing_takes_its_id(tmp_path: Path, monkeypatch):
    scene = NestedScene(tmp_path)
    await scene.launch("a")
    await scene.launch("m")
    for name in ("a", "m"):
        scene.ended(name)
    begun, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def take(*_: object) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert goes_on.wait(WITHIN_S)
        raise PermissionError("not for you")

    monkeypatch.setattr(Trash, "take", take)
    tmp_path.joinpath(*scene.host.request()[1]["sandbox"][:-1]).mkdir(parents=True)
    removing = asyncio.create_task(scene.nested.remove(scene.id("a")))
    try:
        async with asyncio.timeout(WITHIN_S):
            await begun.wait()
        # Whoever asked may go away: the directory is still being removed.
        removing.cancel()
        await asyncio.wait([removing])
        for again in (scene.launch("a"), scene.nested.remove(scene.id("a"))):
            with pytest.raises(Conflict, match=r"c1.a': is being removed"):
                await again
        assert await scene.launch("m")
    finally:
        goes_on.set()
    async with asyncio.timeout(WITHIN_S):
        while scene.nested._starting:
            await asyncio.wait(scene.nested._starting)
    assert await scene.launch("a")


async def test_there_are_bounds(scene, monkeypatch):
    monkeypatch.setattr(nested, "MAX_RUNNING", 2)
    monkeypatch.setattr(nested, "MAX_ENDED", 2)
    for name in ("a", "b"):
        await scene.launch(name)
    with pytest.raises(InvalidValue, match="2 containers run within it"):
        await scene.launch("c")
    for name in ("b", "a"):
        scene.ended(name)
    await scene.launch("c")
    scene.ended("c")
    with pytest.raises(NotFound):
        await over(scene, "b")
    assert await over(scene, "a") == await over(scene, "c") == Exit(0)


async def test_a_warden_that_is_too_old_is_not_asked(scene):
    scene.host.within.possible = False
    with pytest.raises(InvalidValue, match=r"cannot be launched: .* an earlier version of it"):
        await scene.launch("a")
    assert scene.host.sent == []


async def test_with_its_warden_it_is_lost(scene):
    await scene.launch("a")
    scene.host.silent = True
    scene.host.asked.clear()
    launching = asyncio.create_task(scene.launch("b"))
    await asked(scene)
    taken = []
    scene.host.within.lost(lambda mark, pid: taken.append((mark, pid)))
    assert taken == [(scene.mark("a"), 1000), (scene.mark("b"), 0)]
    with pytest.raises(InvalidValue, match="cannot be launched: the process that had started it"):
        await launching
    assert (await over(scene, "a")).status is None
