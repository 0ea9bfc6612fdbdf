"""Hadoop Streaming's options: `-input DIR -mapper CMD ...`, in any order, read and checked.

What comes out (`Options`) says what the user has asked for; `submission.py` makes a job of
it.  Options that Hadoop has and we do not are refused with the reason, others with the
nearest name that there is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from frameworks.mapreduce import conf as properties
from mesos_py.errors import InvalidValue

_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JAVA_CLASS: Final = re.compile(r"(?:[a-z_]\w*\.){2,}[A-Z][\w$]*")
NO_REDUCER: Final = "NONE"
# A reduce that passes on what it reads: what Hadoop does when it is given no reducer.
IDENTITY: Final = "cat"
PARTITIONER_CLASS: Final = ("mapreduce.job.partitioner.class", "mapred.partitioner.class")


@dataclass(frozen=True, slots=True)
class Given:
    """A file or archive to ship: where it is, and the name that tasks find it under.

    option: by which it was given, for messages.
    """

    option: str
    source: str
    name: str
    archive: bool = False


@dataclass(slots=True)
class Options:
    """What was asked for.  `conf` has the properties by Hadoop's present names."""

    inputs: list[str] = field(default_factory=list)
    output: str = ""
    mapper: str = ""
    reducer: str | None = None
    combiner: str | None = None
    reduces: int = 1
    partitioner: str = "hash"
    input_format: str = "text"
    output_format: str = "text"
    lazy_output: bool = False
    shipped: list[Given] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    verbose: bool = False
    background: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """value: what the option takes, as shown; "" if it takes nothing."""

    name: str
    value: str
    help: str


OPTIONS: Final = {
    each.name: each
    for each in (
        Option("-input", "PATH[,PATH...]", "What maps read: files, directories or globs.  Again."),
        Option("-output", "PATH", "The directory to be made for what reduces write."),
        Option("-mapper", "COMMAND", "Reads lines of input, writes key-TAB-value."),
        Option("-reducer", "COMMAND|NONE", "Reads what maps wrote, in the order of keys."),
        Option("-combiner", "COMMAND", "A reducer for what one map has written."),
        Option("-file", "PATH", "A file for the tasks' directory.  Again."),
        Option("-files", "PATH[#NAME][,...]", "Files for the tasks' directory, by other names."),
        Option("-archives", "PATH[#NAME][,...]", "Archives to unpack there, each as a directory."),
        Option("-cacheFile", "PATH#NAME", "As -files, one at a time."),
        Option("-cacheArchive", "PATH#NAME", "As -archives, one at a time."),
        Option("-numReduceTasks", "N", "How many reduces; 0: what maps write is the output."),
        Option("-partitioner", "CLASS", "HashPartitioner or KeyFieldBasedPartitioner."),
        Option("-inputformat", "CLASS", "TextInputFormat or NLineInputFormat."),
        Option("-outputformat", "CLASS", "TextOutputFormat: lines."),
        Option("-lazyOutput", "", "No part for a task that has written nothing."),
        Option("-cmdenv", "NAME=VALUE", "A variable in the tasks' environment.  Again."),
        Option("-D", "NAME=VALUE", "A property of the job.  Again."),
        Option("-jobconf", "NAME=VALUE", "As -D."),
        Option("-background", "", "Submit the job and do not wait for it."),
        Option("-verbose", "", "Say more of what is done."),
        Option("-info", "", "Show these options and the properties."),
        Option("-help", "", "Show these options."),
    )
}

# Options of Hadoop's that are understood and not done; those without a value: False.
_NO_JAVA: Final = "there is no Java here"
REFUSED: Final[Mapping[str, tuple[bool, str]]] = {
    "-mapdebug": (True, "is not supported: the log of a failed attempt is shown by itself"),
    "-reducedebug": (True, "is not supported: the log of a failed attempt is shown by itself"),
    "-libjars": (True, f"is not supported: {_NO_JAVA}"),
    "-inputreader": (True, f"is not supported: {_NO_JAVA}"),
    "-io": (True, "is not supported: programs read and write lines of text"),
    "-conf": (True, "is not supported: give properties by -D"),
    "-fs": (True, "is not supported: give the file system in the paths"),
    "-jt": (True, "is not supported: say where the cluster is with --master or --tracker"),
    "-dfs": (True, "is not supported: give the file system in the paths"),
    "-additionalconfspec": (True, "is not supported: give properties by -D"),
}

_FLAGS: Final = {"-lazyOutput": "lazy_output"}
_PARTITIONERS: Final = {"HashPartitioner": "hash", "KeyFieldBasedPartitioner": "key-field"}
_INPUT_FORMATS: Final = {"TextInputFormat": "text", "NLineInputFormat": "nline"}
_OUTPUT_FORMATS: Final = {"TextOutputFormat": "text"}


