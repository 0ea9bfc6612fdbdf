from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.address import Address, parse_address
from mesos_py.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost:5050", "localhost", 5050),
        (" 10.0.0.1:1 ", "10.0.0.1", 1),
        ("master_1.cluster-a.example.:65535", "master_1.cluster-a.example.", 65535),
        ("[::1]:5050", "::1", 5050),
        ("[fe80::1%eth0]:5050", "fe80::1%eth0", 5050),
    ],
)
def test_reads_what_it_writes(text: str, host: str, port: int) -> None:
    address = parse_address(text)
    assert address == Address(host, port)
    assert str(address) == text.strip()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must not be empty"),
        ("  ", "must not be empty"),
        ("localhost", "has no port"),
        ("localhost:", "not a number from 1"),
        ("localhost:0", "not a number from 1"),
        ("localhost:65536", "not a number from 1"),
        ("localhost:-1", "not a number from 1"),
        ("localhost:٣", "not a number from 1"),
        ("localhost:1_0", "not a number from 1"),
        (":5050", "not a host name"),
        ("a b:5050", "not a host name"),
        ("a/b:5050", "not a host name"),
        ("-a:5050", "not a host name"),
        ("::1:5050", "needs brackets"),
        ("[::1]", "has no port"),
        ("[::1:5050", "has no port"),
        ("[hello]:5050", "not an IPv6 address"),
        ("http://localhost:5050", "without a scheme"),
    ],
)
def test_refuses_and_says_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason) as caught:
        parse_address(text, "master")
    assert caught.value.field == "master"


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        address = parse_address(text)
    except InvalidValue:
        return
    assert parse_address(str(address)) == address
