"""Structured logs on the standard library's logging.

::

    log = logs.get("master.api")
    log.info("agent registered", agent=agent_id, cpus=4.0)
    link = log.bind(agent=agent_id)

The message is constant, lower case and without a final period; what varies is in
the fields.  One record is always one line, whatever the values hold.  Values of
fields whose names look like secrets never get out.

Libraries call `get` only; `setup` is for the main function of a program.  Without it
the records go to whatever handlers the program has, fields included.
"""

from __future__ import annotations

import io
import json
import logging
import math
import re
import sys
import time
import traceback
from collections.abc import Mapping
from itertools import islice
from typing import Final, TextIO

from mesos_py.errors import InvalidValue

ROOT: Final = "mesos_py"
LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")

MAX_VALUE_CHARS: Final = 1000
MAX_ITEMS: Final = 100
MAX_TRACEBACK_CHARS: Final = 20_000

_SECRET = re.compile(r"token|passw|secret|credential|api_?key|private_?key", re.IGNORECASE)
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]")
# Text that can stand without quotes and still be told apart from its neighbours.
_BARE = re.compile(r"""[^\s"'=\\]+""")
HIDDEN: Final = "***"


class Event:
    """The `msg` of our records: a constant message with its fields.

    Its text form is complete, so that handlers that know nothing of us show all.
    """

    __slots__ = ("fields", "message")

    def __init__(self, message: str, fields: Mapping[str, object]) -> None:
        self.message = message
        self.fields = fields

    def __str__(self) -> str:
        return one_line(self.message) + "".join(
            f" {_name(name)}={_text(name, value)}" for name, value in self.fields.items()
        )


class Logger:
    """A logger with fields that every record of it carries."""

    __slots__ = ("_bound", "_logger")

    def __init__(self, logger: logging.Logger, bound: Mapping[str, object]) -> None:
        self._logger = logger
        self._bound = bound

    def bind(self, **fields: object) -> Logger:
        """A logger that adds `fields` to each record; the later of two equal names wins."""
        return Logger(self._logger, {**self._bound, **fields})

    def enabled(self, level: int) -> bool:
        """Whether a record of this level would go anywhere: for fields that cost something."""
        return self._logger.isEnabledFor(level)

    def debug(self, message: str, /, **fields: object) -> None:
        if self._logger.isEnabledFor(logging.DEBUG):
            self._log(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        if self._logger.isEnabledFor(logging.INFO):
            self._log(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        if self._logger.isEnabledFor(logging.WARNING):
            self._log(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: object) -> None:
        if self._logger.isEnabledFor(logging.ERROR):
            self._log(logging.ERROR, message, fields)

    def exception(self, message: str, /, **fields: object) -> None:
        """An error with the exception that is being handled, and where it came from."""
        if self._logger.isEnabledFor(logging.ERROR):
            self._log(logging.ERROR, message, fields, exc_info=True)

    def _log(
        self, level: int, message: str, fields: dict[str, object], exc_info: bool = False
    ) -> None:
        event = Event(message, {**self._bound, **fields} if self._bound else fields)
        # Level 3: this method, the one for the level, and then the caller's line.
        self._logger.log(level, event, exc_info=exc_info, stacklevel=3)


def get(name: str) -> Logger:
    """The logger for a part of the system, such as "master.api"."""
    return Logger(logging.getLogger(f"{ROOT}.{name}"), {})


def setup(level: str = "info", fmt: str = "text", stream: TextIO | None = None) -> None:
    """Send the records of this process to `stream` (stderr), ours from `level` on.

    Those of other libraries from "warning" on.  Called again, it replaces what it
    set up before.  Raises InvalidValue for an unknown level or format.
    """
    if level.lower() not in LEVELS:
        raise InvalidValue("log-level", level, f"must be one of {', '.join(LEVELS)}")
    if fmt not in FORMATS:
        raise InvalidValue("log-format", fmt, f"must be one of {', '.join(FORMATS)}")
    handler = _Handler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter() if fmt == "json" else TextFormatter())
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    set_level(level)


def set_level(level: str) -> None:
    """Change from which level on our records are kept; for the operator's call."""
    if level.lower() not in LEVELS:
        raise InvalidValue("log-level", level, f"must be one of {', '.join(LEVELS)}")
    logging.getLogger(ROOT).setLevel(level.upper())


def level() -> str:
    """From which level on our records are kept."""
    number = logging.getLogger(ROOT).getEffectiveLevel()
    known = {each: logging.getLevelNamesMapping()[each.upper()] for each in LEVELS}
    return next((each for each, least in known.items() if number <= least), LEVELS[-1])


class _Handler(logging.StreamHandler[TextIO]):
    """Our own type, so that `setup` finds what it has set up before."""


class TextFormatter(logging.Formatter):
    """`2024-05-06T07:08:09.123Z INFO master.api agent registered agent=S0 cpus=4.0`."""

    def format(self, record: logging.LogRecord) -> str:
        text = str(record.msg) if isinstance(record.msg, Event) else one_line(_message(record))
        parts = [_moment(record), record.levelname, record.name.removeprefix(f"{ROOT}."), text]
        parts += [f"{name}={quoted(value)}" for name, value in _trouble(record).items()]
        return " ".join(parts)


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, logger, message, and the fields beside them."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name.removeprefix(f"{ROOT}."),
        }
        if isinstance(record.msg, Event):
            line["message"] = record.msg.message
            for name, value in record.msg.fields.items():
                # A field never hides what every line has.
                key = f"{name}_" if name in line else name
                line[key] = HIDDEN if _SECRET.search(name) else _plain(value)
        else:
            line["message"] = _message(record)
        line.update(_trouble(record))
        # Pure ASCII: no terminal, file or shipper takes U+2028 for a new line.
        return json.dumps(line)


