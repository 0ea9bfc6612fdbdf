"""/help names what there is."""

import json

import pytest
from aiohttp.test_utils import make_mocked_request

from mesos_py.errors import MesosPyError
from mesos_py.http.answers import status_of
from mesos_py.http.help import PATH, Help
from mesos_py.http.server import Routes


async def nothing(request):
    raise AssertionError(request.path)


@pytest.fixture
def page():
    routes = Routes("slave(1)")
    made = Help(routes)
    routes.add(PATH, made.answer)
    for path in ("/state", "/api/v1", "/files/read", "/files/<x>", "/version"):
        routes.add(path, nothing)

    async def asked(path):
        found = routes.find(path.partition("?")[0])
        assert found is not None
        return await found(make_mocked_request("GET", path))

    return asked


async def test_a_page_names_all_endpoints(page):
    for path in ("/help", "/help/"):
        answer = await page(path)
        assert answer.content_type == "text/html"
        for each in ("/state", "/api/v1", "/files/read", "/files/&lt;x&gt;", "/version", "/help"):
            assert f"<code>{each}</code>" in answer.text


async def test_parts_have_pages_of_their_own(page):
    files = (await page("/help/files")).text
    assert "/files/read" in files
    assert "/state" not in files
    assert "/api/v1" in (await page("/help/slave(1)/api/v1")).text
    assert "/files/read" in (await page("/help/files/read?format=json")).text


async def test_programs_are_told_as_json(page):
    found = json.loads((await page("/help?format=json")).body)["processes"]
    assert [each["id"] for each in found] == ["files", "help", "slave(1)", "version"]
    names = {each["id"]: [e["name"] for e in each["endpoints"]] for each in found}
    assert names["files"] == ["/<x>", "/read"]
    assert names["slave(1)"] == ["/api/v1", "/state"]
    assert names["version"] == ["/"]


@pytest.mark.parametrize(
    ("path", "status"), [("/help/x", 404), ("/help/files/x", 400), ("/help/slave(1)/read", 400)]
)
async def test_what_there_is_not(page, path, status):
    with pytest.raises(MesosPyError) as caught:
        await page(path)
    assert status_of(caught.value) == status
