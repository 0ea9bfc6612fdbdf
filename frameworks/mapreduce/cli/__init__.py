"""`mesos-py mapreduce`: run jobs, and look at them."""

from frameworks.mapreduce.cli.group import command

__all__ = ["command"]
