"""The numbers of the HTTP server."""

from master.api.http.numbers import http_families
from mesos_py.http.server import HttpServer, Routes
from tests.kit.raw_http import connected

PREFIX = "mesos_py_master_http_"


async def test_answers_by_status_and_what_is_open() -> None:
    server = HttpServer(Routes())
    await server.start("127.0.0.1", 0)
    async with connected(server.port) as client:
        await client.ask("GET", "/nowhere")
        async with connected(server.port) as other:
            await other.ask("BREW ", "/nowhere")
        samples = [sample for family in http_families(server) for sample in family.samples]
    await server.close()
    assert {(s.name.removeprefix(PREFIX), s.labels.get("status")): s.value for s in samples} == {
        ("answers_total", "404"): 1,
        ("connections", None): 1,
        ("failures_total", None): 0,
        ("crowded_out_total", None): 0,
        ("unreadable_total", None): 1,
    }
    assert server.connections == 0
