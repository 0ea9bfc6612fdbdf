"""Who leads: finding the leading master, and becoming it."""

from mesos_py.address import Address
from mesos_py.election.base import Backoff, Contender, Detector, Standing
from mesos_py.election.standalone import StandaloneContender, StandaloneDetector, parse_master

__all__ = [
    "Address",
    "Backoff",
    "Contender",
    "Detector",
    "StandaloneContender",
    "StandaloneDetector",
    "Standing",
    "parse_master",
]
