"""Python functions as programs: what runs in the forked process (`frameworks.mapreduce.functions`
has the contract)."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Literal, TextIO

from frameworks.mapreduce.functions import (
    decoded_key,
    decoded_value,
    encoded_key,
    encoded_value,
    text_line,
    unpacked,
)
from frameworks.mapreduce.job import JobSpec
from mesos_py.errors import InvalidValue, shown

Role = Literal["mapper", "combiner", "reducer"]
Read = Callable[[bytes], Any]
Write = Callable[[Any, Any], bytes]

_BUFFER: Final = 1 << 20
# Keys and numbers that come again need not be written or read again: so many are kept, of keys
# those up to so many characters.
_KEPT: Final = 1 << 15
_KEPT_SIZE: Final = 64
_OWN_CODE: Final = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True, slots=True)
class Form:
    """coded: between map and reduce, keys and values are encoded (all programs of the job are
    functions); else they are plain text, for commands."""

    coded: bool

    @staticmethod
    def of(spec: JobSpec) -> Form:
        programs = (spec.mapper, spec.combiner, spec.reducer)
        return Form(
            spec.reduces > 0
            and spec.reducer is not None
            and all(program.function for program in programs if program is not None)
        )


def runner(
    function: bytes, role: Role, form: Form, cwd: Path, env: Mapping[str, str], word: int
) -> Callable[[], int]:
    """For a process of its own: reads stdin, writes stdout, returns the exit code.

    word: where it says, in decimals, how many groups of lines with the same key it has read (a
        mapper: 0), when it has come to its end and all is written.
    """

    def run() -> int:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.path.insert(0, str(cwd))
        sys.argv = [role]
        _own_streams()
        records = Records(os.fdopen(0, "rb", _BUFFER, closefd=False), form.coded)
        coded = form.coded and role != "reducer"
        write = coded_lines() if coded else text_line
        try:
            called = unpacked(function)
            made = records.mapped(called) if role == "mapper" else records.reduced(called)
            with os.fdopen(1, "wb", _BUFFER, closefd=False) as out:
                write_all(made, out, write)
        except BrokenPipeError:
            # Whoever reads it has gone: there is nobody to complain to.
            return 1
        except Exception as error:
            _explain(error, records.where)
            return 1
        except SystemExit as error:
            # What was yielded is written: whoever wants to stop there may.
            if error.code in (None, 0):
                os.write(word, b"%d" % records.groups)
            raise
        os.write(word, b"%d" % records.groups)
        return 0

    return run


def _own_streams() -> None:
    """What a function prints goes to the log: records are what it yields.  stderr has no buffer,
    so that reports come at once; stdout, which is a stream of its own, goes by lines, so that
    half of one does not get into a report."""
    sys.stdin = io.StringIO()
    sys.stderr = _log_stream(write_through=True)
    sys.stdout = _log_stream(line_buffering=True)


def _log_stream(*, write_through: bool = False, line_buffering: bool = False) -> TextIO:
    raw = os.fdopen(2, "wb", 0, closefd=False)
    return io.TextIOWrapper(
        raw,
        "utf-8",
        "backslashreplace",
        write_through=write_through,
        line_buffering=line_buffering,
    )


class Records:
    """stdin as calls of a function, and what these make.  where: the last record, in words.
    groups: how many keys a reducer was called with."""

    def __init__(self, stdin: BinaryIO, coded: bool) -> None:
        self._stdin = stdin
        self._read_key: Read = decoded_key if coded else _text
        self._read_value: Read = _values_decoded() if coded else _text
        self._number = 0
        self.groups = 0
        self._line = b""

    @property
    def where(self) -> str:
        return f"in line {self._number} that was read: {shown(self._line)}" if self._number else ""

    def mapped(self, mapper: Callable[[str], Any]) -> Iterator[Any]:
        for line in self._stdin:
            self._number += 1
            self._line = line
            made = mapper(str(line[:-1], "utf-8", "surrogateescape"))
            if made is not None:
                yield from made

    def reduced(self, reducer: Callable[[Any, Iterator[Any]], Any]) -> Iterator[Any]:
        self._next()
        while self._line:
            self.groups += 1
            key = self._line[:-1].partition(b"\t")[0]
            values = self._values(key)
            made = reducer(self._read_key(key), values)
            if made is not None:
                yield from made
            for _ in values:
                # It did not want them all.
                pass

    def _values(self, key: bytes) -> Iterator[Any]:
        """Leaves the first line of the next key in `_line`."""
        read, readline = self._read_value, self._stdin.readline
        with_tab = key + b"\t"
        alone = key + b"\n"
        skip = len(with_tab)
        line = self._line
        while line.startswith(with_tab) or line == alone:
            value = read(line[skip:-1])
            # Before the value is given away: it may be the last that is asked for.
            line = self._line = readline()
            self._number += 1
            yield value

    def _next(self) -> None:
        self._line = self._stdin.readline()
        self._number += 1


def _text(data: bytes) -> str:
    return str(data, "utf-8", "surrogateescape")


def coded_lines() -> Write:
    """Writes records as `encoded_key` and `encoded_value` do, and keeps what may come again."""
    keys: dict[str, bytes] = {}
    numbers: dict[int, bytes] = {}

    def line(key: Any, value: Any) -> bytes:
        front = keys.get(key) if type(key) is str else None
        if front is None:
            front = encoded_key(key) + b"\t"
            if type(key) is str and len(keys) < _KEPT and len(key) <= _KEPT_SIZE:
                keys[key] = front
        # By its type: a 1 is not True, though they are equal.
        end = numbers.get(value) if type(value) is int else None
        if end is None:
            end = encoded_value(value) + b"\n"
            if type(value) is int and len(numbers) < _KEPT and len(end) <= _KEPT_SIZE:
                numbers[value] = end
        return front + end

    return line


def _values_decoded() -> Read:
    """`decoded_value` that keeps numbers that may come again."""
    numbers: dict[bytes, int] = {}

    def read(data: bytes) -> Any:
        found = numbers.get(data)
        if found is not None:
            return found
        value = decoded_value(data)
        if type(value) is int and len(numbers) < _KEPT and len(data) <= _KEPT_SIZE:
            numbers[data] = value
        return value

    return read


def write_all(made: Iterator[Any], out: BinaryIO, line: Write) -> None:
    """Raises InvalidValue for a record that is no pair, or that cannot be written."""
    write = out.write
    for record in made:
        if (type(record) is not tuple and type(record) is not list) or len(record) != 2:
            raise InvalidValue("record", record, "must be a pair (tuple) of key and value")
        key, value = record
        write(line(key, value))


def _explain(error: BaseException, where: str) -> None:
    """The user's own frames: not those that called them.  The error is last, as ever."""
    if where:
        sys.stderr.write(f"[mapreduce] {where}\n")
    lines = traceback.format_exception(type(error), error, _of_user(error.__traceback__))
    sys.stderr.write("".join(lines))


def _of_user(frames: TracebackType | None) -> TracebackType | None:
    """From the first frame that is not ours; all, if there is none."""
    found = frames
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_OWN_CODE):
        found = found.tb_next
    return found


__all__ = ["Form", "Records", "Role", "coded_lines", "runner", "write_all"]
