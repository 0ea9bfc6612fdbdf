from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mesos_py import config_kinds as kinds
from mesos_py.address import Address
from mesos_py.config_kinds import Kind

ALL = [
    kinds.integer,
    kinds.number,
    kinds.port_number,
    kinds.duration_s,
    kinds.size_bytes,
    kinds.rate,
    kinds.percent,
    kinds.text,
    kinds.boolean,
    kinds.text_list,
    kinds.path,
    kinds.host_port,
    kinds.choice("drf", "lottery"),
]


@pytest.mark.parametrize(
    ("given_text", "seconds"),
    [
        ("10s", 10),
        ("0s", 0),
        ("0", 0),
        ("30", 30),
        ("1.5", 1.5),
        ("5m", 300),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("100us", 0.0001),
        ("1ns", 1e-9),
        ("1.5d", 129600),
        ("2w", 1209600),
        (" 10s ", 10),
        ("10secs", 10),
        ("2mins", 120),
        ("3hrs", 10800),
        ("1days", 86400),
        ("1weeks", 604800),
        ("0.1s", 0.1),
    ],
)
def test_durations(given_text: str, seconds: float) -> None:
    assert kinds.parse_duration(given_text) == seconds


@pytest.mark.parametrize(
    ("given_text", "reason"),
    [
        ("", "not a duration"),
        ("s", "not a duration"),
        ("-3s", "must not be negative"),
        ("-3", "must not be negative"),
        ("+3s", "not a duration"),
        ("10 s", "not a duration"),
        ("10S", "not a duration"),
        ("10parsecs", "'parsecs' is not a unit"),
        ("1e3s", "'e' is not a unit"),
        ("1e3", "not a duration"),
        ("nan", "not a duration"),
        ("inf", "not a duration"),
        ("infs", "not a duration"),
        (".5s", "not a duration"),
        ("1.s", "not a duration"),
        ("1..5s", "not a duration"),
        ("1_0s", "not a duration"),
        ("١s", "not a duration"),
        ("300000d", "longer than 292 years"),
        ("9" * 40, "longer than 292 years"),
        ("9" * 5000, "not a duration"),
    ],
)
def test_durations_that_are_none(given_text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        kinds.parse_duration(given_text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (30.0, "30s"),
        (5400.0, "90m"),
        (0.25, "250ms"),
        (86400.0, "1d"),
        (1.5, "1500ms"),
        (1e-9, "1ns"),
        (1e-10, "0.0000000001s"),
    ],
)
def test_durations_are_shown_short(seconds: float, text: str) -> None:
    assert kinds.duration_text(seconds) == text


@given(st.floats(0, kinds.MAX_DURATION_S))
@example(5e-324)
def test_each_duration_is_read_back_exactly(seconds: float) -> None:
    assert kinds.parse_duration(kinds.duration_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("given_text", "size"),
    [
        ("0", 0),
        ("1024", 1024),
        ("1B", 1),
        ("64KB", 65536),
        ("64 KiB", 65536),
        ("512MB", 2**29),
        ("512mib", 2**29),
        ("1.5GB", 3 * 2**29),
        ("2TB", 2**41),
        ("1PB", 2**50),
    ],
)
def test_sizes(given_text: str, size: int) -> None:
    assert kinds.parse_size(given_text) == size


@pytest.mark.parametrize(
    ("given_text", "reason"),
    [
        ("", "not a size"),
        ("MB", "not a size"),
        ("12M", "not a size"),
        ("12XB", "not a size"),
        ("12IB", "not a size"),
        ("-1MB", "must not be negative"),
        ("nan", "not a size"),
        ("inf", "not a size"),
        ("1e3", "not a size"),
        ("0.5B", "not a whole number of bytes"),
        ("0.1KB", "not a whole number of bytes"),
        ("9000PB", "larger than"),
        ("9" * 5000, "not a size"),
    ],
)
def test_sizes_that_are_none(given_text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        kinds.parse_size(given_text)


@given(st.integers(0, kinds.MAX_INTEGER))
def test_each_size_is_read_back_exactly(size: int) -> None:
    assert kinds.parse_size(kinds.size_text(size)) == size


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e400", "1e3", "", "0x10", "1_000", "٣"])
@pytest.mark.parametrize("kind", [kinds.integer, kinds.number])
def test_numbers_that_are_none(kind: Kind[float], text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        kind.parse(text)


def test_integers_fit_into_64_bits() -> None:
    assert kinds.integer.parse("-9223372036854775807") == -(2**63) + 1
    with pytest.raises(ValueError, match="larger than"):
        kinds.integer.parse("9223372036854775808")


@pytest.mark.parametrize("text", ["65536", "-1"])
def test_ports_have_a_range(text: str) -> None:
    with pytest.raises(ValueError, match="not a port"):
        kinds.port_number.parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("Yes", True), ("on", True), ("1", True), ("FALSE", False), ("0", False)],
)
def test_booleans(text: str, value: bool) -> None:
    assert kinds.boolean.parse(text) is value


