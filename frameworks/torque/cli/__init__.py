"""`mesos-py torque`: bring a batch server up, look at it, take it down."""

from frameworks.torque.cli.group import command

__all__ = ["command"]
