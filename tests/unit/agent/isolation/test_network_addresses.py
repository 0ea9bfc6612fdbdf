"""Ranges of addresses, and who has which."""

from ipaddress import IPv4Address, IPv4Interface, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.isolation.network.addresses import Pool, check_range, overlap, parse_range
from mesos_py.errors import InsufficientResources, InvalidValue

SMALL = IPv4Network("10.0.0.0/29")


def test_a_range_is_a_network():
    assert parse_range("10.213.0.0/16") == IPv4Network("10.213.0.0/16")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no range"),
        ("10.0.0.0.0/24", "is no range"),
        ("10.0.0.1/24", "has host bits set"),
        ("fd00::/64", "is no range"),
        ("10.0.0.0/30", "must be a /12 to /29"),
        ("10.0.0.0", "must be a /12 to /29"),
        ("10.0.0.0/8", "must be a /12 to /29"),
        ("127.0.0.0/16", "no container can have"),
        ("224.0.0.0/16", "no container can have"),
        ("169.254.0.0/16", "no container can have"),
        ("240.0.0.0/16", "no container can have"),
    ],
)
def test_what_is_no_range_is_refused_with_a_reason(text, reason):
    with pytest.raises(InvalidValue) as caught:
        parse_range(text)
    assert (caught.value.field, caught.value.value) == ("network-range", text)
    assert reason in caught.value.reason
    with pytest.raises(ValueError, match=reason):
        check_range(text)


@given(st.text(max_size=30))
def test_any_text_is_a_range_or_refused(text):
    try:
        assert 12 <= parse_range(text).prefixlen <= 29
    except InvalidValue:
        pass


def test_the_gateway_is_the_first_address_and_nobodys():
    pool = Pool(SMALL)
    assert pool.gateway == IPv4Address("10.0.0.1")
    taken = [pool.take(str(n)) for n in range(5)]
    assert taken == [IPv4Address(f"10.0.0.{n}") for n in range(2, 7)]


def test_when_all_addresses_are_taken_that_is_said():
    pool = Pool(SMALL)
    for n in range(5):
        pool.take(str(n))
    with pytest.raises(InsufficientResources, match=r"all 5 addresses of 10.0.0.0/29"):
        pool.take("one too many")


def test_a_free_address_rests_until_the_others_had_their_turn():
    pool = Pool(SMALL)
    first = pool.take("a")
    pool.release(first, "a")
    assert [str(pool.take(str(n)))[-1] for n in range(5)] == ["3", "4", "5", "6", "2"]


def test_an_address_that_is_held_already_is_not_given_again():
    pool = Pool(SMALL)
    pool.hold(IPv4Address("10.0.0.3"), "old")
    taken = {pool.take(str(n)) for n in range(4)}
    assert IPv4Address("10.0.0.3") not in taken
    assert len(pool) == 5


def test_nobody_releases_the_address_of_somebody_else():
    pool = Pool(SMALL)
    address = pool.take("a")
    pool.release(address, "b")
    assert len(pool) == 1
    pool.release(address, "a")
    pool.release(address, "a")
    assert len(pool) == 0


@pytest.mark.parametrize(
    ("other", "overlaps"),
    [
        ("10.213.5.1/24", True),
        ("10.1.1.1/8", True),
        ("10.213.0.1/16", True),
        ("10.214.0.1/16", False),
        ("192.0.2.1/24", False),
    ],
)
def test_an_address_of_another_device_in_the_range_is_found(other, overlaps):
    others = [("lo", IPv4Interface("127.0.0.1/8")), ("eth0", IPv4Interface(other))]
    found = overlap(IPv4Network("10.213.0.0/16"), others)
    assert found == (("eth0", IPv4Interface(other)) if overlaps else None)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=80))
def test_no_address_ever_has_two_holders(steps):
    pool = Pool(IPv4Network("10.0.0.0/28"))
    held: dict[str, IPv4Address] = {}
    for take, number in steps:
        name = str(number)
        if take and name not in held:
            held[name] = pool.take(name)
        elif name in held:
            pool.release(held.pop(name), name)
        assert len(set(held.values())) == len(held) == len(pool)
        assert pool.gateway not in held.values()
