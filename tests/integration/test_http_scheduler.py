"""The Scheduler API by its statuses: each row of the reference is a test.

The master runs in this process, its clients speak raw HTTP.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mesos_py.http.media import Media
from tests.kit.http_scheduler import INFO, PATH, serving, welcomed
from tests.kit.raw_http import connected

FORMS = pytest.mark.parametrize("media", list(Media), ids=["json", "protobuf"])
SUBSCRIBE = {"type": "SUBSCRIBE", "subscribe": {"framework_info": INFO}}
F = {"value": "nobody"}
UUID = base64.b64encode(bytes(range(16))).decode()


# ---- What a request must be like, in the order in which it is looked at ------------------


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", [PATH, PATH + "/", "/master" + PATH, PATH + "/more"])
async def test_another_method_is_refused_whatever_comes_with_it(method: str, path: str) -> None:
    async with serving() as master, connected(master.port) as connection:
        head, _ = await connection.ask(method, path, {"Content-Type": "text/plain"}, b"{")
    assert (head.status, head.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "body", "status", "says"),
    [
        ({}, b"{", 400, "Content-Type: is missing"),
        ({"Content-Type": "text/plain"}, b"{", 415, "Content-Type: 'text/plain'"),
        ({"Content-Type": "application/json; charset=utf-8"}, b"{}", 415, "charset"),
        ({"Content-Type": "application/json", "Accept": "text/html"}, b"{", 400, "is no JSON"),
        ({"Content-Type": "application/json", "Accept": "text/html"}, b"{}", 400, "type: "),
        ({"Content-Type": "application/json"}, b'{"type":1}', 400, "type: 1: must be the name"),
        ({"Content-Type": "application/x-protobuf"}, b"{}", 400, "is no Call"),
        ({"Content-Type": "application/x-protobuf"}, b"", 400, "type: "),
        ({"Content-Type": "application/json"}, b'{"type":"UNKNOWN"}', 400, "framework_id: "),
        (
            {"Content-Type": "application/json"},
            b'{"type":"UNKNOWN","framework_id":{"value":"f"}}',
            501,
            "type: UNKNOWN",
        ),
    ],
)
async def test_the_first_fault_counts(
    headers: dict[str, str], body: bytes, status: int, says: str
) -> None:
    async with serving() as master, connected(master.port) as connection:
        head, text = await connection.ask("POST", PATH, headers, body)
        assert head.status == status
        assert says in text.decode()
        assert head.headers["content-type"].startswith("text/plain")
        assert not master.term.shell.core.cluster.frameworks


@FORMS
@pytest.mark.parametrize(
    ("headers", "more", "status", "says"),
    [
        ({"Accept": "text/html"}, {}, 406, "Accept: 'text/html'"),
        ({"Mesos_Stream_Id": "x"}, {}, 400, "Mesos-Stream-Id: 'x': must not come"),
        ({}, {"framework_id": F}, 400, "framework_id: 'nobody': differs"),
    ],
)
async def test_a_subscription_that_is_refused_as_a_request(
    media: Media, headers: dict[str, str], more: dict[str, Any], status: int, says: str
) -> None:
    async with serving() as master, master.client(media) as client:
        head, body = await client.ask({**SUBSCRIBE, **more}, **headers)
        assert (head.status, says in body.decode()) == (status, True)
        assert not len(master.term.links)


@FORMS
async def test_calls_of_who_is_not_subscribed(media: Media) -> None:
    async with serving() as master, master.client(media) as client:
        head, body = await client.ask({"type": "TEARDOWN", "framework_id": F})
        assert (head.status, b"is no framework" in body) == (400, True)
        async with client.subscribed(failover_timeout=1000) as stream:
            await welcomed(stream)
            call = {"type": "REVIVE", "framework_id": {"value": stream.framework_id}}
            head, body = await client.ask(call)
            assert (head.status, body) == (400, b"Mesos-Stream-Id: '': is missing\n")
            head, body = await client.ask(call, Mesos_Stream_Id="other")
            assert (head.status, b"is not that of" in body) == (400, True)
            # Only what is answered in a form is asked for what it accepts.
            head, _ = await client.ask(call, Mesos_Stream_Id=stream.id, Accept="text/html")
            assert head.status == 202
            asked = {**call, "type": "RECONCILE_OPERATIONS", "reconcile_operations": {}}
            head, _ = await client.ask(asked, Mesos_Stream_Id=stream.id, Accept="text/html")
            assert head.status == 406
        await master.gone()
        head, body = await client.ask(call)
        assert (head.status, b"is not subscribed" in body) == (403, True)


@FORMS
@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("DECLINE", {"decline": {"offer_ids": [F]}}),
        ("ACCEPT", {"accept": {"offer_ids": [F]}}),
        ("ACCEPT", {"accept": {}}),
        ("REVIVE", {}),
        ("REVIVE", {"revive": {"roles": ["*"]}}),
        ("SUPPRESS", {}),
        ("SUPPRESS", {"suppress": {"roles": ["not-mine"]}}),
        ("KILL", {"kill": {"task_id": F}}),
        ("SHUTDOWN", {"shutdown": {"agent_id": F, "executor_id": F}}),
        ("ACKNOWLEDGE", {"acknowledge": {"agent_id": F, "task_id": F, "uuid": UUID}}),
        (
            "ACKNOWLEDGE_OPERATION_STATUS",
            {
                "acknowledge_operation_status": {
                    "agent_id": F,
                    "operation_id": F,
                    "uuid": UUID,
                }
            },
        ),
        ("RECONCILE", {"reconcile": {}}),
        ("RECONCILE_OPERATIONS", {"reconcile_operations": {}}),
        ("MESSAGE", {"message": {"agent_id": F, "executor_id": F, "data": "YQ=="}}),
        ("REQUEST", {"request": {"requests": []}}),
        ("ACCEPT_INVERSE_OFFERS", {"accept_inverse_offers": {"inverse_offer_ids": [F]}}),
        ("DECLINE_INVERSE_OFFERS", {"decline_inverse_offers": {"inverse_offer_ids": [F]}}),
        ("TEARDOWN", {}),
    ],
)
async def test_calls_are_taken_with_202_and_nothing_else(
    media: Media, kind: str, parts: dict[str, Any]
) -> None:
    async with serving() as master, master.client(media) as client, client.subscribed() as stream:
        await welcomed(stream)
        head, body = await client.ask(
            {"type": kind, "framework_id": {"value": stream.framework_id}, **parts},
            Mesos_Stream_Id=stream.id,
        )
    assert (head.status, body) == (202, b"")
    assert head.headers["content-length"] == "0"
    assert "content-type" not in head.headers


@FORMS
async def test_update_framework_is_answered_with_its_outcome(media: Media) -> None:
    async with serving() as master, master.client(media) as client, client.subscribed() as stream:
        await welcomed(stream)
        info = {**INFO, "id": {"value": stream.framework_id}}

        async def update(**changed: Any) -> tuple[int, bytes]:
            part = {"framework_info": {**info, **changed}}
            return await client.call(stream, "UPDATE_FRAMEWORK", update_framework=part)

        assert await update(name="other") == (200, b"")
        status, body = await update(name="third", user="root")
        assert (status, body) == (
            400,
            b"framework_info.user: 'root': cannot change from 'nobody'\n",
        )
        (framework,) = master.term.shell.core.cluster.frameworks.values()
        assert framework.info.name == "other"


async def test_who_knows_us_hears_of_a_refused_update_framework_on_its_stream() -> None:
    async with serving() as master, master.client() as client:
        subscribe = {"framework_info": INFO, "protocol_version": 1}
        asked = {"type": "SUBSCRIBE", "subscribe": subscribe}
        async with client.subscribed_by(asked) as stream:
            await welcomed(stream)
            info = {**INFO, "id": {"value": stream.framework_id}, "user": "root"}
            part = {"framework_info": info}
            answer = await client.call(stream, "UPDATE_FRAMEWORK", update_framework=part)
            assert answer == (202, b"")
            refused = (await stream.event("REFUSED"))["refused"]
            assert refused["field"] == "framework_info.user"


# ---- What clients were seen to send ------------------------------------------------------


async def test_a_body_of_several_hundred_kilobytes_in_chunks() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        call = {
            "type": "MESSAGE",
            "framework_id": {"value": stream.framework_id},
            "message": {
                "agent_id": F,
                "executor_id": F,
                "data": base64.b64encode(bytes(600_000)).decode(),
            },
        }
        head = client.head(Mesos_Stream_Id=stream.id, Transfer_Encoding="chunked")
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        await client.connection.send(f"POST {PATH} HTTP/1.1\r\nHost: h\r\n{lines}\r\n".encode())
        data = json.dumps(call).encode()
        for at in range(0, len(data), 50_000):
            piece = data[at : at + 50_000]
            await client.connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        await client.connection.send(b"0\r\n\r\n")
        assert (await client.connection.head()).status == 202


async def test_a_body_over_the_bound_is_refused() -> None:
    async with serving(http_max_body=2000) as master, master.client() as client:
        head, body = await client.ask({**SUBSCRIBE, "padding": "x" * 2000})
    assert (head.status, body) == (413, b"body: allowed are 2000 bytes\n")


async def test_json_is_the_default() -> None:
    async with serving() as master, master.client(Media.PROTOBUF) as client:
        async with client.subscribed({"Accept": None}) as stream:
            assert stream.head.headers["content-type"] == "application/json"
            await welcomed(stream)
        async with client.subscribed({"Accept": "*/*"}) as stream:
            assert stream.head.headers["content-type"] == "application/json"


async def test_a_call_in_one_form_an_answer_in_the_other() -> None:
    async with serving() as master, master.client(Media.JSON) as client:
        async with client.subscribed({"Accept": Media.PROTOBUF.value}) as stream:
            assert stream.head.headers["content-type"] == "application/x-protobuf"
            await welcomed(stream)
            assert (await client.call(stream, "REVIVE"))[0] == 202


async def test_null_and_text_for_numbers_count_as_they_are_meant() -> None:
    async with serving() as master, master.client() as client:
        info = {"id": None, "failover_timeout": "1e3", "checkpoint": "true", "roles": None}
        async with client.subscribed_by(
            {
                "type": "SUBSCRIBE",
                "framework_id": None,
                "subscribe": {
                    "framework_info": {**INFO, **info},
                    "suppressed_roles": None,
                },
            }
        ) as stream:
            await welcomed(stream)
            (framework,) = master.term.shell.core.cluster.frameworks.values()
            assert (framework.info.failover_timeout, framework.info.checkpoint) == (1000.0, True)


async def test_calls_may_come_on_any_connection() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        for _ in range(3):
            async with master.client() as other:
                assert (await other.call(stream, "REVIVE"))[0] == 202
        # And the one that was idle meanwhile is still there.
        assert (await client.call(stream, "TEARDOWN"))[0] == 202
        assert await stream.next() is None


async def test_a_call_waits_for_its_turn_when_there_is_more_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        shell = master.term.shell
        waited = []
        take = shell.turns.take

        async def taken(step: Callable[[], bool]) -> bool:
            waited.append(len(shell.core.cluster.frameworks))
            return await take(step)

        monkeypatch.setattr(shell.turns, "free", lambda: False)
        monkeypatch.setattr(shell.turns, "take", taken)
        assert (await client.call(stream, "TEARDOWN"))[0] == 202
        assert await stream.next() is None
        assert waited == [1]
        assert not shell.core.cluster.frameworks


async def test_what_was_answered_is_among_the_numbers() -> None:
    async with serving() as master, connected(master.port) as connection:
        await connection.ask("GET", PATH)
        _, page = await connection.ask("GET", "/metrics")
    assert b'mesos_py_master_http_answers_total{status="405"} 1.0' in page


# ---- Authentication ----------------------------------------------------------------------


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    path = tmp_path / "credentials.json"
    rows = [{"principal": "anna", "secret": "a"}, {"principal": "bert", "secret": "b"}]
    path.write_text(json.dumps({"credentials": rows}))
    return path


async def test_who_does_not_prove_who_he_is_stays_outside(credentials: Path) -> None:
    async with serving(credentials=credentials) as master, master.client() as client:
        for header in (None, basic("anna:b"), basic("carl:c"), "Bearer x"):
            head, _ = await client.ask(SUBSCRIBE, Authorization=header)
            assert head.status == 401
            assert head.headers["www-authenticate"] == 'Basic realm="mesos-master-scheduler"'


async def test_a_principal_speaks_for_himself(credentials: Path) -> None:
    async with (
        serving(credentials=credentials) as master,
        master.client(Authorization=basic("anna:a")) as client,
        master.client(Authorization=basic("bert:b")) as other,
    ):
        named = {"framework_info": {**INFO, "principal": "bert"}}
        head, body = await client.ask({"type": "SUBSCRIBE", "subscribe": named})
        assert (head.status, b"authenticated is 'anna'" in body) == (400, True)
        async with client.subscribed() as stream:
            await welcomed(stream)
            (framework,) = master.term.shell.core.cluster.frameworks.values()
            # Filled in, since nothing else was said.
            assert framework.info.principal == "anna"
            status, body = await other.call(stream, "REVIVE")
            assert (status, b"is of 'anna', authenticated is 'bert'" in body) == (400, True)
            assert (await client.call(stream, "REVIVE"))[0] == 202


async def test_without_credentials_nobody_is_asked() -> None:
    async with serving() as master, master.client(Authorization=basic("x:y")) as client:
        async with client.subscribed(principal="anyone") as stream:
            await welcomed(stream)
