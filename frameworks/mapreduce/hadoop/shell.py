"""`hadoop fs`: files by Hadoop's words, with its output and exit codes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

from frameworks.mapreduce.hadoop import content, listing, tree
from frameworks.mapreduce.hadoop.words import (
    FAILED,
    WRONG_USAGE,
    Call,
    Command,
    PathError,
    Streams,
    WrongUsage,
    parted,
)
from mesos_py.errors import MesosPyError

_PUT: Final = ("-f", "-p", "-l", "-d", "-t=", "-q=")
_GET: Final = ("-f", "-p", "-ignoreCrc", "-crc", "-t=", "-q=")
_LS: Final = ("-C", "-d", "-h", "-q", "-R", "-t", "-S", "-r", "-u", "-e")
_DU: Final = ("-s", "-h", "-v", "-x")
_RM: Final = ("-f", "-r", "-R", "-skipTrash", "-safely")

COMMANDS: Final[Mapping[str, Command]] = {
    "-cat": Command("[-ignoreCrc] <src> ...", content.cat, ("-ignoreCrc",)),
    "-copyFromLocal": Command("[-f] <localsrc> ... <dst>", content.put, _PUT, 2),
    "-copyToLocal": Command("[-f] <src> ... <localdst>", content.get, _GET),
    "-count": Command("[-h] [-v] <path> ...", listing.count, ("-h", "-v", "-q")),
    "-cp": Command("[-f] <src> ... <dst>", tree.cp, ("-f", "-p", "-d"), 2),
    "-du": Command("[-s] [-h] [-v] <path> ...", listing.du, _DU, 0),
    "-dus": Command("<path> ...", listing.dus, _DU, 0),
    "-get": Command("[-f] <src> ... <localdst>", content.get, _GET),
    "-getmerge": Command(
        "[-nl] [-skip-empty-file] <src> ... <localdst>",
        content.getmerge,
        ("-nl", "-skip-empty-file"),
        2,
    ),
    "-head": Command("<file>", content.head),
    "-ls": Command("[-C] [-d] [-h] [-R] [-t] [-S] [-r] [<path> ...]", listing.ls, _LS, 0),
    "-lsr": Command("[<path> ...]", listing.lsr, _LS, 0),
    "-mkdir": Command("[-p] <path> ...", tree.mkdir, ("-p",)),
    "-moveFromLocal": Command("<localsrc> ... <dst>", content.move_from_local, _PUT, 2),
    "-mv": Command("<src> ... <dst>", tree.mv, (), 2),
    "-put": Command("[-f] <localsrc> ... <dst>", content.put, _PUT, 2),
    "-rm": Command("[-f] [-r|-R] [-skipTrash] <src> ...", tree.rm, _RM),
    "-rmdir": Command("<dir> ...", tree.rmdir, ("--ignore-fail-on-non-empty",)),
    "-rmr": Command("<src> ...", tree.rmr, _RM),
    "-stat": Command("[format] <path> ...", listing.stat),
    "-tail": Command("<file>", content.tail),
    "-test": Command(
        "-[defszrw] <path>", listing.test, ("-d", "-e", "-f", "-s", "-z", "-r", "-w"), 1, 1
    ),
    "-text": Command("[-ignoreCrc] <src> ...", content.text, ("-ignoreCrc",)),
    "-touchz": Command("<path> ...", tree.touchz),
}


def run(words: Sequence[str], conf: Mapping[str, str], streams: Streams) -> int:
    """One command, as `-ls -R DIR`; the exit code."""
    rest = list(words)
    # Generic options of Hadoop's come first, and say nothing that matters to files here.
    while rest and rest[0] in ("-D", "-conf", "-fs", "-jt"):
        del rest[:2]
    if not rest or rest[0] in ("-help", "-usage"):
        _help(rest[1:], streams)
        return 0 if rest else WRONG_USAGE
    name = rest.pop(0)
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        streams.complain(f"{name.lstrip('-')}: Unknown command{hint}")
        return WRONG_USAGE
    return _call(name, command, rest, conf, streams)


def _call(
    name: str, command: Command, words: Sequence[str], conf: Mapping[str, str], streams: Streams
) -> int:
    short = name.lstrip("-")
    try:
        flags, args = parted(command, words)
        call = Call(short, flags, args, conf, streams)
        command.run(call)
        streams.stdout.flush()
    except WrongUsage as error:
        streams.complain(f"{name}: {error}")
        streams.complain(f"Usage: hadoop fs [generic options] {name} {command.usage}")
        return WRONG_USAGE
    except (PathError, MesosPyError) as error:
        streams.complain(f"{short}: {error}")
        return FAILED
    except BrokenPipeError:
        return FAILED
    except OSError as error:
        streams.complain(f"{short}: {error.filename or ''}: {error.strerror or error}")
        return FAILED
    return call.code


def _help(names: Sequence[str], streams: Streams) -> None:
    for name, command in COMMANDS.items():
        if not names or name in names or name.lstrip("-") in names:
            streams.say(f"hadoop fs {name} {command.usage}")
