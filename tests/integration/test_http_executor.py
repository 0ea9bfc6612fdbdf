"""The Executor API of the agent, as executors written for Apache Mesos use it: over sockets."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mesos_py.http.media import Media
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, command, executor_info, for_executor
from tests.kit.agent_master import AgentProcess, FakeMaster, eventually, running_agent
from tests.kit.http_executor import JSON, PATH, PROTOBUF, HttpExecutor, uuid_text
from tests.kit.raw_http import connected

MasterEvent = agent_pb2.Event
# A process that is there; the test speaks for it.
SILENT = executor_info(command=pb.CommandInfo(value="echo here; exec sleep 1000"))


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    flags = ("--executor-shutdown-grace-period", "100ms")
    async with running_agent(master, tmp_path / "agent", *flags) as made:
        yield made


@pytest.fixture
async def executor(master: FakeMaster, agent: AgentProcess) -> AsyncIterator[HttpExecutor]:
    async with HttpExecutor(port_of(master)) as made:
        yield made


def port_of(master: FakeMaster) -> int:
    return master.registrations[-1].agent_info.http_port


async def run(master: FakeMaster, agent: AgentProcess, *task_ids: str, **more: Any) -> None:
    """Until the executor's process is there: its agent expects it then."""
    master.run(*(for_executor(task_id, SILENT, **more) for task_id in task_ids))
    await eventually(lambda: agent.output("ex"))


async def test_a_conversation_in_json(master, agent, executor):
    await run(master, agent, "a", data=b"\x00\xff")
    head = await executor.subscribe()
    # Chunked also though the request says that the connection is to be closed.
    assert head.headers["transfer-encoding"] == "chunked"
    assert head.headers["content-type"] == JSON
    assert "mesos-stream-id" not in head.headers
    subscribed = await executor.event("SUBSCRIBED")
    assert subscribed["executor_info"]["executor_id"] == {"value": "ex"}
    assert subscribed["executor_info"]["framework_id"] == {"value": FRAMEWORK}
    assert subscribed["framework_info"]["id"] == {"value": FRAMEWORK}
    assert subscribed["framework_info"]["checkpoint"] is False
    assert subscribed["agent_info"]["id"] == {"value": "A1"}
    assert subscribed["agent_info"]["port"] == executor.port
    assert subscribed["container_id"]["value"] == agent.sandbox("ex").name
    task = (await executor.event("LAUNCH"))["task"]
    assert (task["task_id"], task["data"]) == ({"value": "a"}, "AP8=")

    # With as little as an executor must say; the agent knows the rest.
    status = executor.status("a", "TASK_RUNNING")
    reply = await executor.call("UPDATE", update={"status": status})
    assert (reply.status, reply.headers["content-length"], reply.body) == (202, "0", b"")
    assert "content-type" not in reply.headers
    acknowledged = await executor.event("ACKNOWLEDGED")
    assert acknowledged == {"task_id": {"value": "a"}, "uuid": status["uuid"]}
    running = await master.status("a", pb.TASK_RUNNING)
    assert running.source == pb.TaskStatus.SOURCE_EXECUTOR
    assert (running.agent_id.value, running.executor_id.value) == ("A1", "ex")
    assert running.container_status.container_id.value == agent.sandbox("ex").name
    assert running.timestamp > 0

    order = MasterEvent.ExecutorMessage(
        framework_id=master.framework.id, executor_id=pb.ExecutorID(value="ex"), data=b"hi\n"
    )
    master.send(MasterEvent(type=MasterEvent.EXECUTOR_MESSAGE, executor_message=order))
    assert await executor.event("MESSAGE") == {"data": "aGkK"}
    assert (await executor.call("MESSAGE", message={"data": "eW8="})).status == 202
    said = await master.call(agent_pb2.Call.EXECUTOR_MESSAGE)
    assert said.executor_message.data == b"yo"

    master.kill("a", grace_s=2.5)
    kill = await executor.event("KILL")
    assert kill == {
        "task_id": {"value": "a"},
        "kill_policy": {"grace_period": {"nanoseconds": 2_500_000_000}},
    }
    assert (await executor.update("a", "TASK_KILLED")).status == 202
    await executor.event("ACKNOWLEDGED")
    await master.status("a", pb.TASK_KILLED)

    end = MasterEvent.ShutdownExecutor(
        framework_id=master.framework.id, executor_id=pb.ExecutorID(value="ex")
    )
    master.send(MasterEvent(type=MasterEvent.SHUTDOWN_EXECUTOR, shutdown_executor=end))
    await executor.event("SHUTDOWN")
    await master.call(agent_pb2.Call.EXECUTOR_EXITED)
    assert (await executor.call("MESSAGE", message={"data": ""})).status == 400


