"""Pages as those who poll them get them."""

import gzip

import pytest
from aiohttp.test_utils import make_mocked_request

from mesos_py.errors import InvalidValue
from mesos_py.http.cache import SMALL_BYTES, Page
from mesos_py.http.pages import answer, json_answer

PAGE = Page(b'{"a":1}', '"x"', 0.0)
LONG = Page(b"[" + b"1," * SMALL_BYTES + b"1]", '"x"', 0.0)


def request(path="/state", method="GET", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return make_mocked_request(method, path, headers=named)


async def test_a_page_as_it_is():
    got = await answer(request(), PAGE)
    assert (got.status, got.body, got.content_type) == (200, PAGE.body, "application/json")
    assert "charset" not in got.headers["Content-Type"]


@pytest.mark.parametrize("known", ['"x"', 'W/"x"', '"y", "x"', "*"])
async def test_who_has_a_page_is_not_sent_it_again(known):
    got = await answer(request(If_None_Match=known), PAGE)
    assert (got.status, got.body, got.headers["ETag"]) == (304, None, '"x"')


async def test_who_has_another_page_or_posts_is_sent_it():
    assert (await answer(request(If_None_Match='"y"'), PAGE)).status == 200
    assert (await answer(request(method="POST", If_None_Match='"x"'), PAGE)).status == 200


async def test_a_long_page_is_compressed_for_who_can_read_that():
    got = await answer(request(Accept_Encoding="deflate, gzip;q=0.5"), LONG)
    assert got.headers["Content-Encoding"] == "gzip"
    assert isinstance(got.body, bytes)
    assert gzip.decompress(got.body) == LONG.body
    again = request(Accept_Encoding="gzip", If_None_Match=got.headers["ETag"])
    assert (await answer(again, LONG)).status == 304
    for how in ("deflate", "gzip;q=0", ""):
        assert (await answer(request(Accept_Encoding=how), LONG)).body == LONG.body
    assert (await answer(request(Accept_Encoding="gzip"), PAGE)).body == PAGE.body


async def test_a_page_is_handed_to_a_function_of_a_script():
    got = await answer(request("/state?jsonp=jQuery1.a$b[0]"), PAGE)
    assert (got.body, got.content_type) == (b'jQuery1.a$b[0]({"a":1})', "text/javascript")
    assert json_answer(request("/version?jsonp=f"), {"b": "é"}).body == b'f({"b":"\\u00e9"})'
    assert json_answer(request("/version?jsonp="), []).body == b"([])"


@pytest.mark.parametrize("name", ["alert(1)//", "a b", "é", "x" * 201, "<script>"])
async def test_a_program_is_no_name_of_a_function(name):
    with pytest.raises(InvalidValue, match="jsonp"):
        await answer(request(f"/state?jsonp={name}"), PAGE)
