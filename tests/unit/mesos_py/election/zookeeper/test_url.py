from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.address import Address
from mesos_py.election.zookeeper.url import hide_credentials, is_zookeeper, parse_url
from mesos_py.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "servers", "path", "credentials"),
    [
        ("zk://h/mesos", "h:2181", "/mesos", None),
        (" ZK://h:1/mesos/ ", "h:1", "/mesos", None),
        ("zk://h1:1, h2 ,10.0.0.3:3/a/b", "h1:1,h2:2181,10.0.0.3:3", "/a/b", None),
        ("zk://[::1],[fe80::1]:7/m", "[::1]:2181,[fe80::1]:7", "/m", None),
        ("zk://me:pass@h/m", "h:2181", "/m", "me:pass"),
        ("zk://me:p@s:s/w@h/m", "h:2181", "/m", "me:p@s:s/w"),
    ],
)
def test_what_is_read(text, servers, path, credentials) -> None:
    url = parse_url(text)
    assert (url.servers, url.path, url.credentials) == (servers, path, credentials)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("h:1/mesos", "must be zk://"),
        ("zk://h:1", "must end with a path"),
        ("zk://h:1/", "must end with a path"),
        ("zk://h:1//", "must end with a path"),
        ("zk:///mesos", "must name servers"),
        ("zk://h1:1,/mesos", "must name servers"),
        ("zk://h:0/mesos", "port '0'"),
        ("zk://h:99999/mesos", "port '99999'"),
        ("zk://h h/mesos", "not a host name"),
        ("zk://h,h:2181/mesos", "names h:2181 twice"),
        ("zk://h/a//b", "'' cannot be a part of the path"),
        ("zk://h/a/../b", "'..' cannot be a part of the path"),
        ("zk://h/a b", "'a b' cannot be a part of the path"),
        ("zk://me@h/mesos", "credentials must be user:password"),
        ("zk://:hunter2@h/mesos", "credentials must be user:password"),
        ("zk://me:@h/mesos", "credentials must be user:password"),
        ("zk://me:hunter2@h:x/mesos", "port 'x'"),
        ("zk://me:hunter2@h", "must end with a path"),
    ],
)
def test_what_is_refused(text, reason) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_url(text, "--zk")
    assert caught.value.field == "--zk"
    assert reason in str(caught.value)
    assert "hunter2" not in str(caught.value) + repr(caught.value)
    assert caught.value.__cause__ is None


def test_neither_text_nor_repr_show_the_credentials() -> None:
    url = parse_url("zk://me:hunter2@h1,h2/mesos")
    assert str(url) == "zk://***@h1:2181,h2:2181/mesos"
    assert "hunter2" not in repr(url)
    assert str(parse_url("zk://h/mesos")) == "zk://h:2181/mesos"


def test_the_text_is_read_back_and_values_are_equal() -> None:
    url = parse_url("zk://h1,h2:3/a/b")
    assert parse_url(str(url)) == url
    assert pickle.loads(pickle.dumps(url)) == url
    assert url.hosts == (Address("h1", 2181), Address("h2", 3))


@given(st.text(alphabet="zk:/@,.[] abc123\n", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        url = parse_url(f"zk://{text}")
    except InvalidValue:
        return
    assert url.path.startswith("/")
    assert not url.path.endswith("/")
    assert url.hosts


@given(st.text(alphabet="@/:,xy\n", min_size=1))
def test_whatever_a_password_holds_stays_hidden(password: str) -> None:
    hidden = hide_credentials(f"zk://me:secret{password}@h/m")
    assert "secret" not in hidden
    assert hidden.endswith("@h/m")


def test_the_scheme_alone_tells() -> None:
    assert is_zookeeper(" zk://")
    assert not is_zookeeper("zk:2181")