async def test_a_group_of_tasks_comes_in_one_event(master, agent, executor):
    here = pb.AgentID(value="A1")
    master.run_group(*(for_executor(name, SILENT, agent_id=here) for name in ("a", "b")))
    await eventually(lambda: agent.output("ex"))
    await executor.subscribe()
    await executor.event("SUBSCRIBED")
    group = (await executor.event("LAUNCH_GROUP"))["task_group"]
    assert [task["task_id"]["value"] for task in group["tasks"]] == ["a", "b"]
    # As one that was started anew would be told again: nothing of it was heard of.
    await executor.hang_up()
    await executor.subscribe(unacknowledged_tasks=group["tasks"][1:])
    await executor.event("SUBSCRIBED")
    (task,) = (await executor.event("LAUNCH_GROUP"))["task_group"]["tasks"]
    assert task["task_id"] == {"value": "a"}


async def test_a_conversation_in_protobuf(master, agent, executor):
    await run(master, agent, "a", agent_id=pb.AgentID(value="A1"))
    call, event = executor_pb2.Call, executor_pb2.Event
    ids = {"framework_id": master.framework.id, "executor_id": pb.ExecutorID(value="ex")}

    async def told() -> executor_pb2.Event:
        return Media.PROTOBUF.loads(event, await executor.record())

    head = await executor.subscribe(accept=PROTOBUF)
    assert head.headers["content-type"] == PROTOBUF
    assert (await told()).subscribed.agent_info.port == executor.port
    assert (await told()).launch.task.task_id.value == "a"
    status = pb.TaskStatus(task_id=pb.TaskID(value="a"), state=pb.TASK_STARTING)
    status.source = pb.TaskStatus.SOURCE_EXECUTOR
    status.uuid = uuid.uuid4().bytes
    body = call(type=call.UPDATE, update=call.Update(status=status), **ids)
    reply = await executor.ask(Media.PROTOBUF.dumps(body), media=PROTOBUF)
    assert (reply.status, reply.body) == (202, b"")
    assert (await told()).acknowledged.uuid == status.uuid
    await master.status("a", pb.TASK_STARTING)


def refusals(executor: HttpExecutor) -> list[tuple[str, dict[str, Any], int, str]]:
    """Requests, as arguments of `ask`; what they are answered."""
    ids, fine = executor.ids, executor.status("a", "TASK_RUNNING")
    heartbeat = {**ids, "type": "HEARTBEAT"}
    subscribe = {**ids, "type": "SUBSCRIBE", "subscribe": {}}

    def update(**status: Any) -> dict[str, Any]:
        made = {**fine, "uuid": uuid_text(), **status}
        return {"body": {**ids, "type": "UPDATE", "update": {"status": made}}}

    def body(given: Any, **more: Any) -> dict[str, Any]:
        return {"body": given, **more}

    x = {"value": "x"}
    return [
        ("get", body(b"", method="GET"), 405, "GET"),
        ("put", body(heartbeat, method="PUT"), 405, "PUT"),
        ("head", body(b"", method="HEAD"), 405, ""),
        ("no media type", body(heartbeat, media=None), 400, "Content-Type"),
        ("charset", body(heartbeat, media=f"{JSON}; charset=utf-8"), 415, "Content-Type"),
        ("capitals", body(heartbeat, media="Application/JSON"), 415, "Content-Type"),
        ("text", body(heartbeat, media="text/plain"), 415, "Content-Type"),
        ("recordio", body(heartbeat, media="application/recordio"), 415, "Content-Type"),
        ("half an object", body(b"{"), 400, "body"),
        ("nothing", body(b""), 400, "body"),
        ("a list", body(b"[]"), 400, "body"),
        ("not utf-8", body(b'{"type":"\xff"}'), 400, "body"),
        ("an empty object", body({}), 400, "executor_id"),
        ("no protobuf", body(b"\xff\xff", media=PROTOBUF), 400, "body"),
        ("empty protobuf", body(b"", media=PROTOBUF), 400, "executor_id"),
        ("no type", body(ids), 400, "type"),
        ("no such type", body({**ids, "type": "NONE"}), 400, "type"),
        ("type as a number", body({**ids, "type": 1}), 400, "type"),
        ("no executor", body({**heartbeat, "executor_id": None}), 400, "executor_id"),
        ("no framework", body({**heartbeat, "framework_id": None}), 400, "framework_id"),
        ("no subscribe", body({**ids, "type": "SUBSCRIBE"}), 400, "subscribe"),
        ("no update", body({**ids, "type": "UPDATE"}), 400, "update"),
        ("no status", body({**ids, "type": "UPDATE", "update": {}}), 400, "status"),
        ("no message", body({**ids, "type": "MESSAGE"}), 400, "message"),
        ("no data", body({**ids, "type": "MESSAGE", "message": {}}), 400, "data"),
        ("no uuid", update(uuid=None), 400, "uuid"),
        ("short uuid", update(uuid="aGk="), 400, "uuid"),
        ("a uuid of zeros", update(uuid=base64.b64encode(bytes(16)).decode()), 400, "uuid"),
        ("no base64", update(uuid="***"), 400, "uuid"),
        ("no source", update(source=None), 400, "source"),
        ("source master", update(source="SOURCE_MASTER"), 400, "source"),
        ("no state", update(state=None), 400, "state"),
        ("no such state", update(state="NONE"), 400, "state"),
        ("state as a number", update(state=1), 400, "state"),
        ("staging", update(state="TASK_STAGING"), 400, "TASK_STAGING"),
        ("no task", update(task_id=None), 400, "task_id"),
        ("another executor", update(executor_id=x), 400, "executor_id"),
        ("time", update(timestamp="now"), 400, "timestamp"),
        ("a check of no type", update(check_status={}), 400, "check_status"),
        ("nobody's word", update(state="TASK_UNREACHABLE"), 400, "TASK_UNREACHABLE"),
        ("accept of a stream", body(subscribe, Accept=f"{JSON};q=0"), 406, "Accept"),
        ("unknown framework", body({**subscribe, "framework_id": x}), 400, "Framework"),
        ("unknown executor", body({**subscribe, "executor_id": x}), 400, "Executor"),
        ("a command", body({**subscribe, "executor_id": {"value": "c"}}), 400, "Executor"),
        ("unknown call", body({**ids, "type": "UNKNOWN"}), 501, "UNKNOWN"),
    ]


