"""A directory that looks like $HADOOP_HOME, as far as programs look."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from frameworks.mapreduce.client import LOCAL_VARIABLE, MASTER_VARIABLE, TRACKER_VARIABLE
from frameworks.mapreduce.data.files import DEFAULT_FS
from frameworks.mapreduce.hadoop.main import HADOOP_VERSION
from frameworks.mapreduce.hadoop.streamjob import HOME_VARIABLE

# Programs look for its name; what is in it says what it is.
JAR: Final = f"share/hadoop/tools/lib/hadoop-streaming-{HADOOP_VERSION}.jar"
_JAR_TEXT: Final = "This is no archive: mesos-py's `hadoop jar` looks only at the name.\n"
FILES: Final = "fs"


def make(
    directory: Path,
    *,
    fs: str = "",
    master: str | None = None,
    tracker: str | None = None,
    local: int | None = None,
) -> None:
    """Make the directory, or make it new; files in it stay.

    fs: URL of what `hdfs:///` is; "": a directory in this one.  master, tracker, local: where
    jobs run, if the environment does not say so.
    """
    directory = directory.absolute()
    root = fs or f"file://{directory / FILES}"
    if not fs:
        (directory / FILES / "tmp").mkdir(parents=True, exist_ok=True)
    (directory / "logs").mkdir(parents=True, exist_ok=True)
    jar = directory / JAR
    jar.parent.mkdir(parents=True, exist_ok=True)
    jar.write_text(_JAR_TEXT)
    defaults = {DEFAULT_FS: root}
    # One says where; where the environment names another, that one counts.
    where = {LOCAL_VARIABLE: local, TRACKER_VARIABLE: tracker, MASTER_VARIABLE: master}
    chosen = {name: str(value) for name, value in where.items() if value is not None}
    script = directory / "bin" / "hadoop"
    script.parent.mkdir(exist_ok=True)
    partial = script.with_name(".hadoop.new")
    partial.write_text(_script(directory, defaults, chosen, list(where)))
    partial.chmod(0o755)
    partial.replace(script)


def _script(
    directory: Path, defaults: Mapping[str, str], chosen: Mapping[str, str], where: list[str]
) -> str:
    lines = ["#!/bin/sh", "# Made by `mesos-py mapreduce hadoop-home`."]
    for name, value in defaults.items():
        lines.append(f'[ -n "${{{name}:-}}" ] || export {name}={shlex.quote(value)}')
    if chosen:
        anything = "".join(f"${{{name}:-}}" for name in where)
        lines.append(f'if [ -z "{anything}" ]; then')
        lines += [f"    export {name}={shlex.quote(value)}" for name, value in chosen.items()]
        lines.append("fi")
    lines.append(f"export {HOME_VARIABLE}={shlex.quote(str(directory))}")
    lines.append(f'exec {shlex.quote(sys.executable)} -m frameworks.mapreduce.hadoop "$@"')
    return "\n".join(lines) + "\n"
