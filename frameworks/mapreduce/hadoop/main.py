"""The `hadoop` command (console script `mesos-py-hadoop`)."""

from __future__ import annotations

import difflib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from frameworks.mapreduce.hadoop.words import FAILED, WRONG_USAGE, Streams
from mesos_py import logs
from mesos_py.version import VERSION

# The Hadoop whose words these are; programs choose their options by it.
HADOOP_VERSION: Final = "3.3.6"
_USAGE: Final = """\
Usage: hadoop COMMAND [options]
  fs, dfs     files: hadoop fs -help
  jar         run a streaming job: hadoop jar hadoop-streaming.jar -help
  version     print the version
Part of mesos-py; where jobs run: MESOS_PY_MAPREDUCE_TRACKER, MESOS_PY_MAPREDUCE_LOCAL=N
(without a cluster) or MESOS_PY_MASTER; where hdfs:/// is: MESOS_PY_MAPREDUCE_FS."""


def main() -> NoReturn:
    """The entry point of the program: never returns."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    logs.setup("error")
    # Names of files that are no UTF-8 go through as they are.
    stderr = io.TextIOWrapper(sys.stderr.buffer, "utf-8", "surrogateescape")
    streams = Streams(sys.stdin.buffer, sys.stdout.buffer, stderr)
    sys.exit(run(sys.argv[1:], streams))


def run(words: Sequence[str], streams: Streams) -> int:
    """One command; the exit code."""
    if not words or words[0] in ("-h", "--help", "-help", "help"):
        streams.say(_USAGE)
        streams.stdout.flush()
        return 0 if words else WRONG_USAGE
    command, *rest = words
    try:
        return _run(command, rest, streams)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _no_reader()
        return FAILED


def _run(command: str, rest: list[str], streams: Streams) -> int:
    # Each loads what it needs: programs start many of these, one after the other.
    if command in ("fs", "dfs"):
        from frameworks.mapreduce.hadoop import shell

        return shell.run(rest, {}, streams)
    if command == "jar":
        from frameworks.mapreduce.hadoop import streamjob

        return streamjob.run(rest, streams)
    if command == "version":
        streams.say(f"Hadoop {HADOOP_VERSION}")
        streams.say(f"Its jobs and files are those of mesos-py {VERSION}.")
        streams.stdout.flush()
        return 0
    near = difflib.get_close_matches(command, ("fs", "dfs", "jar", "version"), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    streams.complain(f"hadoop: {command}: unknown command{hint}")
    streams.complain(_USAGE)
    return WRONG_USAGE


def _no_reader() -> None:
    """What is still to be written has no reader: do not fail over it at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