async def test_what_cannot_be_taken_is_refused_with_a_status_and_a_reason(master, agent, executor):
    await run(master, agent, "a")
    master.run(command("c", "exec sleep 1000"))
    await master.status("c", pb.TASK_RUNNING)
    await executor.subscribe()
    await executor.event("SUBSCRIBED")
    await executor.event("LAUNCH")
    for name, request, status, words in refusals(executor):
        reply = await executor.ask(**request)
        assert (name, reply.status) == (name, status), reply.body
        assert words in reply.body.decode(), name
        assert status != 405 or reply.headers["allow"] == "POST"
        assert reply.headers["content-type"] == "text/plain; charset=utf-8", name
    # Nothing of it was heard, and all over one connection, which is good still.
    assert master.updates("a") == []
    assert (await executor.update("a", "TASK_RUNNING")).status == 202
    await executor.event("ACKNOWLEDGED")
    await master.status("a", pb.TASK_RUNNING)


async def test_who_has_not_subscribed_may_only_do_that_and_send_heartbeats(master, agent, executor):
    await run(master, agent, "a")
    for reply in (
        await executor.update("a", "TASK_RUNNING"),
        await executor.call("MESSAGE", message={"data": ""}),
        await executor.call("UNKNOWN"),
    ):
        assert (reply.status, reply.body) == (403, b"Executor is not subscribed\n")
    assert (await executor.call("HEARTBEAT")).status == 202
    stranger = HttpExecutor(executor.port, "x", "y")
    async with stranger:
        assert (await stranger.call("HEARTBEAT")).status == 202
    assert master.updates("a") == []


async def test_requests_that_mesos_takes_in_other_forms(master, agent, executor):
    await run(master, agent, "a")
    await executor.subscribe(accept=f"{PROTOBUF}, {JSON};q=0.1")
    await executor.event("SUBSCRIBED")
    await executor.event("LAUNCH")
    heartbeat = {**executor.ids, "type": "HEARTBEAT"}
    for path in (f"/slave(1){PATH}", f"{PATH}/", f"{PATH}?x=1", f"/slave(1){PATH}/more"):
        assert (path, (await executor.ask(heartbeat, path=path)).status) == (path, 202)
    # Accept matters to SUBSCRIBE only; a stream's id to nobody.
    assert (await executor.ask(heartbeat, Accept="text/html", Mesos_Stream_Id="x")).status == 202
    loose: dict[str, Any] = {
        "timestamp": "12.5",
        "healthy": "true",
        "message": None,
        "reason": "NO_SUCH",
        "agent_id": {"value": "of another"},
        "camelCase": 1,
        "labels": {"labels": []},
    }
    assert (await executor.update("a", "TASK_RUNNING", **loose)).status == 202
    running = await master.status("a", pb.TASK_RUNNING)
    assert (running.timestamp, running.healthy, running.agent_id.value) == (12.5, True, "A1")
    assert not running.HasField("reason")