class HelpWanted(Exception):
    """-help or -info was given; the text is the answer."""


def parse(words: Sequence[str]) -> Options:
    """Raises InvalidValue that names the option and what was given; HelpWanted."""
    reader = _Reader()
    rest = list(words)
    while rest:
        name, value = _next(rest)
        reader.take(name, value)
    return reader.finish()


def usage(*, with_properties: bool = False) -> str:
    """The options, and perhaps the properties, as text for people."""
    width = max(len(each.name) + len(each.value) + 1 for each in OPTIONS.values()) + 2
    lines = ["Options of jobs:"]
    for each in OPTIONS.values():
        lines.append(f"  {f'{each.name} {each.value}':<{width}}{each.help}")
    if with_properties:
        lines += ["", "Properties (-D NAME=VALUE):"]
        for known in properties.ALL.values():
            default = known.default if known.default != "" else "(none)"
            lines.append(f"  {known.name}  [default: {_shown(default)}]")
            lines.append(f"      {known.help}")
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if value == "\t" else str(value)


def _next(rest: list[str]) -> tuple[str, str]:
    """Takes an option and its value from the front.  Raises InvalidValue."""
    word = rest.pop(0)
    # -Dname=value in one word, as for Java.
    if word.startswith("-D") and len(word) > 2 and "=" in word:
        return "-D", word[2:]
    if word in REFUSED:
        takes, why = REFUSED[word]
        raise InvalidValue(word, rest[0] if takes and rest else "", why)
    option = OPTIONS.get(word) or OPTIONS.get(_single_dash(word))
    if option is None:
        raise _unknown(word)
    if not option.value:
        return option.name, ""
    if not rest:
        raise InvalidValue(word, "", f"needs a value: {option.value}")
    return option.name, rest.pop(0)


def _single_dash(word: str) -> str:
    return word[1:] if word.startswith("--") else word


def _unknown(word: str) -> InvalidValue:
    if not word.startswith("-"):
        return InvalidValue("options", word, "is not an option, and no option takes it")
    near = difflib.get_close_matches(word, [*OPTIONS, *REFUSED], n=1, cutoff=0.0)
    return InvalidValue("options", word, f"is not an option; the nearest is {near[0]}")


class _Reader:
    """Collects options; `finish` checks them as a whole."""

    def __init__(self) -> None:
        self._options = Options()
        self._conf: dict[str, str] = {}
        self._once: set[str] = set()
        self._reduces: str | None = None
        self._partitioner: str | None = None

    def take(self, name: str, value: str) -> None:
        self._actions()[name](name, value)

    def _actions(self) -> Mapping[str, Callable[[str, str], None]]:
        return {
            "-input": self._input,
            "-output": self._text,
            "-mapper": self._text,
            "-reducer": self._text,
            "-combiner": self._text,
            "-file": self._file,
            "-files": self._files,
            "-archives": self._files,
            "-cacheFile": self._cached,
            "-cacheArchive": self._cached,
            "-numReduceTasks": self._number,
            "-partitioner": self._class,
            "-inputformat": self._format,
            "-outputformat": self._format,
            "-cmdenv": self._variable,
            "-D": self._property,
            "-jobconf": self._property,
            "-lazyOutput": self._flag,
            "-background": self._flag,
            "-verbose": self._flag,
            "-info": self._help,
            "-help": self._help,
        }

    def _input(self, name: str, value: str) -> None:
        found = [path for path in parts_of(value) if path]
        if not found:
            raise InvalidValue(name, value, "must not be empty")
        self._options.inputs += found

    def _text(self, name: str, value: str) -> None:
        self._only_once(name, value)
        if not value.strip():
            raise InvalidValue(name, value, "must not be empty")
        if name != "-output" and (_JAVA_CLASS.fullmatch(value) or value == "aggregate"):
            raise InvalidValue(name, value, f"is a Java class, and {_NO_JAVA}: give a program")
        setattr(self._options, name[1:], value)

    def _only_once(self, name: str, value: str) -> None:
        if name in self._once:
            raise InvalidValue(name, value, "is given twice")
        self._once.add(name)

    def _file(self, name: str, value: str) -> None:
        # No #NAME here: in Hadoop, too, it is a part of the path.
        self._ship(Given(name, value, _base_name(value)))

    def _files(self, name: str, value: str) -> None:
        for item in value.split(","):
            if item:
                self._ship(given(name, item, archive=name == "-archives"))

    def _cached(self, name: str, value: str) -> None:
        self._ship(given(name, value, archive=name == "-cacheArchive"))

    def _ship(self, item: Given) -> None:
        self._options.shipped = check_names([*self._options.shipped, item])

    def _number(self, name: str, value: str) -> None:
        properties.REDUCES.parse(name, value)
        self._reduces = value.strip()

    def _class(self, name: str, value: str) -> None:
        self._partitioner = value

    def _format(self, name: str, value: str) -> None:
        if name == "-inputformat":
            self._options.input_format = _short(name, value, _INPUT_FORMATS)
        else:
            self._options.output_format = _short(name, value, _OUTPUT_FORMATS)

    def _variable(self, name: str, value: str) -> None:
        key, equals, text = value.partition("=")
        if not equals or not _ENV_NAME.fullmatch(key) or "\0" in text:
            raise InvalidValue(name, value, "must be NAME=VALUE")
        self._options.env[key] = text

    def _property(self, name: str, value: str) -> None:
        key, equals, text = value.partition("=")
        if not equals or not key.strip():
            raise InvalidValue(name, value, "must be NAME=VALUE")
        # The last one counts, by whichever name it is given.
        key = key.strip()
        present = properties.OLD.get(key, key)
        self._conf[present] = text

    def _flag(self, name: str, value: str) -> None:
        setattr(self._options, _FLAGS.get(name, name[1:]), True)

    def _help(self, name: str, value: str) -> None:
        raise HelpWanted(usage(with_properties=name == "-info"))

    def finish(self) -> Options:
        """Raises InvalidValue."""
        options = self._options
        if self._reduces is not None:
            self._conf[properties.REDUCES.name] = self._reduces
        options.conf = properties.normalised(self._conf)
        options.reduces = properties.REDUCES.of(options.conf)
        for name, value, hint in (
            ("-input", options.inputs, "PATH"),
            ("-output", options.output, "PATH"),
            ("-mapper", options.mapper, "COMMAND; cat passes lines on as they are"),
        ):
            if not value:
                raise InvalidValue(name, "", f"must be given: {name} {hint}")
        _settle_reduces(options)
        options.partitioner = self._chosen_partitioner(options.conf)
        return options

    def _chosen_partitioner(self, conf: Mapping[str, str]) -> str:
        given_by = [("-partitioner", self._partitioner)]
        given_by += [(name, conf.get(name)) for name in PARTITIONER_CLASS]
        for name, text in given_by:
            if text is not None:
                return _short(name, text, _PARTITIONERS)
        return "hash"


