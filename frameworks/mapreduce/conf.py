"""Properties of jobs (`-D name=value`): names, types and defaults, each declared once.

Names are Hadoop's present ones, and its older ones are taken as well; what Hadoop does not
have begins with `mesos.`.  A property that nobody here reads is kept and shown to the
program (as Hadoop does, see `data`), so that programs may have their own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from mesos_py.errors import InvalidValue

T = TypeVar("T")

# No more digits than any limit has: int() of thousands is an error of its own.
_WHOLE: Final = re.compile(r"-?[0-9]{1,25}")


@dataclass(frozen=True, slots=True)
class Property(Generic[T]):
    """old: names that Hadoop had for it before."""

    name: str
    parse: Callable[[str, str], T]
    default: T
    help: str
    old: tuple[str, ...] = ()

    def of(self, conf: Mapping[str, str]) -> T:
        """Raises InvalidValue that names the property and the value."""
        text = conf.get(self.name)
        return self.default if text is None else self.parse(self.name, text)


def _text(name: str, text: str) -> str:
    return text


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidValue(name, text, "must be true or false")
    return text.lower() == "true"


def _whole(least: int, most: int = 2**62) -> Callable[[str, str], int]:
    def parse(name: str, text: str) -> int:
        if not _WHOLE.fullmatch(text.strip()) or not least <= int(text) <= most:
            raise InvalidValue(name, text, f"must be a whole number from {least} to {most}")
        return int(text)

    return parse


def _amount(least: float, most: float) -> Callable[[str, str], float]:
    def parse(name: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise InvalidValue(name, text, f"must be a number from {least:g} to {most:g}")
        return value

    return parse


def _one_of(*words: str) -> Callable[[str, str], str]:
    def parse(name: str, text: str) -> str:
        if text.lower() not in words:
            near = difflib.get_close_matches(text.lower(), words, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidValue(name, text, f"must be one of {', '.join(words)}{hint}")
        return text.lower()

    return parse


ALL: Final[dict[str, Property[Any]]] = {}
OLD: Final[dict[str, str]] = {}


def _declare(
    name: str, parse: Callable[[str, str], T], default: T, help: str, *old: str
) -> Property[T]:
    found = Property(name, parse, default, help, old)
    ALL[name] = found
    OLD.update(dict.fromkeys(old, name))
    return found


# ---- The job -------------------------------------------------------------------------------

JOB_NAME = _declare("mapreduce.job.name", _text, "", "What to call the job.", "mapred.job.name")
PRIORITY = _declare(
    "mapreduce.job.priority",
    _one_of("very_high", "high", "normal", "low", "very_low"),
    "normal",
    "Its place among other jobs of the same tracker.",
    "mapred.job.priority",
)
# A map says where each part of its output is, in at most a megabyte (worker/executor.py).
REDUCES = _declare(
    "mapreduce.job.reduces",
    _whole(0, 30_000),
    1,
    "How many reduces; 0: what the maps write is the output.",
    "mapred.reduce.tasks",
)
MAPS_HINT = _declare(
    "mapreduce.job.maps",
    _whole(1, 1_000_000),
    1,
    "How many maps there should be at least, if the input can be parted so.",
    "mapred.map.tasks",
)
SLOWSTART = _declare(
    "mapreduce.job.reduce.slowstart.completedmaps",
    _amount(0, 1),
    1.0,
    "Reduces start when this share of the maps is done; 1: when all are.",
    "mapred.reduce.slowstart.completed.maps",
)
MAX_MAP_FAILURES_PERCENT = _declare(
    "mapreduce.map.failures.maxpercent",
    _whole(0, 100),
    0,
    "So many percent of the maps may fail for good without failing the job.",
    "mapred.max.map.failures.percent",
)
FAILURES_PER_AGENT = _declare(
    "mapreduce.job.maxtaskfailures.per.tracker",
    _whole(1),
    3,
    "An agent on which so many attempts of the job have failed is not used for it for a while.",
    "mapred.max.tracker.failures",
)

# ---- Tasks ---------------------------------------------------------------------------------

MAP_MEMORY_MB = _declare(
    "mapreduce.map.memory.mb",
    _whole(1),
    256,
    "Memory of a map, in MB.",
    "mapred.job.map.memory.mb",
)
REDUCE_MEMORY_MB = _declare(
    "mapreduce.reduce.memory.mb",
    _whole(1),
    256,
    "Memory of a reduce, in MB.",
    "mapred.job.reduce.memory.mb",
)
MAP_CPUS = _declare("mapreduce.map.cpu.vcores", _amount(0.01, 1024), 1.0, "Cores of a map.")
REDUCE_CPUS = _declare(
    "mapreduce.reduce.cpu.vcores", _amount(0.01, 1024), 1.0, "Cores of a reduce."
)
MAP_ATTEMPTS = _declare(
    "mapreduce.map.maxattempts",
    _whole(1, 1000),
    4,
    "A map that has failed so often fails the job.",
    "mapred.map.max.attempts",
)
REDUCE_ATTEMPTS = _declare(
    "mapreduce.reduce.maxattempts",
    _whole(1, 1000),
    4,
    "A reduce that has failed so often fails the job.",
    "mapred.reduce.max.attempts",
)
MAP_SPECULATIVE = _declare(
    "mapreduce.map.speculative",
    _flag,
    True,
    "Start a second attempt of a map that is much slower than others.",
    "mapred.map.tasks.speculative.execution",
)
REDUCE_SPECULATIVE = _declare(
    "mapreduce.reduce.speculative",
    _flag,
    True,
    "Start a second attempt of a reduce that is much slower than others.",
    "mapred.reduce.tasks.speculative.execution",
)
TIMEOUT_MS = _declare(
    "mapreduce.task.timeout",
    _whole(0),
    600_000,
    "An attempt that reads, writes and reports nothing for so long (ms) is ended; 0: never.",
    "mapred.task.timeout",
)
SORT_MB = _declare(
    "mapreduce.task.io.sort.mb",
    _whole(1, 100_000),
    64,
    "Memory for sorting, in MB, a part of the task's; what is more goes to disk.",
    "io.sort.mb",
)
PARALLEL_COPIES = _declare(
    "mapreduce.reduce.shuffle.parallelcopies",
    _whole(1, 100),
    5,
    "How many map outputs a reduce fetches at once.",
    "mapred.reduce.parallel.copies",
)
SHUFFLE_TIMEOUT_MS = _declare(
    "mapreduce.reduce.shuffle.read.timeout",
    _whole(1, 86_400_000),
    30_000,
    "A host that lets a reduce wait so long (ms) for a connection, or for more of a map's output,"
    " has failed, and is tried again.",
)

# ---- Input and output ----------------------------------------------------------------------

SPLIT_MIN = _declare(
    "mapreduce.input.fileinputformat.split.minsize",
    _whole(0),
    1,
    "Splits are no smaller than so many bytes, if a file has them.",
    "mapred.min.split.size",
)
SPLIT_MAX = _declare(
    "mapreduce.input.fileinputformat.split.maxsize",
    _whole(1),
    64 * 1024 * 1024,
    "Splits are no larger than so many bytes.",
    "mapred.max.split.size",
)
LINES_PER_MAP = _declare(
    "mapreduce.input.lineinputformat.linespermap",
    _whole(1),
    1,
    "With NLineInputFormat: how many lines a map has.",
    "mapred.line.input.format.linespermap",
)
IGNORE_KEY = _declare(
    "stream.map.input.ignoreKey",
    _flag,
    False,
    "With NLineInputFormat: a mapper reads lines without their offset and a tab in front.",
)
COMBINE_FILES = _declare(
    "mesos.input.combine",
    _one_of("auto", "true", "false"),
    "auto",
    "Small files share a map; auto: when there are more than a thousand.",
)
RECURSIVE = _declare(
    "mapreduce.input.fileinputformat.input.dir.recursive",
    _flag,
    False,
    "Also what lies in directories of input directories.",
    "mapred.input.dir.recursive",
)
DEFAULT_FS = _declare(
    "fs.defaultFS",
    _text,
    "",
    "What hdfs:///path is beneath: a URL or path; else MESOS_PY_MAPREDUCE_FS of the environment.",
    "fs.default.name",
)
COMPRESS_OUTPUT = _declare(
    "mapreduce.output.fileoutputformat.compress",
    _flag,
    False,
    "Compress the output.",
    "mapred.output.compress",
)
OUTPUT_CODEC = _declare(
    "mapreduce.output.fileoutputformat.compress.codec",
    _text,
    "gzip",
    "gzip, bzip2 or zstd, or the class that Hadoop has for it.",
    "mapred.output.compression.codec",
)
OUTPUT_PATIENCE_S = _declare(
    "mesos.output.patience",
    _amount(0, 30 * 24 * 3600),
    600.0,
    "So many seconds it may go on failing to move parts into the output or to complete it; then "
    "the job fails.",
)
COMPRESS_MAP = _declare(
    "mapreduce.map.output.compress",
    _flag,
    False,
    "Compress what maps leave for reduces.",
    "mapred.compress.map.output",
)
MAP_CODEC = _declare(
    "mapreduce.map.output.compress.codec",
    _text,
    "zstd",
    "gzip, bzip2 or zstd, or the class that Hadoop has for it.",
    "mapred.map.output.compression.codec",
)

# ---- Keys ----------------------------------------------------------------------------------

MAP_SEPARATOR = _declare(
    "stream.map.output.field.separator", _text, "\t", "Between fields of what a map writes."
)
MAP_KEY_FIELDS = _declare(
    "stream.num.map.output.key.fields", _whole(1), 1, "How many of these fields are the key."
)
REDUCE_SEPARATOR = _declare(
    "stream.reduce.output.field.separator", _text, "\t", "Between fields of what a reduce writes."
)
REDUCE_KEY_FIELDS = _declare(
    "stream.num.reduce.output.key.fields", _whole(1), 1, "How many of these fields are the key."
)
REDUCE_INPUT_SEPARATOR = _declare(
    "stream.reduce.input.field.separator",
    _text,
    "\t",
    "Between key and value of what a reduce reads.",
)
KEY_SEPARATOR = _declare(
    "mapreduce.map.output.key.field.separator",
    _text,
    "\t",
    "Between fields of a key, for key-field partitions and orders.",
    "map.output.key.field.separator",
)
PARTITION_FIELDS = _declare(
    "mapreduce.partition.keypartitioner.options",
    _text,
    "",
    "Of what fields of the key the partition is chosen, as -k1,2.",
    "mapred.text.key.partitioner.options",
)
PARTITION_KEY_FIELDS = _declare(
    "num.key.fields.for.partition",
    _whole(0, 1000),
    0,
    "The same as mapreduce.partition.keypartitioner.options=-k1,N; 0: not set.",
)
COMPARATOR = _declare(
    "mapreduce.job.output.key.comparator.class",
    _text,
    "",
    "KeyFieldBasedComparator: keys are ordered by mapreduce.partition.keycomparator.options.",
    "mapred.output.key.comparator.class",
)
ORDER_FIELDS = _declare(
    "mapreduce.partition.keycomparator.options",
    _text,
    "",
    "How keys are ordered, as sort has it: -k1,1 -k2,2nr.",
    "mapred.text.key.comparator.options",
)

# ---- Streaming -----------------------------------------------------------------------------

EXIT_IS_FAILURE = _declare(
    "stream.non.zero.exit.is.failure",
    _flag,
    True,
    "A program that ends with another code than 0 has failed.",
)

# ---- Locality and the cluster --------------------------------------------------------------

WAIT_HOST_S = _declare(
    "mesos.locality.wait.host",
    _amount(0, 3600),
    1.0,
    "A job waits so many seconds for a host that has the input of a map.",
)
WAIT_RACK_S = _declare(
    "mesos.locality.wait.rack",
    _amount(0, 3600),
    1.0,
    "After that, so many seconds for a host of the same rack.",
)
LOCATIONS = _declare(
    "mesos.locations",
    _text,
    "",
    "Where the input lies: auto, webhdfs://host:port, or the URL of a location manifest.",
)


def normalised(given: Mapping[str, str]) -> dict[str, str]:
    """By present names, each value checked.  Raises InvalidValue: also for a property that is
    given by both of its names with different values."""
    found: dict[str, str] = {}
    for name, text in given.items():
        present = OLD.get(name, name)
        if found.setdefault(present, text) != text:
            raise InvalidValue(name, text, f"contradicts {present}={found[present]}")
    for name, text in found.items():
        if name in ALL:
            ALL[name].parse(name, text)
    return found
