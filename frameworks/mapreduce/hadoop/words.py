"""Words of a sub-command of `fs`: its flags and paths, and how it says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, TextIO

from frameworks.mapreduce.hadoop.places import Place, expanded

FAILED: Final = 1
WRONG_USAGE: Final = 255
NO_SUCH_FILE: Final = "No such file or directory"


class WrongUsage(Exception):
    """The words of a command make no sense."""


class PathError(Exception):
    """Something is wrong with one path.  Others of the same command go on."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"`{path}': {reason}")


@dataclass(frozen=True, slots=True)
class Streams:
    """Of the process; tests have others."""

    stdin: BinaryIO
    stdout: BinaryIO
    stderr: TextIO

    def say(self, line: str) -> None:
        """A line on stdout."""
        self.stdout.write(line.encode(errors="surrogateescape") + b"\n")

    def complain(self, line: str) -> None:
        """A line on stderr."""
        self.stderr.write(f"{line}\n")
        self.stderr.flush()


class Call:
    """One call of a command: what it was given, and what has failed so far."""

    def __init__(
        self,
        name: str,
        flags: Mapping[str, str],
        args: Sequence[str],
        conf: Mapping[str, str],
        streams: Streams,
    ) -> None:
        self.name = name
        self.flags = flags
        self.args = args
        self.conf = conf
        self.streams = streams
        self.code = 0

    def say(self, line: str) -> None:
        self.streams.say(line)

    def failed(self, error: object) -> None:
        """Said with the command's name; the command goes on, and ends with 1."""
        self.streams.complain(f"{self.name}: {error}")
        self.code = FAILED

    def each(self, action: Callable[[Place], None], args: Sequence[str] | None = None) -> None:
        """`action` on all that the paths name; a path that names nothing is a fault."""
        for where in self.places(args):
            self.guarded(lambda where=where: action(where), where.shown)  # type: ignore[misc]

    def places(self, args: Sequence[str] | None = None) -> Iterator[Place]:
        for text in self.args if args is None else args:
            found = expanded(text, self.conf)
            if not found:
                self.failed(PathError(text, NO_SUCH_FILE))
            yield from found

    def guarded(self, action: Callable[[], None], shown: str) -> None:
        """What is wrong with one path does not keep the others from their turn."""
        try:
            action()
        except PathError as error:
            self.failed(error)
        except FileNotFoundError:
            self.failed(PathError(shown, NO_SUCH_FILE))
        except (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
            self.failed(PathError(shown, error.strerror or str(error)))
        except BrokenPipeError:
            raise
        except OSError as error:
            self.failed(f"{shown}: {error.strerror or error}")


@dataclass(frozen=True, slots=True)
class Command:
    """takes: flags, those with a value end with "=".  least, most: how many paths."""

    usage: str
    run: Callable[[Call], None]
    takes: tuple[str, ...] = ()
    least: int = 1
    most: int = 1_000_000


def parted(command: Command, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Flags and paths.  Raises WrongUsage."""
    flags: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        if word in command.takes:
            flags[word] = ""
        elif f"{word}=" in command.takes and rest:
            flags[word] = rest.pop(0)
        else:
            raise WrongUsage(f"Illegal option {word}")
    if len(rest) < command.least:
        raise WrongUsage(f"Not enough arguments: expected {command.least} but got {len(rest)}")
    if len(rest) > command.most:
        raise WrongUsage(f"Too many arguments: expected {command.most} but got {len(rest)}")
    return flags, rest
