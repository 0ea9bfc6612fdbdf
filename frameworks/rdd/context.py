"""SparkContext: the driver's entry to everything."""

from __future__ import annotations

import getpass
import importlib.metadata
import os
import shutil
import sys
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from frameworks.rdd import accumulators, masters, submission
from frameworks.rdd.accumulators import Accumulator, AccumulatorParam
from frameworks.rdd.broadcasts import Broadcast
from frameworks.rdd.conf import SparkConf
from frameworks.rdd.errors import NotPicklable
from frameworks.rdd.paths import opened, url_of
from frameworks.rdd.places import place
from frameworks.rdd.runner import Runner
from frameworks.rdd.sources import Sources
from frameworks.rdd.sparkfiles import PACKED, SparkFiles, is_archive
from frameworks.rdd.status import StatusTracker
from mesos_py import logs
from mesos_py.errors import Conflict, InvalidValue

T = TypeVar("T")

# Spark's levels, and ours.
_LEVELS = {
    "ALL": "debug",
    "DEBUG": "debug",
    "TRACE": "debug",
    "INFO": "info",
    "WARN": "warning",
    "ERROR": "error",
    "FATAL": "error",
    "OFF": "error",
}


class SparkContext(Sources):
    """As PySpark's; one at a time in a process.

    serializer and what follows are taken for programs that give them.
    runner: for tests and embedders; otherwise `master` says what runs jobs.

    Raises ValueError if there is a context already, InvalidValue for a bad master.
    """

    PACKAGE_EXTENSIONS: ClassVar[tuple[str, ...]] = (".zip", ".egg", ".jar")

    _active: ClassVar[SparkContext | None] = None
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(
        self,
        master: str | None = None,
        appName: str | None = None,
        sparkHome: str | None = None,
        pyFiles: Sequence[str] | None = None,
        environment: Mapping[str, object] | None = None,
        batchSize: int = 0,
        serializer: object = None,
        conf: SparkConf | None = None,
        *,
        runner: Runner | None = None,
    ) -> None:
        super().__init__()
        self.conf = SparkConf(False).setAll((conf or SparkConf()).getAll())
        given = {"spark.master": master, "spark.app.name": appName, "spark.home": sparkHome}
        self.conf.setAll((key, value) for key, value in given.items() if value is not None)
        self.environment = dict(environment or {})
        for key, value in self.environment.items():
            self.conf.setExecutorEnv(key, str(value))
        self.conf.setIfMissing("spark.master", "local[*]")
        self.conf.setIfMissing("spark.app.name", Path(sys.argv[0] or "shell").name)
        self.master = self._text("spark.master")
        self.appName = self._text("spark.app.name")
        self.sparkHome = self.conf.get("spark.home")
        self.startTime = int(time.time() * 1000)
        here = self.master.startswith("local")
        name = f"local-{self.startTime}" if here else f"rdd-{uuid.uuid4().hex[:12]}"
        self.conf.setIfMissing("spark.app.id", name)
        self._batch = batchSize
        self._made_at = place()
        self._stopped = threading.Event()
        self._stopper = 0
        self._files: Path | None = None
        self._added: list[str] = []
        self._archives: list[str] = []
        with SparkContext._lock:
            self._only_one()
            self._runner: Runner | None = runner or masters.start(self.conf)
            SparkContext._active = self
        try:
            self._add_given(pyFiles or ())
        except BaseException:
            self.stop()
            raise

    def _text(self, key: str) -> str:
        return str(self.conf.get(key, ""))

    def _only_one(self) -> None:
        other = SparkContext._active
        if other is not None:
            raise ValueError(
                "Cannot run multiple SparkContexts at once; existing SparkContext"
                f"(app={other.appName}, master={other.master}) created by {other._made_at}"
            )

    def _add_given(self, py_files: Sequence[str]) -> None:
        for path in [*py_files, *self._text(submission.PY_FILES).split(",")]:
            if path:
                self.addPyFile(path)
        for path in self._text(submission.FILES).split(","):
            if path:
                self.addFile(path)

    @classmethod
    def getOrCreate(cls, conf: SparkConf | None = None) -> SparkContext:
        """The one that there is, whatever `conf` says, or a new one: after the end of one that
        another thread stops just now."""
        while True:
            with SparkContext._lock:
                there = SparkContext._active
                if there is None:
                    return cls(conf=conf)
                if there._runner is not None:
                    return there
            if not there._await_end():
                raise Conflict("this thread is just stopping the context", app=there.appName)

    @classmethod
    def active(cls) -> SparkContext | None:
        """The one that there is, and is not being stopped."""
        there = SparkContext._active
        return None if there is None or there._runner is None else there

    @classmethod
    def setSystemProperty(cls, key: str, value: str) -> None:
        """There is no JVM whose property it could be: raises InvalidValue that says what to
        use."""
        raise InvalidValue("key", key, "there is no JVM here; give SparkConf the property")

    # ---- Its life --------------------------------------------------------------------------

    def __enter__(self) -> SparkContext:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends what runs, and waits for it.  May be called twice, also by two at once."""
        with SparkContext._lock:
            runner, self._runner = self._runner, None
            if runner is not None:
                self._stopper = threading.get_ident()
        if runner is None:
            self._await_end()
            return
        try:
            runner.stop()
        finally:
            with SparkContext._lock:
                SparkContext._active = None
                files, self._files = self._files, None
                if files is not None:
                    sys.path[:] = [each for each in sys.path if not each.startswith(str(files))]
                    SparkFiles.root = None
                    shutil.rmtree(files, ignore_errors=True)
            self._stopped.set()

    def _await_end(self) -> bool:
        """Of `stop`.  False at once in the thread that is in it: a handler of signals, say."""
        return self._stopper != threading.get_ident() and self._stopped.wait()

    @property
    def runner(self) -> Runner:  # type: ignore[override]
        """Raises Conflict once the context was stopped."""
        if self._runner is None:
            raise Conflict("Cannot call methods on a stopped SparkContext", app=self.appName)
        return self._runner

    def __reduce__(self) -> NoReturn:
        raise NotPicklable(
            "The SparkContext is used inside a task. It is known to the driver only: a function "
            "that is given to a transformation or an action can use broadcast variables and "
            "accumulators, but not the context from which they came, nor an object that has it "
            "as an attribute"
        )

    def __repr__(self) -> str:
        return f"<SparkContext master={self.master} appName={self.appName}>"

    # ---- What is known of it ---------------------------------------------------------------

    @property
    def version(self) -> str:
        """Of mesos-py."""
        return importlib.metadata.version("mesos-py")

    @property
    def applicationId(self) -> str:
        return self._text("spark.app.id")

    @property
    def uiWebUrl(self) -> str | None:
        """Of the page with what goes on, if there is one."""
        return self.runner.page_url

    def sparkUser(self) -> str:
        return self._text("spark.mesos_py.user") or getpass.getuser()

    def getConf(self) -> SparkConf:
        """A copy: what is set there changes nothing here."""
        return SparkConf(False).setAll(self.conf.getAll())

    @property
    def resources(self) -> dict[str, object]:
        """Of the driver, other than its processors and memory: it has none here."""
        return {}

    def statusTracker(self) -> StatusTracker:
        return StatusTracker(self.runner)

    def setLogLevel(self, logLevel: str) -> None:
        """ALL, DEBUG, INFO, WARN, ERROR, FATAL, OFF or TRACE: for the driver's own logs.
        Raises InvalidValue for another one."""
        level = _LEVELS.get(logLevel.upper())
        if level is None:
            raise InvalidValue("logLevel", logLevel, f"is none of {', '.join(_LEVELS)}")
        logs.set_level(level)

    # ---- What tasks share ------------------------------------------------------------------

    def broadcast(self, value: T) -> Broadcast[T]:
        """Sent to each executor once, when a task there first needs it."""
        return Broadcast(self.runner.broadcast(value), value, self.runner)

    def accumulator(
        self, value: T, accum_param: AccumulatorParam[T] | None = None
    ) -> Accumulator[T]:
        """Raises TypeError if `value` is no number and no param says how to add."""
        return accumulators.registered(value, accum_param)

    def addFile(self, path: str, recursive: bool = False) -> None:
        """Tasks of later jobs find it as SparkFiles.get(its name).

        path: of a file that the driver can read, or a URL that fsspec knows; added again it
        changes nothing.  Raises InvalidValue if there is none, also for a directory.
        """
        fs, source = opened(path)
        self._add(fs, source, python=False)

    def addPyFile(self, path: str) -> None:
        """A module, or a zip of them, that tasks of later jobs can import, and the driver."""
        fs, source = opened(path)
        name = PurePosixPath(source).name
        self._add(fs, source, python=True)
        assert self._files is not None
        packed = name.endswith(self.PACKAGE_EXTENSIONS)
        entry = str(self._files / name if packed else self._files)
        if entry not in sys.path:
            sys.path.insert(1, entry)

    def addArchive(self, path: str) -> None:
        """A zip or tar file: tasks of later jobs find the directory with what is in it as
        SparkFiles.get(its name), or the name that follows a `#` in `path`.

        Raises InvalidValue if there is none.
        """
        url, _, name = path.partition("#")
        fs, source = opened(url)
        listed = url_of(fs, source) + path[len(url) :]
        if listed in self._archives:
            return
        copy = self._copied(fs, source, PACKED + (name or PurePosixPath(source).name))
        if not is_archive(copy):
            raise InvalidValue("path", path, "is no zip or tar file")
        self.runner.add_file(self._kept(copy), python=False)
        self._archives.append(listed)

    @property
    def listArchives(self) -> list[str]:
        """What was added with addArchive: URLs."""
        return list(self._archives)

    @property
    def listFiles(self) -> list[str]:
        """What was added: its URLs."""
        return list(self._added)

    def _add(self, fs: Any, source: str, *, python: bool) -> None:
        url = url_of(fs, source)
        if url not in self._added:
            copy = self._copied(fs, source, PurePosixPath(source).name)
            self.runner.add_file(self._kept(copy), python=python)
            self._added.append(url)

    def _copied(self, fs: Any, source: str, name: str) -> Path:
        """Of this name, in the driver's own directory; one that is there gives way."""
        if fs.isdir(source):
            raise InvalidValue("path", source, "is a directory; addArchive takes an archive of it")
        if not fs.exists(source):
            raise InvalidValue("path", source, "no such file")
        with SparkContext._lock:
            if self._files is None:
                self._files = Path(tempfile.mkdtemp(prefix="spark-files-"))
                # Of a program that ends without `stop`, too.
                weakref.finalize(self, _remove, self._files, os.getpid())
                SparkFiles.root = str(self._files)
            copy = self._files / name
            unfinished = self._files / f".{name}.part"
            fs.get_file(source, str(unfinished))
            # What is there may be on its way to executors.
            unfinished.rename(copy)
        return copy

    def _kept(self, copy: Path) -> str:
        """Another path of the file, which stays when the next one of this name comes."""
        kept = Path(tempfile.mkdtemp(prefix=".added-", dir=copy.parent)) / copy.name
        os.link(copy, kept)
        return str(kept)

    if not TYPE_CHECKING:  # or every name would be taken for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            text = ABSENT.get(name, f"a SparkContext has no {name!r}")
            raise AttributeError(text, name=name, obj=self)


def _remove(directory: Path, pid: int) -> None:
    # A process that the program has forked ends too: it is not that one's.
    if os.getpid() == pid:
        shutil.rmtree(directory, ignore_errors=True)


_HADOOP = "it needs Hadoop's classes, and there is no JVM here; textFile and pickleFile read files"

# Of PySpark's SparkContext what is not here, and why: for programs that try it.
ABSENT = {
    "dump_profiles": "tasks are not profiled here",
    "show_profiles": "tasks are not profiled here",
    **dict.fromkeys(
        ("hadoopFile", "hadoopRDD", "newAPIHadoopFile", "newAPIHadoopRDD", "sequenceFile"),
        _HADOOP,
    ),
}
