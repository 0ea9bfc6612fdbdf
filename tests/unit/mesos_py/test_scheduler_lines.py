"""What the text that names a master says of the way to talk to it."""

import base64

import pytest

from mesos_py.address import Address
from mesos_py.election import StandaloneDetector
from mesos_py.election.zookeeper.detector import ZooKeeperDetector
from mesos_py.errors import InvalidValue
from mesos_py.scheduler import lines
from mesos_py.scheduler.lines import HttpLine, RpcLine


@pytest.mark.parametrize("text", ["h:5060", "h:5060,i:5060"])
def test_addresses_are_of_grpc(text):
    detector, dial = lines.parse(text)
    assert isinstance(detector, StandaloneDetector)
    assert dial is RpcLine


def test_a_detector_finds_masters_of_ours():
    given = StandaloneDetector([Address("h", 1)])
    assert lines.parse(given) == (given, RpcLine)


@pytest.mark.parametrize("text", ["http://h:5050", " HTTP://h:5050/ ", "http://h:5050,i:5050"])
async def test_http_is_said(text):
    detector, dial = lines.parse(text)
    assert await detector.leader() == Address("h", 5050)
    line = dial(Address("h", 5050))
    assert isinstance(line, HttpLine)
    await line.close()


def test_the_leader_is_found_by_zookeeper_for_both():
    for text, kind in (("zk://z/mesos", RpcLine), ("http+zk://z/mesos", None)):
        detector, dial = lines.parse(text)
        assert isinstance(detector, ZooKeeperDetector)
        assert str(detector._url) == "zk://z:2181/mesos"
        assert (dial is RpcLine) == (kind is RpcLine)


async def test_credentials_go_with_each_call():
    _, dial = lines.parse("http://me:hunter2@h:5050")
    line = dial(Address("h", 5050))
    assert isinstance(line, HttpLine)
    wanted = base64.b64encode(b"me:hunter2").decode()
    assert line._headers == {"Authorization": f"Basic {wanted}"}
    await line.close()


@pytest.mark.parametrize(
    "text",
    [
        "https://me:hunter2@h:5050",
        "http://hunter2@h:5050",
        "http://:hunter2@h:5050",
        "http://me:hunter2:x@h:5050",
        "http://me:hunter2@h",
        "http://me:hunter2@",
        "http+zk://me:hunter2@z",
        "htp://me:hunter2@h:5050",
        "http//me:hunter2@h:5050",
        "http:/me:hunter2@h:5050",
        "me:hunter2@h:5050",
    ],
)
def test_what_cannot_be_is_refused_without_its_secret(text):
    with pytest.raises(InvalidValue) as caught:
        lines.parse(text)
    assert caught.value.field == "master"
    assert "hunter2" not in str(caught.value)
