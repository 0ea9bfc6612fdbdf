"""The properties of a SparkConf that mean something here, each declared once.

Names are Spark's where it has one for the thing; ours begin with `spark.mesos_py.`.  What
nobody here reads is kept and shown to programs (`sc.getConf()`), as Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from mesos_py import config_kinds as kinds
from mesos_py.config_kinds import Kind
from mesos_py.errors import InvalidValue

T = TypeVar("T")

_JVM_SIZE: Final = re.compile(r"([0-9]{1,18})\s*([bkmgtp]?)b?", re.ASCII | re.IGNORECASE)
_UNITS: Final[dict[str, int]] = {unit: 1024**power for power, unit in enumerate("bkmgtp")}


def _size(default_unit: str) -> Kind[int]:
    def parse(given: str) -> int:
        match = _JVM_SIZE.fullmatch(given.strip())
        if match is None:
            raise ValueError("is not a size")
        return int(match[1]) * _UNITS[match[2].lower() or default_unit]

    def show(value: int) -> str:
        unit = next(u for u in reversed(_UNITS) if not value % _UNITS[u]) if value else "b"
        return f"{value // _UNITS[unit]}{unit}"

    allowed = f"a size such as 512m or 2g (without a unit: {default_unit})"
    return Kind("jvm_size", "SIZE", allowed, parse, show, (int,))


BYTES: Final = _size("b")
MEBIBYTES: Final = _size("m")


@dataclass(frozen=True, slots=True)
class Property(Generic[T]):
    """check: raises ValueError with a reason."""

    name: str
    kind: Kind[T]
    default: T
    help: str
    check: Callable[[T], None] | None = None

    def of(self, conf: Mapping[str, str]) -> T:
        """Raises InvalidValue that names the property and the value."""
        text = conf.get(self.name)
        if text is None:
            return self.default
        try:
            value = self.kind.parse(text)
            if self.check is not None:
                self.check(value)
        except InvalidValue as error:
            raise InvalidValue(self.name, text, error.reason) from None
        except ValueError as error:
            raise InvalidValue(self.name, text, f"{error}; allowed: {self.kind.allowed}") from None
        return value


_some = kinds.at_least(1)
_none_or_more = kinds.at_least(0)


def _least_memory(value: int) -> None:
    if value < 64 << 20:
        raise ValueError("must be at least 64m")


def _share(value: float) -> None:
    if not 0 < value <= 1:
        raise ValueError("must be above 0 and at most 1")


def _positive(value: float) -> None:
    if value <= 0:
        raise ValueError("must be above 0")


# ---- Jobs ------------------------------------------------------------------------------------

MASTER: Final = Property("spark.master", kinds.text, "", "local[N], or where the master is")
APP_NAME: Final = Property("spark.app.name", kinds.text, "", "What the program is called")
PARALLELISM: Final = Property(
    "spark.default.parallelism",
    kinds.integer,
    0,
    "How many partitions where nothing says so; 0: as many as slots",
    _none_or_more,
)
MAX_FAILURES: Final = Property(
    "spark.task.maxFailures",
    kinds.integer,
    4,
    "So many failures of one task end its job; with local[N] one does, with local[N,F] F",
    _some,
)
STAGE_ATTEMPTS: Final = Property(
    "spark.stage.maxConsecutiveAttempts",
    kinds.integer,
    4,
    "So often in a row a stage is begun since map outputs were lost",
    _some,
)
SCHEDULER_MODE: Final = Property(
    "spark.scheduler.mode",
    kinds.choice("FIFO", "FAIR"),
    "FIFO",
    "How jobs that run at once share the slots",
)
ALLOCATION_FILE: Final = Property(
    "spark.scheduler.allocation.file",
    kinds.text,
    "",
    "An XML file, here, that says of pools of FAIR jobs their weight, minShare and schedulingMode",
)
LOCALITY_WAIT_S: Final = Property(
    "spark.locality.wait",
    kinds.duration_s,
    3.0,
    "How long a task waits for a slot where its data are",
)
SPECULATION: Final = Property(
    "spark.speculation", kinds.boolean, False, "Start a second attempt of tasks that are slow"
)
SPECULATION_QUANTILE: Final = Property(
    "spark.speculation.quantile",
    kinds.number,
    0.9,
    "The share of a stage's tasks that must have ended before",
    _share,
)
SPECULATION_MULTIPLIER: Final = Property(
    "spark.speculation.multiplier",
    kinds.number,
    3.0,
    "How many times slower than the median a task must be",
    _positive,
)
EXCLUDE: Final = Property(
    "spark.excludeOnFailure.enabled",
    kinds.boolean,
    True,
    "Give no tasks to executors on which too many have failed",
)
MAX_RESULT_BYTES: Final = Property(
    "spark.driver.maxResultSize",
    BYTES,
    1 << 30,
    "The results of one job may be so large in all; 0: any size",
    _none_or_more,
)

# ---- Memory and files ---------------------------------------------------------------------

MEMORY_FRACTION: Final = Property(
    "spark.memory.fraction",
    kinds.number,
    0.6,
    "The share of an executor's memory for what is persisted",
    _share,
)
WORKER_MEMORY: Final = Property(
    "spark.python.worker.memory",
    MEBIBYTES,
    512 << 20,
    "What a task may hold while it combines or sorts, before it writes to disk",
    _some,
)
WORKER_REUSE: Final = Property(
    "spark.python.worker.reuse", kinds.boolean, True, "Run many tasks in one process"
)
LOCAL_DIR: Final = Property(
    "spark.local.dir", kinds.text, "", "Where local[N] has its files; empty: the system's place"
)

# ---- The driver ---------------------------------------------------------------------------

DRIVER_HOST: Final = Property(
    "spark.driver.host",
    kinds.text,
    "",
    "An address of the driver's machine that executors reach; empty: the one that leads to "
    "the master",
)
DRIVER_PORT: Final = Property(
    "spark.driver.port", kinds.port_number, 0, "The port that executors call; 0: any"
)
PROGRESS: Final = Property(
    "spark.ui.showConsoleProgress", kinds.boolean, True, "Progress of stages, on a terminal"
)
UI: Final = Property("spark.ui.enabled", kinds.boolean, True, "Serve a page with what goes on")
UI_HOST: Final = Property(
    "spark.ui.host", kinds.text, "127.0.0.1", "The address at which the page is served"
)
UI_PORT: Final = Property(
    "spark.ui.port", kinds.port_number, 4040, "Its port; if it is taken one of the next 16"
)

# ---- Executors on a cluster -----------------------------------------------------------------

EXECUTOR_CORES: Final = Property(
    "spark.executor.cores", kinds.integer, 1, "So many tasks at once in an executor", _some
)
EXECUTOR_MEMORY: Final = Property(
    "spark.executor.memory",
    MEBIBYTES,
    1 << 30,
    "For an executor's tasks together and what they persist",
    _least_memory,
)
EXECUTOR_OVERHEAD: Final = Property(
    "spark.executor.memoryOverhead",
    MEBIBYTES,
    0,
    "For an executor's processes besides; 0: 64m for each and one more, or a tenth of its "
    "memory if that is more",
    _none_or_more,
)
MAX_CORES: Final = Property(
    "spark.cores.max", kinds.integer, 0, "The most that all executors take; 0: all there is"
)
MIN_EXECUTORS: Final = Property(
    "spark.dynamicAllocation.minExecutors",
    kinds.integer,
    0,
    "So many are kept also without work",
    _none_or_more,
)
MAX_EXECUTORS: Final = Property(
    "spark.dynamicAllocation.maxExecutors",
    kinds.integer,
    10_000,
    "Never more than these",
    _some,
)
IDLE_S: Final = Property(
    "spark.dynamicAllocation.executorIdleTimeout",
    kinds.duration_s,
    60.0,
    "An executor without work and without persisted partitions ends after this",
)
CACHED_IDLE_S: Final = Property(
    "spark.dynamicAllocation.cachedExecutorIdleTimeout",
    kinds.duration_s,
    kinds.MAX_DURATION_S,
    "One with persisted partitions ends after this",
)
START_S: Final = Property(
    "spark.mesos_py.executor.startTimeout",
    kinds.duration_s,
    120.0,
    "An executor that has not called by then is given up",
    _positive,
)
ROLE: Final = Property("spark.mesos.role", kinds.text, "*", "The role whose resources are used")
IMAGE: Final = Property(
    "spark.mesos.executor.docker.image",
    kinds.text,
    "",
    "Run executors in containers of this image, which has Python and mesos-py",
)
URIS: Final = Property(
    "spark.mesos.uris", kinds.text_list, (), "What agents fetch into each executor's sandbox"
)
PYTHON: Final = Property(
    "spark.pyspark.python",
    kinds.text,
    "",
    "Python on the agents; empty: the driver's own path, or python3 of an image",
)
USER: Final = Property(
    "spark.mesos_py.user", kinds.text, "", "Who executors run as; empty: the driver's user"
)

ALL: Final[tuple[Property[object], ...]] = tuple(
    sorted(
        (each for each in list(globals().values()) if isinstance(each, Property)),
        key=lambda each: each.name,
    )
)
EXECUTOR_ENV: Final = "spark.executorEnv."


def executor_environment(conf: Mapping[str, str]) -> dict[str, str]:
    """What spark.executorEnv.NAME gives."""
    return {
        name.removeprefix(EXECUTOR_ENV): value
        for name, value in conf.items()
        if name.startswith(EXECUTOR_ENV) and name != EXECUTOR_ENV
    }
