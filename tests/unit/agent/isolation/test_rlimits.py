"""ContainerInfo.rlimit_info to what setrlimit takes, and what is refused."""

import os
import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.isolation.base import AgentFacts
from agent.isolation.rlimits import NUMBERS, UNLIMITED, RlimitsIsolator, limits_of, parse
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

RLimit = pb.RLimitInfo.RLimit
MOST_FILES = 1_000_000


def info(*limits: tuple[RLimit.Type.ValueType, int | None, int | None]) -> pb.RLimitInfo:
    made = [pb.RLimitInfo.RLimit(type=kind, soft=soft, hard=hard) for kind, soft, hard in limits]
    return pb.RLimitInfo(rlimits=made)


def refusal(asked: pb.RLimitInfo, own: dict[int, int] | None = None) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        parse(asked, MOST_FILES, own)
    return caught.value


def test_every_limit_that_mesos_names_has_a_number_of_the_kernel():
    assert set(NUMBERS) == set(RLimit.Type.values()) - {RLimit.UNKNOWN}
    assert len(set(NUMBERS.values())) == len(NUMBERS)


def test_soft_and_hard_are_taken_as_they_are():
    limits = parse(info((RLimit.RLMT_NOFILE, 100, 200), (RLimit.RLMT_CORE, 0, 0)), MOST_FILES, None)
    assert limits == ((resource.RLIMIT_NOFILE, 100, 200), (resource.RLIMIT_CORE, 0, 0))


def test_one_more_process_gets_the_limits_of_the_first():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    isolator = RlimitsIsolator(AgentFacts("A1", "/", Resources()))
    argv = ["sh", "-c", f"ulimit -S -n {soft - 1} && echo set && exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as limited:
        assert limited.stdin is not None
        assert limited.stdout is not None
        assert limited.stdout.readline() == b"set\n"
        found = isolator.join("c1", limited.pid)
        limited.stdin.close()
    assert found.rlimits == ((resource.RLIMIT_NOFILE, soft - 1, hard),)
    assert isolator.join("c1", os.getpid()).rlimits == ()
    own = limits_of(Path("/proc/self/limits").read_text())
    assert own == [(number, *resource.getrlimit(number)) for number, _, _ in own]
    assert {number for number, _, _ in own} >= set(NUMBERS.values())


def test_neither_soft_nor_hard_means_no_limit():
    limits = parse(info((RLimit.RLMT_CORE, None, None)), MOST_FILES, None)
    assert limits == ((resource.RLIMIT_CORE, UNLIMITED, UNLIMITED),)


def test_the_kernels_number_for_no_limit_is_understood():
    limits = parse(info((RLimit.RLMT_STACK, 8, 2**64 - 1)), MOST_FILES, None)
    assert limits == ((resource.RLIMIT_STACK, 8, UNLIMITED),)


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ((RLimit.RLMT_CPU, 5, None), "5:-", "has only a soft limit"),
        ((RLimit.RLMT_CPU, None, 5), "-:5", "has only a hard limit"),
        ((RLimit.RLMT_CPU, 6, 5), "6:5", "has a soft limit above the hard one"),
        ((RLimit.RLMT_CPU, 5, 2**63), f"5:{2**63}", "must be at most"),
        ((RLimit.RLMT_NOFILE, 5, MOST_FILES + 1), "5:1000001", "at most 1000000 (fs.nr_open)"),
        ((RLimit.RLMT_NOFILE, None, None), "-:-", "at most 1000000 (fs.nr_open)"),
    ],
)
def test_a_wrong_limit_is_refused_by_name_and_value(limit, value, reason):
    error = refusal(info(limit))
    assert error.field == f"container.rlimit_info.{RLimit.Type.Name(limit[0])}"
    assert error.value == value
    assert reason in error.reason


@pytest.mark.parametrize(("kind", "shown"), [(RLimit.UNKNOWN, "UNKNOWN"), (99, "99")])
def test_a_limit_that_nobody_knows_is_refused(kind, shown):
    error = refusal(info((kind, 1, 1)))
    assert (error.value, error.reason) == (shown, "is no limit that is known here")


def test_a_limit_that_is_given_twice_is_refused():
    error = refusal(info((RLimit.RLMT_CPU, 1, 1), (RLimit.RLMT_CPU, 2, 2)))
    assert error.reason == "is given twice"


def test_without_roots_rights_no_limit_goes_above_the_agents_own():
    own = {resource.RLIMIT_NPROC: 50, resource.RLIMIT_CPU: UNLIMITED}
    assert parse(info((RLimit.RLMT_NPROC, 9, 50), (RLimit.RLMT_CPU, None, None)), MOST_FILES, own)
    assert "at most 50" in refusal(info((RLimit.RLMT_NPROC, 9, 51)), own).reason
    assert "at most 50" in refusal(info((RLimit.RLMT_NPROC, None, None)), own).reason


NUMBER = st.none() | st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(st.integers(0, 40), NUMBER, NUMBER), max_size=5))
def test_whatever_is_asked_for_is_either_refused_or_fit_for_setrlimit(limits):
    try:
        taken = parse(info(*limits), MOST_FILES, None)
    except InvalidValue:
        return
    assert len(taken) == len(limits)
    for number, soft, hard in taken:
        assert 0 <= number < 16
        assert -1 <= soft < 2**63
        assert -1 <= hard < 2**63
        assert hard == UNLIMITED or 0 <= soft <= hard
