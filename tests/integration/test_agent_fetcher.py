"""URIs of tasks: fetched, shared, refused, stopped; by a real agent from a real server."""

from __future__ import annotations

import hashlib
import io
import signal
import tarfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_master import (
    AgentProcess,
    FakeMaster,
    children_of,
    descriptors_of,
    eventually,
    running_agent,
)
from tests.kit.web import Web

URI = pb.CommandInfo.URI


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with Web() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent") as made:
        yield made


def fetching(task_id: str, *uris: URI, script: str = "true", user: str = "") -> pb.TaskInfo:
    info = pb.CommandInfo(value=script, uris=uris)
    if user:
        info.user = user
    return command(task_id, command=info)


async def failed(master: FakeMaster, task_id: str) -> pb.TaskStatus:
    status = await master.status(task_id, pb.TASK_FAILED)
    assert status.reason == pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert status.source == pb.TaskStatus.SOURCE_AGENT
    return status


def helpers_of(agent: AgentProcess) -> list[Path]:
    """The processes that fetch for the agent."""
    children = [Path(f"/proc/{pid}") for pid in children_of(agent.pid)]
    return [each for each in children if b"agent.fetcher" in (each / "cmdline").read_bytes()]


def tar_of(**files: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


async def test_files_are_there_before_the_command_starts(master, agent, web, tmp_path):
    web.files["/tool"] = b"#!/bin/sh\necho ran $1\n"
    web.files["/pack.tar.gz"] = tar_of(inner=b"from the archive\n")
    (tmp_path / "local.txt").write_text("local\n")
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("deep/zipped", "from the zip\n")
    web.files["/pack.zip"] = zipped.getvalue()
    uris = (
        URI(value=web.uri("/tool"), executable=True),
        URI(value=web.uri("/pack.tar.gz")),
        URI(value=web.uri("/pack.zip"), output_file="kept/as.zip", extract=False),
        URI(value=web.uri("/pack.zip")),
        URI(value=f"file://{tmp_path}/local.txt", output_file="sub/renamed"),
        URI(value=str(tmp_path / "local.txt")),
    )
    script = "./tool it; cat inner deep/zipped sub/renamed local.txt; ls kept pack.tar.gz"
    master.run(fetching("t", *uris, script=script))
    await master.status("t", pb.TASK_FINISHED)
    lines = ["ran it", "from the archive", "from the zip", "local", "local"]
    assert agent.output("t").splitlines() == [*lines, "pack.tar.gz", "", "kept:", "as.zip"]
    log = (agent.sandbox("t") / "stderr").read_text()
    assert f"fetcher: fetched {web.uri('/tool')} (22 bytes in " in log
    assert f"fetcher: unpacked {web.uri('/pack.tar.gz')} (1 entries, 17 bytes)" in log
    assert "fetched container=" in agent.log.read_text()


async def test_a_custom_executors_uris_are_fetched_too(master, agent, web):
    web.files["/who"] = b"#!/bin/sh\ncat who > seen\n"
    executor = pb.ExecutorInfo(
        executor_id=pb.ExecutorID(value="E"),
        type=pb.ExecutorInfo.CUSTOM,
        command=pb.CommandInfo(value="./who", uris=[URI(value=web.uri("/who"), executable=True)]),
    )
    task = command("t")
    task.ClearField("command")
    task.executor.CopyFrom(executor)
    master.run(task)
    await master.status("t", pb.TASK_FAILED)
    assert (agent.sandbox("E") / "seen").read_bytes() == web.files["/who"]


async def test_what_cannot_be_had_fails_the_task_with_uri_and_cause(master, agent, web, tmp_path):
    web.files["/f"] = b"x" * 1000
    web.breaks_after["/f"] = 10
    web.statuses["/auth"] = 403
    web.files["/sum"] = b"content"
    digits = "0" * 64
    right = hashlib.sha256(b"content").hexdigest()
    cases = {
        "missing": (f"file://{tmp_path}/no", f"file://{tmp_path}/no: is not there"),
        "not-found": (web.uri("/none"), "/none: the server answered 404 Not Found"),
        "forbidden": (web.uri("/auth"), "/auth: the server answered 403 Forbidden"),
        "broken": (web.uri("/f"), "/f: broke off: "),
        "directory": (f"file://{tmp_path}", f"file://{tmp_path}: is a directory"),
        "refused": ("http://127.0.0.1:1/x", "http://127.0.0.1:1/x: "),
        "checksum": (
            web.uri("/sum") + f"#sha256={digits}",
            f"/sum: wrong checksum: sha256 is {right}, not {digits}",
        ),
        "scheme": ("gopher://x/y", "cannot fetch gopher://x/y: has no known scheme"),
        "secret": (
            web.uri("/none", "joe:hunter2") + "?sig=hunter3",
            f"cannot fetch {web.uri('/none')}?...: the server answered 404",
        ),
    }
    for task_id, (uri, _) in cases.items():
        master.run(fetching(task_id, URI(value=uri)))
    for task_id, (_, text) in cases.items():
        status = await failed(master, task_id)
        assert text in status.message, task_id
        assert "hunter" not in status.message
    for task_id in ("missing", "not-found", "checksum", "secret", "scheme"):
        sandbox = agent.sandbox(task_id)
        log = (sandbox / "stderr").read_text()
        assert "fetcher: cannot fetch" in log
        # Nothing of what is not whole or not right is left; the output can be read.
        assert {each.name for each in sandbox.iterdir()} == {"stderr", "stdout"}
        assert "hunter" not in log
    assert "hunter" not in agent.log.read_text()
    assert "Basic am9lOmh1bnRlcjI=" in web.authorizations


async def test_a_right_checksum_and_a_redirect_are_fine(master, agent, web):
    web.files["/f"] = b"content"
    web.redirects["/moved"] = web.uri("/f")
    digits = hashlib.sha512(b"content").hexdigest()
    uri = URI(value=f"{web.uri('/moved')}#sha512={digits.upper()}")
    master.run(fetching("t", uri, script="cat moved"))
    await master.status("t", pb.TASK_FINISHED)
    assert agent.output("t") == "content"


async def test_a_server_that_stalls_and_a_fetch_that_takes_too_long(master, web, tmp_path):
    web.files["/f"] = b"x" * 1000
    web.stalls_after["/f"] = 10
    stalling = ("--fetcher-stall-timeout", "300ms")
    async with running_agent(master, tmp_path / "stall", *stalling) as agent:
        master.run(fetching("t", URI(value=web.uri("/f"))))
        status = await failed(master, "t")
        assert status.message == f"cannot fetch {web.uri('/f')}: stalled: nothing came for 300ms"
        await eventually(lambda: len(children_of(agent.pid)) == 1)
    async with running_agent(master, tmp_path / "long", "--fetcher-timeout", "500ms"):
        master.run(fetching("t2", URI(value=web.uri("/f"))))
        status = await failed(master, "t2")
        assert status.message.endswith("/f: took longer than 500ms in all")


async def test_a_kill_while_fetching_stops_it(master, agent, web):
    web.files["/f"] = b"x" * 1000
    web.stalls_after["/f"] = 10
    master.run(fetching("t", URI(value=web.uri("/f"), cache=True)))
    await eventually(lambda: "/f" in web.requests)
    master.kill("t", 5)
    status = await master.status("t", pb.TASK_KILLED)
    assert status.reason == pb.TaskStatus.REASON_TASK_KILLED_DURING_LAUNCH
    # The process that fetched is gone; the warden is left.
    assert len(children_of(agent.pid)) == 1
    # What was fetched in part is not used for the next one.
    del web.stalls_after["/f"]
    master.run(fetching("t2", URI(value=web.uri("/f"), cache=True), script="wc -c < f"))
    await master.status("t2", pb.TASK_FINISHED)
    assert agent.output("t2") == "1000\n"


async def test_an_agent_that_is_killed_leaves_no_process_that_fetches(master, web, tmp_path):
    web.files["/f"] = b"x"
    web.gate.clear()
    async with running_agent(master, tmp_path / "agent") as agent:
        master.run(fetching("t", URI(value=web.uri("/f"))))
        await eventually(lambda: "/f" in web.requests)
        children = children_of(agent.pid)
        assert len(children) == 2
        agent.process.kill()
        await agent.ended()
        await eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_an_agent_that_goes_while_it_fetches_settles_the_task_when_it_is_back(
    master, web, tmp_path, number
):
    web.files["/f"] = b"x"
    web.gate.clear()
    keep = ("--tasks-on-exit", "keep")
    async with running_agent(master, tmp_path / "agent", *keep) as agent:
        master.run(fetching("t", URI(value=web.uri("/f"))))
        await eventually(lambda: "/f" in web.requests)
        [helper] = helpers_of(agent)
        agent.process.send_signal(number)
        await agent.ended()
        await eventually(lambda: not helper.exists())
    async with running_agent(master, tmp_path / "agent"):
        assert "before it was started" in (await failed(master, "t")).message


async def test_cached_files_are_fetched_once_also_at_the_same_time(master, agent, web):
    web.files["/data.tar.gz"] = tar_of(inner=b"cached\n")
    web.gate.clear()
    uri = URI(value=web.uri("/data.tar.gz"), cache=True)
    for number in range(4):
        master.run(fetching(f"t{number}", uri, script="cat inner; ls"))
    await eventually(lambda: len(web.requests) == 1)
    web.gate.set()
    for number in range(4):
        await master.status(f"t{number}", pb.TASK_FINISHED)
        # Mesos: of a cached archive only what is in it appears.
        assert agent.output(f"t{number}").splitlines() == ["cached", "inner", "stderr", "stdout"]
    assert web.requests == ["/data.tar.gz"]
    logs = [(agent.sandbox(f"t{number}") / "stderr").read_text() for number in range(4)]
    # All but the one that came first, whichever that was.
    assert sum("is in the cache" in each for each in logs) == 3


async def test_many_fetches_leave_nothing_open(master, agent, web):
    web.files["/f"] = b"x" * 100_000
    web.files["/bad.zip"] = b"no zip"
    kinds = (
        URI(value=web.uri("/f")),
        URI(value=web.uri("/f"), cache=True),
        URI(value=web.uri("/bad.zip"), cache=True),
        URI(value=web.uri("/none"), cache=True),
    )

    async def all_of(start: int, count: int) -> None:
        ids = [f"t{number}" for number in range(start, start + count)]
        for number, task_id in enumerate(ids):
            master.run(fetching(task_id, kinds[number % len(kinds)]))
        for number, task_id in enumerate(ids):
            wanted = pb.TASK_FINISHED if number % len(kinds) < 2 else pb.TASK_FAILED
            await master.status(task_id, wanted)

    await all_of(0, 4)
    before = descriptors_of(agent.pid)
    await all_of(4, 20)
    assert not helpers_of(agent)
    await eventually(lambda: descriptors_of(agent.pid) <= before)


async def test_a_bad_cached_file_is_not_used_again(master, agent, web):
    web.files["/f"] = b"wrong"
    uri = web.uri("/f") + "#sha256=" + hashlib.sha256(b"right").hexdigest()
    master.run(fetching("t1", URI(value=uri, cache=True)))
    assert "wrong checksum" in (await failed(master, "t1")).message
    web.files["/f"] = b"right"
    master.run(fetching("t2", URI(value=uri, cache=True), script="cat f"))
    await master.status("t2", pb.TASK_FINISHED)
    assert agent.output("t2") == "right"
    # One that somebody has changed in the cache itself is fetched again.
    (cached,) = (agent.work_dir / "fetcher/cache").iterdir()
    cached.write_bytes(b"changed")
    master.run(fetching("t3", URI(value=uri, cache=True), script="cat f"))
    await master.status("t3", pb.TASK_FINISHED)
    assert agent.output("t3") == "right"
    assert web.requests == ["/f"] * 3


async def test_what_does_not_fit_into_the_cache_is_fetched_without_it(master, web, tmp_path):
    web.files["/big"] = b"x" * 5000
    web.files["/unsized"] = b"x" * 5000
    web.chunked.add("/unsized")
    async with running_agent(master, tmp_path / "agent", "--fetcher-cache-size", "4KB") as agent:
        for name in ("big", "unsized"):
            uri = URI(value=web.uri(f"/{name}"), cache=True)
            master.run(fetching(name, uri, script=f"wc -c < {name}"))
            await master.status(name, pb.TASK_FINISHED)
            assert agent.output(name) == "5000\n"
        assert "without the cache" in (agent.sandbox("big") / "stderr").read_text()
        assert not list((agent.work_dir / "fetcher/cache").iterdir())


async def test_more_than_is_allowed_is_refused_fetched_or_unpacked(master, web, tmp_path):
    web.files["/big"] = b"x" * 20_000
    web.files["/bomb.tar.gz"] = tar_of(zeros=bytes(1_000_000))
    assert len(web.files["/bomb.tar.gz"]) < 2_000
    flags = ("--fetcher-max-size", "10KB")
    async with running_agent(master, tmp_path / "agent", *flags) as agent:
        for name in ("big", "bomb.tar.gz"):
            master.run(fetching(name, URI(value=web.uri(f"/{name}"))))
            message = (await failed(master, name)).message
            assert "more than the 10240 bytes that a task may fetch and unpack" in message
        assert sum(f.stat().st_size for f in agent.sandbox("bomb.tar.gz").iterdir()) < 20_000


@pytest.mark.needs("root")
async def test_fetching_has_the_rights_of_the_tasks_user_only(master, agent, web, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("canary")
    secret.chmod(0o600)
    for directory in (tmp_path, *tmp_path.parents):
        if directory != directory.parent and directory.stat().st_mode & 0o5 != 0o5:
            directory.chmod(0o755)
    master.run(fetching("t", URI(value=f"file://{secret}"), user="nobody"))
    assert "may not be read (permission denied)" in (await failed(master, "t")).message
    web.files["/p.tar.gz"] = tar_of(inner=b"")
    uris = [URI(value=web.uri("/p.tar.gz")), URI(value=web.uri("/p.tar.gz"), cache=True)]
    master.run(fetching("t2", *uris, user="nobody", script="stat -c %U inner p.tar.gz . stderr"))
    await master.status("t2", pb.TASK_FINISHED)
    assert agent.output("t2") == "nobody\n" * 4
    # Another user's cached file is not ours.
    asked = len(web.requests)
    master.run(fetching("t3", uris[1]))
    await master.status("t3", pb.TASK_FINISHED)
    assert len(web.requests) == asked + 1


@pytest.mark.needs("root", "unshare", "mount")
async def test_a_full_disk_is_named_as_the_cause(master, web, tmp_path, monkeypatch):
    web.files["/f"] = b"x" * 3_000_000
    # The agent's mounts are its own, and end with it.
    script = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'
    work = tmp_path / "agent"
    work.mkdir()
    wrapped = ["unshare", "-m", "sh", "-c", script, "sh", str(work)]
    async with running_agent(master, work, wrapper=wrapped):
        for task_id, cache in (("t", False), ("t2", True)):
            master.run(fetching(task_id, URI(value=web.uri("/f"), cache=cache)))
            message = (await failed(master, task_id)).message
            assert "the disk of the agent is full (no space left on device)" in message
            assert web.uri("/f") in message


async def test_a_shared_file_that_is_missing_is_missing_for_everybody(master, agent, web):
    web.gate.clear()
    uri = URI(value=web.uri("/none"), cache=True)
    for number in range(3):
        master.run(fetching(f"t{number}", uri))
    await eventually(lambda: web.requests)
    web.gate.set()
    for number in range(3):
        assert "404" in (await failed(master, f"t{number}")).message
