"""Basic authentication."""

import base64

import pytest

from mesos_py.errors import InvalidValue
from mesos_py.http.answers import HttpRefusal
from mesos_py.http.auth import Credentials, parse_credentials

KNOWN = Credentials({"anna": "pass", "": "x"})


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_who_has_the_secret_is_who_he_says() -> None:
    assert KNOWN.principal(basic("anna:pass")) == "anna"
    assert KNOWN.principal(basic("anna:pass").replace("Basic", "basic")) == "anna"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic ???",
        "Basic " + base64.b64encode(b"\xff:\xfe").decode(),
        "Bearer abc",
        basic("anna"),
        basic("anna:wrong"),
        basic("anna:pass:"),
        basic("bert:pass"),
        basic("anna:"),
    ],
)
def test_who_has_not_is_nobody(header: str | None) -> None:
    assert KNOWN.principal(header) is None
    with pytest.raises(HttpRefusal) as caught:
        KNOWN.require(header, "mesos-master-scheduler")
    assert caught.value.status == 401
    assert caught.value.headers == {"WWW-Authenticate": 'Basic realm="mesos-master-scheduler"'}


def test_the_file() -> None:
    known = parse_credentials('{"credentials":[{"principal":"p","secret":"s"}]}', "--credentials")
    assert known.principal(basic("p:s")) == "p"


@pytest.mark.parametrize(
    "text",
    [
        "p s",
        "[]",
        '{"credentials":{}}',
        '{"credentials":["p"]}',
        '{"credentials":[{"principal":"p"}]}',
        '{"credentials":[{"principal":"","secret":"hidden"}]}',
        '{"credentials":[{"principal":"p","secret":"hid:den"}]}',
        '{"credentials":[{"principal":"p","secret":"hidden"},{"principal":"p","secret":"x"}]}',
    ],
)
def test_a_file_that_is_none(text: str) -> None:
    with pytest.raises(InvalidValue, match="--credentials") as caught:
        parse_credentials(text, "--credentials")
    assert "hid" not in caught.value.message
