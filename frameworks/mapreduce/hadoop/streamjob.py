"""`hadoop jar hadoop-streaming.jar ...`: a streaming job, told of in Hadoop's way."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Final

from frameworks.mapreduce import api, streaming, submission
from frameworks.mapreduce.client import Target, from_environment
from frameworks.mapreduce.hadoop.log4j import Log
from frameworks.mapreduce.hadoop.places import qualified
from frameworks.mapreduce.hadoop.tasklogs import TaskLogs
from frameworks.mapreduce.hadoop.words import FAILED, WRONG_USAGE, Streams
from frameworks.mapreduce.streaming import HelpWanted, Options
from frameworks.mapreduce.watch import interrupts, watch
from mesos_py.errors import InvalidValue, MesosPyError

HOME_VARIABLE: Final = "MESOS_PY_HADOOP_HOME"
_STREAMING: Final = re.compile(r".*streaming.*\.jar", re.IGNORECASE)
_MAIN_CLASS: Final = re.compile(r"(?:\w+\.)*HadoopStreaming|(?:\w+\.)*StreamJob")


def run(words: Sequence[str], streams: Streams) -> int:
    """The jar and its arguments; the exit code."""
    if not words:
        streams.complain("Usage: hadoop jar <streaming jar> [options]")
        return WRONG_USAGE
    jar, *rest = words
    if not _STREAMING.fullmatch(PurePath(jar).name):
        if not Path(jar).is_file():
            streams.complain(f"Not a valid JAR: {jar}")
        else:
            streams.complain(f"{jar}: only streaming jars can be run: there is no Java here")
        return WRONG_USAGE
    if rest and _MAIN_CLASS.fullmatch(rest[0]):
        del rest[0]
    log = Log(_writer(streams), "", None)
    try:
        options = streaming.parse(rest)
        return _run(options, streams)
    except HelpWanted as wanted:
        streams.say(str(wanted))
        return 0
    except InvalidValue as error:
        streams.complain(f"ERROR: {error.message}")
        streams.complain("Try -help for more information")
        log.failed(error.message)
        return FAILED
    except MesosPyError as error:
        log.failed(f"Error Launching job : {error.message}")
        return FAILED


def _run(options: Options, streams: Streams) -> int:
    target = from_environment(Target())
    if options.background and target.tracker is None:
        raise InvalidValue("-background", "", "needs a tracker that runs elsewhere")
    given = options.output
    on_cluster(options)
    log = Log(_writer(streams), qualified(given), task_logs())
    with interrupts() as asked:
        job = api.start(options, submission.commands(options), target)
        with job:
            if options.background:
                log.begin(job.job_id)
                return 0
            view = watch(job, log, asked)
    return 0 if view is not None and view.state == "succeeded" else FAILED


def on_cluster(options: Options) -> None:
    """Input and output without a file system are on the default one, as in Hadoop; what is
    shipped is on this machine."""
    options.inputs = [qualified(each) for each in options.inputs]
    options.output = qualified(options.output)


def task_logs() -> TaskLogs | None:
    """Where Hadoop's would be; None if nothing says where that is."""
    directory = os.environ.get("HADOOP_LOG_DIR", "")
    if directory:
        return TaskLogs(Path(directory))
    home = os.environ.get(HOME_VARIABLE, "")
    return TaskLogs(Path(home) / "logs") if home else None


def _writer(streams: Streams) -> Callable[[str], None]:
    def write(text: str) -> None:
        # In one piece: a record must not be parted by what others write.
        streams.stderr.write(text)
        streams.stderr.flush()

    return write
