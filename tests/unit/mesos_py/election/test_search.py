from __future__ import annotations

import time

from mesos_py.address import Address
from mesos_py.election.search import MAX_REDIRECTS, ListSearch, ZooKeeperSearch, new_search
from mesos_py.election.zookeeper.url import parse_url

A, B, C = Address("a", 1), Address("b", 2), Address("c", 3)


def test_each_address_is_tried_once_the_last_leader_first() -> None:
    search = new_search([A, B, C], B, 0.0)
    assert search.others == 3
    assert [search.next() for _ in range(4)] == [B, A, C, None]
    assert search.others == 0
    assert search.failures == []


def test_whoever_is_named_comes_next_but_not_for_ever() -> None:
    search = ListSearch([A], None)
    tried = []
    while (address := search.next()) is not None:
        tried.append(address)
        search.redirected(B if address == A else A)
    assert len(tried) == 1 + MAX_REDIRECTS


def test_the_last_leader_is_tried_before_zookeeper_is_asked() -> None:
    url = parse_url("zk://127.0.0.1:1/mesos")
    search = new_search(url, A, time.monotonic())
    assert isinstance(search, ZooKeeperSearch)
    assert search.next() == A
    search.redirected(B)
    # The time is over.
    assert search.next() is None


def test_a_zookeeper_that_is_not_there_is_a_reason() -> None:
    search = new_search(parse_url("zk://127.0.0.1:1/mesos"), None, time.monotonic() + 0.05)
    assert search.next() is None
    (why,) = search.failures
    assert "zk://127.0.0.1:1/mesos: no leading master" in why