def quoted(text: str) -> str:
    """`text` as a value of key=value: bare if that is plain, else a JSON string."""
    if _BARE.fullmatch(text) and text.isprintable():
        return text
    # Characters that print are kept as they are, for people who read the log.
    return json.dumps(text, ensure_ascii=not text.isprintable())


def one_line(text: str) -> str:
    """`text` itself if it is printable, else with its control characters escaped."""
    return text if text.isprintable() else json.dumps(text)[1:-1]


def _name(name: str) -> str:
    return _NOT_IN_NAME.sub("_", name) or "_"


def _text(name: str, value: object) -> str:
    if _SECRET.search(name):
        return HIDDEN
    match _plain(value):
        case str() as plain:
            return quoted(plain)
        case list() as items:
            return quoted(", ".join(items))
        case dict() as pairs:
            return quoted(", ".join(f"{key}={each}" for key, each in pairs.items()))
        case other:
            return json.dumps(other)


def _plain(value: object) -> object:
    """`value` made of what JSON knows; never raises, never long, no secrets inside."""
    if value is None or isinstance(value, bool):
        return value
    # Python refuses to print an int of thousands of digits.
    if isinstance(value, int) and value.bit_length() <= 128:
        return value
    if isinstance(value, float):
        # JSON has no NaN and no infinity; many readers refuse the whole line.
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {
            (name := _clipped(_safe_str(key))): (
                HIDDEN if _SECRET.search(name) else _clipped(_safe_str(each))
            )
            for key, each in islice(value.items(), MAX_ITEMS)
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clipped(_safe_str(each)) for each in islice(value, MAX_ITEMS)]
    if isinstance(value, (bytes, bytearray)):
        return _clipped(value.hex())
    return _clipped(_safe_str(value))


def _safe_str(value: object) -> str:
    try:
        return str(value)
    except Exception:
        # A value that cannot be shown must not cost us the record.
        return f"<{type(value).__name__} that cannot be shown>"


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"


def _moment(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:
        # Another library's format string and arguments that do not fit.
        return _safe_str(record.msg)


def _trouble(record: logging.LogRecord) -> dict[str, str]:
    """The exception of a record as fields: what it says, and where it came from."""
    if not record.exc_info or record.exc_info[1] is None:
        return {}
    error = record.exc_info[1]
    out = io.StringIO()
    traceback.print_exception(error, file=out)
    # The end is what matters: the innermost frame and the error.
    trace = out.getvalue().strip()[-MAX_TRACEBACK_CHARS:]
    return {"error": _clipped(f"{type(error).__name__}: {_safe_str(error)}"), "traceback": trace}
