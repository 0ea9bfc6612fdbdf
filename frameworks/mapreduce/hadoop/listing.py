"""Commands of `fs` that tell of files: ls, du, count, stat, test."""

from __future__ import annotations

import datetime
import grp
import pwd
import stat as modes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frameworks.mapreduce.hadoop.places import Place, expanded
from frameworks.mapreduce.hadoop.words import FAILED, Call, PathError, WrongUsage

Info = Mapping[str, Any]
_UNITS: Final = ("", " K", " M", " G", " T", " P")


@dataclass(frozen=True, slots=True)
class Row:
    """A file or directory as `ls` shows it."""

    where: Place
    directory: bool
    mode: int
    owner: str
    group: str
    size: int
    changed_s: float

    @property
    def permissions(self) -> str:
        return ("d" if self.directory else "-") + modes.filemode(self.mode)[1:]


def row_of(where: Place, info: Info | None = None) -> Row:
    """Raises FileNotFoundError."""
    found = info if info is not None else where.fs.info(where.path)
    directory = found.get("type") == "directory"
    default = 0o755 if directory else 0o644
    return Row(
        where=where,
        directory=directory,
        mode=modes.S_IMODE(int(found.get("mode", default))),
        owner=_name(pwd.getpwuid, found.get("uid")),
        group=_group(found.get("gid")),
        size=0 if directory else int(found.get("size") or 0),
        changed_s=seconds(found),
    )


