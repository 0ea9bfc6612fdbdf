"""`mesos-py rdd`: programs and a shell for data sets in the cluster's memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from mesos_py.cli.options import MASTER_VARIABLE
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue

F = TypeVar("F", bound=Callable[..., Any])

_SHELL: Final = "from frameworks.rdd.shell import *"
# Option, property, what it says.
_SHORT: Final = (
    ("--name", "spark.app.name", "TEXT", "What to call the program."),
    (
        "--executor-cores",
        "spark.executor.cores",
        "N",
        "Tasks at once in an executor.  [default: 1]",
    ),
    ("--executor-memory", "spark.executor.memory", "SIZE", "For each executor.  [default: 1g]"),
    ("--total-executor-cores", "spark.cores.max", "N", "The most that executors take together."),
    ("--role", "spark.mesos.role", "ROLE", "The role to use resources of.  [default: *]"),
    ("--image", "spark.mesos.executor.docker.image", "IMAGE", "Run executors in this image."),
    ("--python", "spark.pyspark.python", "PATH", "Python on the agents.  [default: as here]"),
)


def _options(function: F) -> F:
    """Those that `submit` and `shell` share."""
    decorators = [
        click.option(
            "--master",
            metavar="local[N]|HOST:PORT[,...]|zk://...",
            envvar=MASTER_VARIABLE,
            help="Where to run: on this machine in N processes, or on a cluster.  "
            f"[environment: {MASTER_VARIABLE}; default: local[*]]",
        ),
        *(click.option(option, metavar=metavar, help=text) for option, _, metavar, text in _SHORT),
        click.option(
            "--num-executors",
            type=click.IntRange(1),
            metavar="N",
            help="Exactly so many executors.",
        ),
        click.option(
            "--py-files",
            multiple=True,
            metavar="PATH[,...]",
            help="Modules (.py) and packages (.zip, .egg) that tasks import.  Repeatable.",
        ),
        click.option(
            "--files",
            multiple=True,
            metavar="PATH[,...]",
            help="Files for SparkFiles.get.  Repeatable.",
        ),
        click.option(
            "--conf",
            "-c",
            multiple=True,
            metavar="NAME=VALUE",
            help="A property (docs/rdd.md lists them).  Repeatable.",
        ),
        click.option(
            "--properties-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A file of properties, a name and a value on each line.",
        ),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


@click.group(short_help=SUMMARIES["rdd"])
def command() -> None:
    """Data sets that stay in the cluster's memory, for programs written for PySpark.

    \b
    from frameworks.rdd import SparkContext
    sc = SparkContext()
    print(sc.textFile("books/*.txt").flatMap(str.split).countByValue())
    """


@command.command("submit", context_settings={"allow_interspersed_args": False})
@_options
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def submit(script: Path, arguments: Sequence[str], **options: Any) -> None:
    """Run the Python program SCRIPT here as the driver, its tasks in executors.

    \b
    mesos-py rdd submit --master local[4] pagerank.py links.txt
    mesos-py rdd submit --master zk://z1,z2/mesos_py --executor-cores 4 \\
        --executor-memory 8g --conf spark.speculation=true pagerank.py links.txt

    What the program sets itself (SparkConf().set) goes before what is given here.  It ends as
    the program does.
    """
    conf, env = _settings(options)
    if "spark.app.name" not in conf:
        conf["spark.app.name"] = script.name
    _become([sys.executable, str(script), *arguments], env(conf))


@command.command("shell")
@_options
def shell(**options: Any) -> None:
    """Python with a context, `sc`.  Ctrl-C cancels a job, Ctrl-D leaves."""
    conf, env = _settings(options)
    conf.setdefault("spark.app.name", "shell")
    _become([sys.executable, "-i", "-c", _SHELL], env(conf))


def _settings(
    options: dict[str, Any],
) -> tuple[dict[str, str], Callable[[dict[str, str]], dict[str, str]]]:
    """The properties, and what makes of them the environment of the program.  Raises
    InvalidValue."""
    from frameworks.rdd import submission

    conf: dict[str, str] = {}
    if options["properties_file"] is not None:
        conf |= submission.read_properties(options["properties_file"])
    if options["master"]:
        conf["spark.master"] = options["master"]
    for option, name, _, _ in _SHORT:
        value = options[option.removeprefix("--").replace("-", "_")]
        if value is not None:
            conf[name] = value
    if options["num_executors"] is not None:
        for bound in ("minExecutors", "maxExecutors"):
            conf[f"spark.dynamicAllocation.{bound}"] = str(options["num_executors"])
    for text in options["conf"]:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidValue("--conf", text, "must be NAME=VALUE")
        conf[name.strip()] = value.strip()
    py_files = _paths("--py-files", options["py_files"])
    files = _paths("--files", options["files"])
    for name, paths in ((submission.PY_FILES, py_files), (submission.FILES, files)):
        if paths:
            conf[name] = ",".join(paths)
    submission.checked(conf)
    return conf, lambda made: submission.environment(os.environ, made, py_files)


def _paths(option: str, given: Sequence[str]) -> list[str]:
    paths = [path for text in given for path in text.split(",") if path]
    for path in paths:
        if "://" not in path and not Path(path).exists():
            raise InvalidValue(option, path, "is not there")
    return paths


def _become(argv: Sequence[str], env: dict[str, str]) -> None:
    """So signals, the terminal and the exit code are the program's own."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(argv[0], list(argv), env)
