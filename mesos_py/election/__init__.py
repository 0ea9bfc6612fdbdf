"""Who leads: finding the leading master, and becoming it."""

from mesos_py.address import Address
from mesos_py.election.base import Backoff, Contender, Detector, Patience, Standing, rest
from mesos_py.election.parse import parse_contender, parse_master, parse_where
from mesos_py.election.standalone import StandaloneContender, StandaloneDetector

__all__ = [
    "Address",
    "Backoff",
    "Contender",
    "Detector",
    "Patience",
    "StandaloneContender",
    "StandaloneDetector",
    "Standing",
    "parse_contender",
    "parse_master",
    "parse_where",
    "rest",
]