def test_lists() -> None:
    assert kinds.text_list.parse("a, b,c") == ("a", "b", "c")
    assert kinds.text_list.parse("") == ()
    with pytest.raises(ValueError, match="empty item"):
        kinds.text_list.parse("a,,b")


def test_choices_are_found_in_any_case() -> None:
    kind = kinds.choice("drf", "Lottery")
    assert kind.parse("LOTTERY") == "Lottery"
    with pytest.raises(ValueError, match="not one of"):
        kind.parse("fifo")


def test_a_path_may_start_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert kinds.path.parse("~/work") == Path("/home/me/work")
    with pytest.raises(ValueError, match="must not be empty"):
        kinds.path.parse(" ")
    with pytest.raises(ValueError, match="null character"):
        kinds.path.parse("a\0b")


@pytest.mark.parametrize(
    ("kind", "native", "value"),
    [
        (kinds.integer, 3, 3),
        (kinds.number, 1e-7, 1e-7),
        (kinds.number, 3, 3.0),
        (kinds.duration_s, 30, 30.0),
        (kinds.duration_s, 0.25, 0.25),
        (kinds.size_bytes, 1024, 1024),
        (kinds.boolean, True, True),
        (kinds.text_list, ["a", "b"], ("a", "b")),
        (kinds.host_port, "a:1", Address("a", 1)),
    ],
)
def test_types_of_toml_that_fit(kind: Kind[object], native: object, value: object) -> None:
    assert kind.read(native) == value


@pytest.mark.parametrize(
    ("kind", "native"),
    [
        (kinds.integer, True),
        (kinds.integer, 1.5),
        (kinds.port_number, True),
        (kinds.text, 3),
        (kinds.path, 3),
        (kinds.boolean, 1),
        (kinds.duration_s, date(2024, 1, 1)),
        (kinds.number, float("nan")),
        (kinds.number, float("inf")),
        (kinds.duration_s, float("inf")),
        (kinds.text_list, [1]),
        (kinds.text_list, {"a": "b"}),
    ],
)
def test_types_of_toml_that_do_not_fit(kind: Kind[object], native: object) -> None:
    with pytest.raises(ValueError, match="must"):
        kind.read(native)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
@given(text=st.text() | st.from_regex(r"[-+0-9.a-zA-Z:,]{0,12}", fullmatch=True))
def test_any_text_is_refused_or_shown_and_read_back(kind: Kind[object], text: str) -> None:
    try:
        value = kind.parse(text)
    except ValueError:
        return
    except Exception as error:
        assert type(error).__name__ == "InvalidValue"  # noqa: PT017
        return
    assert kind.parse(kind.show(value)) == value


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (kinds.at_least(1), 1, 0),
        (kinds.at_most(1), 1, 2),
        (kinds.between(1, 2), 1.5, 2.5),
        (kinds.not_empty, "a", ""),
    ],
)
def test_checks(check, good: object, bad: object) -> None:
    check(good)
    with pytest.raises(ValueError, match="must"):
        check(bad)


# --- rates and shares ---------------------------------------------------------


@pytest.mark.parametrize(
    ("given_text", "rate", "shown"),
    [
        ("1/10mins", kinds.Rate(1, 600.0), "1/10m"),
        ("20/1h", kinds.Rate(20, 3600.0), "20/1h"),
        (" 3 / 30 ", kinds.Rate(3, 30.0), "3/30s"),
    ],
)
def test_rates(given_text: str, rate: kinds.Rate, shown: str) -> None:
    assert kinds.rate.read(given_text) == rate
    assert kinds.rate.show(rate) == shown
    assert kinds.rate.read(shown) == rate


@pytest.mark.parametrize(
    ("given_text", "reason"),
    [
        ("", "is not of the form N/DURATION"),
        ("10s", "is not of the form N/DURATION"),
        ("x/10s", "is not a whole number"),
        ("0/10s", "must allow at least 1"),
        ("-1/10s", "must allow at least 1"),
        ("1/", "is not a duration"),
        ("1/2/3s", "is not a duration"),
        ("1/0s", "must be for a time above zero"),
    ],
)
def test_texts_that_are_no_rates(given_text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        kinds.rate.read(given_text)


@pytest.mark.parametrize(
    ("given_value", "percent", "shown"),
    [("30%", 30.0, "30%"), ("100", 100.0, "100%"), (12.5, 12.5, "12.5%"), (" 0 ", 0.0, "0%")],
)
def test_shares(given_value: object, percent: float, shown: str) -> None:
    assert kinds.percent.read(given_value) == percent
    assert kinds.percent.show(percent) == shown
    assert kinds.percent.read(shown) == percent


@pytest.mark.parametrize("given_text", ["", "%", "101%", "-1%", "nan", "x"])
def test_texts_that_are_no_shares(given_text: str) -> None:
    with pytest.raises(ValueError, match=r"must be from 0% to 100%|is not a number"):
        kinds.percent.read(given_text)