def seconds(info: Info) -> float:
    """When it was changed; file systems say that in several ways."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = info.get(key)
        if isinstance(value, datetime.datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
    return 0.0


def _name(look_up: Callable[[int], Any], number: object) -> str:
    if not isinstance(number, int):
        return "nobody"
    try:
        return str(look_up(number)[0])
    except KeyError:
        return str(number)


def _group(number: object) -> str:
    return _name(grp.getgrgid, number)


def _size(size: int, call: Call) -> str:
    if "-h" not in call.flags:
        return str(size)
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f}".removesuffix(".0") + _UNITS[unit]


# ---- ls ------------------------------------------------------------------------------------


def ls(call: Call) -> None:
    """Long rows; of a directory what is in it."""
    args = call.args or ["."]
    together: list[Row] = []

    def one(where: Place) -> None:
        row = row_of(where)
        if not row.directory or "-d" in call.flags:
            _print_rows(call, [row])
        elif "-R" in call.flags:
            together.extend(_below(where, call))
        else:
            rows = _ordered(
                [row_of(where.child(_path(each)), each) for each in where.listing()], call
            )
            if rows and "-C" not in call.flags:
                call.say(f"Found {len(rows)} items")
            _print_rows(call, rows)

    call.each(one, args)
    _print_rows(call, together)


def lsr(call: Call) -> None:
    """The old name of ls -R."""
    call.streams.complain("lsr: DEPRECATED: Please use 'ls -R' instead.")
    call.flags = {**call.flags, "-R": ""}
    ls(call)


def _path(info: Info) -> str:
    return str(info["name"]).rstrip("/")


def _below(where: Place, call: Call) -> Iterator[Row]:
    rows = [row_of(where.child(_path(each)), each) for each in where.listing()]
    for row in _ordered(rows, call):
        yield row
        if row.directory:
            yield from _below(row.where, call)


def _ordered(rows: list[Row], call: Call) -> list[Row]:
    if "-t" in call.flags:
        rows = sorted(rows, key=lambda row: -row.changed_s)
    elif "-S" in call.flags:
        rows = sorted(rows, key=lambda row: -row.size)
    return rows[::-1] if "-r" in call.flags else rows


def _print_rows(call: Call, rows: Sequence[Row]) -> None:
    if "-C" in call.flags:
        for row in rows:
            call.say(row.where.shown)
        return
    sizes = [_size(row.size, call) for row in rows]
    owner_width = max((len(row.owner) for row in rows), default=0)
    group_width = max((len(row.group) for row in rows), default=0)
    size_width = max([10, *(len(size) for size in sizes)])
    for row, size in zip(rows, sizes, strict=True):
        copies = "-" if row.directory else "1"
        when = datetime.datetime.fromtimestamp(row.changed_s).astimezone()
        call.say(
            f"{row.permissions} {copies:>3} {row.owner:<{owner_width}} {row.group:<{group_width}} "
            f"{size:>{size_width}} {when:%Y-%m-%d %H:%M} {row.where.shown}"
        )


# ---- du, count -----------------------------------------------------------------------------


@dataclass(slots=True)
class Sum:
    directories: int = 0
    files: int = 0
    size: int = 0


def sum_of(where: Place) -> Sum:
    """Of a file, or of all below a directory and itself."""
    found = Sum()
    info = where.fs.info(where.path)
    if info["type"] != "directory":
        found.files, found.size = 1, int(info.get("size") or 0)
        return found
    found.directories = 1
    for _, directories, named in where.fs.walk(where.path, detail=True):
        found.directories += len(directories)
        found.files += len(named)
        found.size += sum(int(each.get("size") or 0) for each in named.values())
    return found


def du(call: Call) -> None:
    """Sizes of what is in a directory, or with -s of each path as a whole."""
    lines: list[tuple[str, str]] = []

    def one(where: Place) -> None:
        whole = "-s" in call.flags or where.fs.info(where.path)["type"] != "directory"
        for each in [where] if whole else where.children():
            lines.append((_size(sum_of(each).size, call), each.shown))

    call.each(one, call.args or ["."])
    if "-v" in call.flags and lines:
        call.say("SIZE  DISK_SPACE_CONSUMED_WITH_ALL_REPLICAS  FULL_PATH_NAME")
    width = max((len(size) for size, _ in lines), default=0)
    for size, shown in lines:
        call.say(f"{size:<{width}}  {size:<{width}}  {shown}")


def dus(call: Call) -> None:
    """The old name of du -s."""
    call.streams.complain("dus: DEPRECATED: Please use 'du -s' instead.")
    call.flags = {**call.flags, "-s": ""}
    du(call)


def count(call: Call) -> None:
    """How many directories, files and bytes there are at and below each path."""
    if "-v" in call.flags:
        call.say(f"{'DIR_COUNT':>12} {'FILE_COUNT':>12} {'CONTENT_SIZE':>18} PATHNAME")

    def one(where: Place) -> None:
        found = sum_of(where)
        size = _size(found.size, call)
        call.say(f"{found.directories:>12} {found.files:>12} {size:>18} {where.shown}")

    call.each(one)


# ---- stat, test ----------------------------------------------------------------------------


def stat(call: Call) -> None:
    """Facts of each path by a form like "%n %b %y"."""
    form, args = "%y", list(call.args)
    if len(args) > 1 and "%" in args[0]:
        form = args.pop(0)

    def one(where: Place) -> None:
        call.say(_filled(form, row_of(where)))

    call.each(one, args)


def _filled(form: str, row: Row) -> str:
    when = datetime.datetime.fromtimestamp(row.changed_s, datetime.UTC)
    known = {
        "a": f"{row.mode:o}",
        "A": row.permissions[1:],
        "b": str(row.size),
        "F": "directory" if row.directory else "regular file",
        "g": row.group,
        "n": row.where.name,
        "o": str(128 * 1024 * 1024 if not row.directory else 0),
        "r": "0" if row.directory else "1",
        "u": row.owner,
        "y": f"{when:%Y-%m-%d %H:%M:%S}",
        "Y": str(int(row.changed_s * 1000)),
        "%": "%",
    }
    parts, rest = [], form
    while rest:
        head, mark, rest = rest.partition("%")
        parts.append(head)
        if mark and rest:
            parts.append(known.get(rest[0], f"%{rest[0]}"))
            rest = rest[1:]
        elif mark:
            parts.append(mark)
    return "".join(parts)


def test(call: Call) -> None:
    """Ends with 0 if the path is what the flag asks, else with 1."""
    asked = [flag for flag in call.flags if flag != "-w"]
    if len(call.flags) != 1:
        raise WrongUsage("give one of -d -e -f -s -z -r -w")
    found = expanded(call.args[0], call.conf)
    call.code = 0
    if not found:
        call.code = FAILED
        return
    row = row_of(found[0])
    if row.directory and asked == ["-s"]:
        holds = bool(found[0].listing())
    else:
        holds = {
            "-d": row.directory,
            "-f": not row.directory,
            "-s": row.size > 0,
            "-z": not row.directory and row.size == 0,
        }.get(asked[0] if asked else "-w", True)
    call.code = 0 if holds else FAILED


__all__ = [
    "PathError",
    "Row",
    "count",
    "du",
    "dus",
    "ls",
    "lsr",
    "row_of",
    "stat",
    "sum_of",
    "test",
]
