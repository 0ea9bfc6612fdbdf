"""`mesos-py webfarm`."""

from frameworks.webfarm.cli.group import command

__all__ = ["command"]
