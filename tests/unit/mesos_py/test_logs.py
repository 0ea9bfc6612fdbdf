from __future__ import annotations

import io
import json
import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py import logs
from mesos_py.errors import InvalidValue

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture(autouse=True)
def restored():
    """Puts the process-wide state of logging back."""
    root, ours = logging.getLogger(), logging.getLogger(logs.ROOT)
    before = list(root.handlers), ours.level
    yield
    root.handlers[:], level = before
    ours.setLevel(level)


def written(fmt: str = "text", level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.setup(level, fmt, stream)
    return stream


def parsed(line: str) -> dict[str, str]:
    """The fields of a line, read as a program would that knows key=value."""
    pairs = re.findall(r'([A-Za-z0-9_.-]+)=("(?:[^"\\]|\\.)*"|[^\s"=\\]+)', line)
    return {key: json.loads(value) if value[0] == '"' else value for key, value in pairs}


def test_a_record_is_a_line_of_message_and_fields() -> None:
    stream = written()
    logs.get("master.api").info("agent registered", agent="S0", cpus=4.0, roles=["a", "b"])
    assert re.fullmatch(
        MOMENT + r' INFO master\.api agent registered agent=S0 cpus=4\.0 roles="a, b"\n',
        stream.getvalue(),
    )


def test_json_has_types() -> None:
    stream = written("json")
    logs.get("agent").warning(
        "task lost",
        task="t 1",
        cpus=0.5,
        tries=3,
        final=True,
        reason=None,
        ids=("a",),
        env={"A": 1},
    )
    line = json.loads(stream.getvalue())
    assert re.fullmatch(MOMENT, line.pop("time"))
    assert line == {
        "level": "warning",
        "logger": "agent",
        "message": "task lost",
        "task": "t 1",
        "cpus": 0.5,
        "tries": 3,
        "final": True,
        "reason": None,
        "ids": ["a"],
        "env": {"A": "1"},
    }


def test_a_field_hides_nothing_that_every_json_line_has() -> None:
    stream = written("json")
    logs.get("x").info("hello", message="mine", level=3)
    line = json.loads(stream.getvalue())
    assert (line["message"], line["message_"]) == ("hello", "mine")
    assert (line["level"], line["level_"]) == ("info", 3)


def test_bound_fields_come_first_and_the_nearest_wins() -> None:
    stream = written()
    log = logs.get("x").bind(agent="S0", epoch=1).bind(epoch=2)
    log.info("offer sent", offer="O1")
    log.info("offer sent", agent="S1")
    first, second = stream.getvalue().splitlines()
    assert first.endswith("offer sent agent=S0 epoch=2 offer=O1")
    assert second.endswith("offer sent agent=S1 epoch=2")


@given(st.text(max_size=300))
def test_any_value_is_one_line_and_read_back_exactly(value: str) -> None:
    event = str(logs.Event("something happened", {"before": 1, "value": value, "after": 2}))
    assert len(event.splitlines()) == 1
    assert event.isprintable()
    assert parsed(event) == {"before": "1", "value": value, "after": "2"}
    event.encode("utf-8")


@given(st.text(max_size=50), st.text(max_size=20))
def test_any_message_and_name_stay_on_one_line(message: str, name: str) -> None:
    event = str(logs.Event(message, {name: "x"}))
    assert len(f"{event}.".splitlines()) == 1
    event.encode("utf-8")


@given(st.text(max_size=300), st.text(max_size=300))
def test_json_lines_are_one_line_and_read_back_exactly(message: str, value: str) -> None:
    record = logging.LogRecord("mesos_py.x", 20, "", 1, logs.Event(message, {"v": value}), (), None)
    line = logs.JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert line.isascii()
    read = json.loads(line)
    assert (read["message"], read["v"]) == (message, value)


@pytest.mark.parametrize(
    "name",
    ["token", "JOIN_TOKEN", "password", "db_passwd", "secret", "credentials", "api_key", "apiKey"],
)
@pytest.mark.parametrize("fmt", ["text", "json"])
def test_secrets_never_get_out(name: str, fmt: str) -> None:
    stream = written(fmt)
    logs.get("x").info("joined", **{name: "hunter2", "environment": {name: "hunter2"}})
    assert "hunter2" not in stream.getvalue()
    assert stream.getvalue().count("***") == 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (0.1, "0.1"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ("", '""'),
        (b"\x00\xff", "00ff"),
        ({"a": 1}, '"a=1"'),
        ([], '""'),
        ("größe", "größe"),
        ('say "a\\b"', r'"say \"a\\b\""'),
        ("a\u2028b", r'"a\u2028b"'),
        ("\x7f\x1b[31m", r'"\u007f\u001b[31m"'),
    ],
)
def test_how_values_are_shown(value: object, shown: str) -> None:
    assert str(logs.Event("m", {"v": value})) == f"m v={shown}"