async def test_a_body_may_come_in_chunks_and_be_large(master, agent, executor):
    await run(master, agent, "a")
    await executor.subscribe()
    await executor.event("SUBSCRIBED")
    data = base64.b64encode(b"x" * 600_000).decode()
    body = json.dumps({**executor.ids, "type": "MESSAGE", "message": {"data": data}}).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
    async with connected(executor.port) as connection:
        await connection.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for at in range(0, len(body), 50_000):
            part = body[at : at + 50_000]
            await connection.send(b"%x\r\n%b\r\n" % (len(part), part))
        await connection.send(b"0\r\n\r\n")
        assert (await connection.head()).status == 202
    said = await master.call(agent_pb2.Call.EXECUTOR_MESSAGE)
    assert said.executor_message.data == b"x" * 600_000


async def test_repeated_and_late_updates_are_acknowledged_and_count_once(master, agent, executor):
    await run(master, agent, "a")
    await executor.subscribe()
    await executor.event("SUBSCRIBED")
    await executor.event("LAUNCH")
    end, late = executor.status("a", "TASK_FINISHED"), executor.status("a", "TASK_RUNNING")
    unknown = executor.status("never", "TASK_RUNNING")
    for status in (end, end, late, end, unknown):
        assert (await executor.call("UPDATE", update={"status": status})).status == 202
        assert (await executor.event("ACKNOWLEDGED"))["uuid"] == status["uuid"]
    await master.status("a", pb.TASK_FINISHED)
    assert master.states("a") == ["FINISHED"]
    assert master.updates("never") == []


async def test_the_newest_stream_counts_and_none_is_needed_for_calls(master, agent, executor):
    await run(master, agent, "a")
    await executor.subscribe()
    await executor.event("SUBSCRIBED")
    await executor.event("LAUNCH")
    first = executor.stream
    # It has the task, and says so; what it has heard no acknowledgement of comes along.
    unheard = executor.status("a", "TASK_STARTING")
    await executor.subscribe(
        unacknowledged_tasks=[
            {"name": "a", "task_id": {"value": "a"}, "agent_id": {"value": "A1"}}
        ],
        unacknowledged_updates=[{"status": unheard}],
    )
    await executor.event("SUBSCRIBED")
    assert (await executor.event("ACKNOWLEDGED"))["uuid"] == unheard["uuid"]
    await master.status("a", pb.TASK_STARTING)
    await first.until_end()
    await executor.hang_up()
    running = executor.status("a", "TASK_RUNNING")
    assert (await executor.call("UPDATE", update={"status": running})).status == 202
    await master.status("a", pb.TASK_RUNNING)
    # Its acknowledgement had nowhere to go; the task is not launched twice.
    await executor.subscribe(
        unacknowledged_tasks=[
            {"name": "a", "task_id": {"value": "a"}, "agent_id": {"value": "A1"}}
        ],
        unacknowledged_updates=[{"status": running}],
    )
    await executor.event("SUBSCRIBED")
    assert (await executor.event("ACKNOWLEDGED"))["uuid"] == running["uuid"]
    assert master.states("a") == ["STARTING", "RUNNING"]


async def test_tasks_that_never_arrived_are_launched_on_the_next_stream(master, agent, executor):
    await run(master, agent, "a", "b")
    await executor.subscribe()
    await executor.event("SUBSCRIBED")
    await executor.event("LAUNCH")
    await executor.hang_up()
    await executor.subscribe(
        unacknowledged_tasks=[{"name": "a", "task_id": {"value": "a"}, "agent_id": {"value": "A1"}}]
    )
    await executor.event("SUBSCRIBED")
    assert (await executor.event("LAUNCH"))["task"]["task_id"] == {"value": "b"}


async def test_heartbeats_come_by_the_flag(master, tmp_path):
    flags = ("--executor-heartbeat-interval", "20ms")
    async with running_agent(master, tmp_path / "agent", *flags) as agent:
        await run(master, agent, "a")
        async with HttpExecutor(port_of(master)) as executor:
            await executor.subscribe()
            await executor.event("SUBSCRIBED")
            kinds = [json.loads(await executor.record()) for _ in range(3)]
    assert {"type": "HEARTBEAT"} in kinds


async def test_each_event_has_a_heartbeat_behind_it_by_a_flag(master, tmp_path):
    async with running_agent(master, tmp_path / "agent", "--http-heartbeat-after-event") as agent:
        await run(master, agent, "a")
        async with HttpExecutor(port_of(master)) as executor:
            await executor.subscribe()
            for kind in ("SUBSCRIBED", "HEARTBEAT", "LAUNCH", "HEARTBEAT"):
                await executor.event(kind)


async def test_the_end_of_the_agent_ends_the_stream(master, agent, executor):
    await run(master, agent, "a")
    await executor.subscribe()
    await executor.event("SUBSCRIBED")
    await executor.event("LAUNCH")
    await agent.stop()
    assert executor.stream is not None
    await executor.stream.until_end()
