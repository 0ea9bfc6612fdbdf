"""`mesos-py mapreduce hadoop-home`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from frameworks.mapreduce.cli.options import tracker_option
from frameworks.mapreduce.client import Target


@click.command(short_help="Make a directory with a `hadoop` command for other programs.")
@click.option("--fs", metavar="URL", default="", help="What hdfs:/// is.  [default: DIR/fs]")
@click.option(
    "--local", type=click.IntRange(1, 1000), metavar="N", help="Run jobs without a cluster."
)
@click.option("--master", metavar="HOST:PORT[,...]|zk://...", help="Run jobs on this cluster.")
@tracker_option
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
def command(directory: Path, fs: str, **where: Any) -> None:
    """Make DIR look like $HADOOP_HOME: with bin/hadoop and the name of a streaming jar.

    Programs that call `hadoop` run on mesos-py then, for example those written with mrjob:

    \b
    mesos-py mapreduce hadoop-home --local 2 ~/hadoop
    HADOOP_HOME=~/hadoop python wordcount.py -r hadoop book.txt

    Where jobs run may be said here, or by the environment when `hadoop` is called, which
    wins.  On a cluster, hdfs:/// must be on a file system that all agents have.
    """
    from frameworks.mapreduce.hadoop import home

    Target(**where)
    home.make(directory, fs=fs, **where)
    click.echo(f"export HADOOP_HOME={directory.absolute()}")