def test_a_value_that_cannot_be_shown_does_not_cost_the_record() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("broken")

    event = logs.Event("m", {"v": Broken(), "w": 1})
    assert str(event) == 'm v="<Broken that cannot be shown>" w=1'


def test_an_int_too_long_to_print_does_not_cost_the_record() -> None:
    assert str(logs.Event("m", {"v": 10**5000})) == 'm v="<int that cannot be shown>"'


def test_long_values_are_cut() -> None:
    event = logs.Event("m", {"text": "x" * 10**6, "many": range(3), "list": list(range(10**5))})
    assert len(str(event)) < 3 * logs.MAX_VALUE_CHARS


def test_an_exception_is_told_on_the_same_line() -> None:
    stream = written()
    try:
        raise ValueError("bad\nthing")
    except ValueError:
        logs.get("x").exception("callback failed", task="t1")
    (line,) = stream.getvalue().splitlines()
    fields = parsed(line)
    assert fields["error"] == "ValueError: bad\nthing"
    assert "test_logs.py" in fields["traceback"]
    assert fields["task"] == "t1"


def test_an_exception_in_json() -> None:
    stream = written("json")
    try:
        raise ValueError("bad")
    except ValueError:
        logs.get("x").exception("callback failed")
    assert json.loads(stream.getvalue())["error"] == "ValueError: bad"


def test_exception_outside_of_an_exception_is_an_error_without_one() -> None:
    stream = written()
    logs.get("x").exception("odd")
    assert stream.getvalue().endswith(" ERROR x odd\n")


def test_levels_are_kept_and_can_be_changed() -> None:
    stream = written(level="warning")
    log = logs.get("x")
    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d")
    assert not log.enabled(logging.INFO)
    logs.set_level("debug")
    assert log.enabled(logging.DEBUG)
    log.debug("e")
    assert [line[-1] for line in stream.getvalue().splitlines()] == ["c", "d", "e"]


def test_fields_are_not_rendered_when_the_level_is_off() -> None:
    written(level="info")

    class Costly:
        def __str__(self) -> str:
            raise AssertionError("was rendered")

    logs.get("x").debug("m", value=Costly())


def test_setup_again_replaces_its_own_handler_only() -> None:
    other = logging.NullHandler()
    logging.getLogger().addHandler(other)
    first, second = written(), written()
    logs.get("x").info("m")
    assert first.getvalue() == ""
    assert len(second.getvalue().splitlines()) == 1
    assert other in logging.getLogger().handlers


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_other_libraries_get_one_line_too(fmt: str) -> None:
    stream = written(fmt)
    logging.getLogger("kazoo.client").warning("lost %s\nand %d", "a", 1)
    logging.getLogger("kazoo.client").info("not of interest")
    (line,) = stream.getvalue().splitlines()
    assert r"lost a\nand 1" in line


def test_a_format_that_does_not_fit_its_arguments_does_not_cost_the_record() -> None:
    record = logging.LogRecord("kazoo", 30, "", 1, "lost %d of them", ("a",), None)
    assert logs.TextFormatter().format(record).endswith(" WARNING kazoo lost %d of them")


def test_without_setup_any_handler_shows_the_fields(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logs.ROOT):
        logs.get("x").info("agent registered", agent="S0")
    (record,) = caplog.records
    assert record.getMessage() == "agent registered agent=S0"
    assert record.filename == "test_logs.py"
    assert record.funcName == "test_without_setup_any_handler_shows_the_fields"


@pytest.mark.parametrize("arguments", [("loud", "text"), ("info", "xml")])
def test_unknown_levels_and_formats_are_refused(arguments: tuple[str, str]) -> None:
    with pytest.raises(InvalidValue, match="must be one of"):
        logs.setup(*arguments)
    with pytest.raises(InvalidValue, match="must be one of"):
        logs.set_level("loud")
