"""Who leads, and what a master that does not says to clients of HTTP."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from master.api.front import Leading
from master.api.http.front import HttpFront
from mesos_py.address import Address, MasterAddress
from mesos_py.http.auth import Credentials
from mesos_py.http.server import Limits
from mesos_py.version import VERSION
from tests.kit.raw_http import Connection, connected

PATH = "/api/v1/scheduler"
OWN = Address("10.0.0.1", 5060)


def other() -> MasterAddress:
    found = MasterAddress("10.0.0.2", 5060)
    found.http = Address("two", 5050)
    return found


@contextlib.asynccontextmanager
async def front(
    leader: Address | None, credentials: Credentials | None = None
) -> AsyncIterator[Connection]:
    leading = Leading()
    leading.own, leading.own_http = OWN, Address("one", 5050)
    leading.detected = leader
    made = HttpFront(leading, Limits(), credentials)
    await made.server.start("127.0.0.1", 0)
    try:
        async with connected(made.server.port) as client:
            yield client
    finally:
        await made.server.close()


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("path", [PATH, f"/master{PATH}", f"{PATH}?x=%20y", f"{PATH}/z"])
async def test_a_client_is_sent_on_to_who_leads_before_anything_else(
    method: str, path: str
) -> None:
    async with front(other()) as client:
        head, body = await client.ask(method, path, body=b"rubbish")
    assert (head.status, body) == (307, b"")
    assert head.headers["location"] == f"//two:5050{path}"


@pytest.mark.parametrize(
    ("leader", "says"),
    [
        (None, b"No leader elected\n"),
        (OWN, b"this master is not ready to lead yet\n"),
        # By a master of which only its own peers know where it is.
        (Address("10.0.0.2", 5060), b"this master is not ready to lead yet\n"),
    ],
)
async def test_when_nobody_leads(leader: Address | None, says: bytes) -> None:
    async with front(leader) as client:
        assert (await client.ask("POST", PATH, body=b""))[0].status == 503
        head, body = await client.ask("GET", PATH)
    assert (head.status, body) == (503, says)


@pytest.mark.parametrize("path", ["/redirect", "/master/redirect"])
async def test_redirect_leads_to_the_leader_itself(path: str) -> None:
    async with front(other()) as client:
        head, body = await client.ask("GET", path)
    assert (head.status, head.headers["location"], body) == (307, "//two:5050", b"")


async def test_redirect_without_a_leader_and_with_more_behind_it() -> None:
    async with front(None) as client:
        assert (await client.ask("GET", "/redirect"))[0].status == 503
        assert (await client.ask("GET", "/redirect/x"))[0].status == 404


async def test_health_and_version_are_its_own() -> None:
    async with front(other()) as client:
        head, body = await client.ask("GET", "/health")
        assert (head.status, body) == (200, b"")
        head, body = await client.ask("GET", "/version")
    assert head.headers["content-type"] == "application/json"
    told = json.loads(body)
    assert [int(part) for part in told["version"].split(".")] >= [1, 0, 0]
    assert told["mesos_py_version"] == VERSION
    assert {"build_date", "build_time", "build_user"} <= set(told)


async def test_authentication_comes_first_of_all() -> None:
    async with front(other(), Credentials({"p": "s"})) as client:
        head, _ = await client.ask("POST", PATH, body=b"")
        assert head.status == 401
        assert head.headers["www-authenticate"] == 'Basic realm="mesos-master-scheduler"'
        # What is open to all stays so.
        assert (await client.ask("GET", "/health"))[0].status == 200
