"""The contract of isolators, on those that need no rights: rlimits and disk."""

from agent.isolation import base
from agent.isolation.disk.isolator import DiskIsolator
from agent.isolation.rlimits import RlimitsIsolator
from mesos_py.testing.isolator_contract import IsolatorContract


class TestRlimits(IsolatorContract):
    interface = base

    def make(self, facts):
        return RlimitsIsolator(facts)


class TestDisk(IsolatorContract):
    interface = base

    def make(self, facts):
        return DiskIsolator(facts)