def _settle_reduces(options: Options) -> None:
    if options.reducer == NO_REDUCER:
        options.reduces = 0
    if options.reduces == 0:
        options.reducer = options.combiner = None
    elif options.reducer is None:
        options.reducer = IDENTITY
    options.conf[properties.REDUCES.name] = str(options.reduces)


def given(option: str, text: str, *, archive: bool = False) -> Given:
    """PATH#NAME parted; without a name it is the last part of the path."""
    source, mark, name = text.partition("#")
    if not source:
        raise InvalidValue(option, text, "must not be empty")
    if mark and (not name or "/" in name):
        raise InvalidValue(option, text, "the name after # must be one without slashes")
    return Given(option, source, name if mark else _base_name(source), archive)


def check_names(shipped: Sequence[Given]) -> list[Given]:
    """Without what is there twice.  Raises InvalidValue for two that have one name."""
    kept: dict[str, Given] = {}
    for item in shipped:
        if not item.name or item.name in (".", ".."):
            raise InvalidValue(item.option, item.source, "has no name to be found under")
        other = kept.setdefault(item.name, item)
        if other.source != item.source or other.archive != item.archive:
            raise InvalidValue(
                item.option,
                item.source,
                f"has the name {item.name!r}, as {other.source!r} of {other.option} has; "
                f"give one of them another by -files PATH#NAME",
            )
    return list(kept.values())


def parts_of(text: str) -> list[str]:
    """Parted at commas, but not at those within braces nor after a backslash: `a,b{c,d}` is `a`
    and `b{c,d}`."""
    parts, depth, begin, escaped = [], 0, 0, False
    for index, char in enumerate(text):
        if escaped or char == "\\":
            escaped = not escaped
        elif char == "{":
            depth += 1
        elif char == "}":
            depth = max(0, depth - 1)
        elif char == "," and depth == 0:
            parts.append(text[begin:index])
            begin = index + 1
    parts.append(text[begin:])
    return [part.strip() for part in parts]


def _base_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _short(name: str, text: str, known: Mapping[str, str]) -> str:
    """A class by its full or short name."""
    short = text.rpartition(".")[2]
    found = known.get(short)
    if found is None:
        raise InvalidValue(name, text, f"must be {_alternatives(known)}")
    return found


def _alternatives(words: Iterable[str]) -> str:
    return " or ".join(words)
