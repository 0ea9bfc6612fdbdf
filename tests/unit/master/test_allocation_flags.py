"""Flags about allocation: as texts, as options of allocators, and against each other."""

import pytest

from master.allocation_flags import (
    AllocationFlags,
    allocator_options,
    first_offer_timeout_s,
    require_consistent,
)
from master.allocator.base import AllocatorOptions
from master.allocator.drf import DrfAllocator
from master.flags import ENV_PREFIX, MasterFlags, options_of
from master.term import make_allocator
from mesos_py import config
from mesos_py.errors import InvalidValue
from mesos_py.policy import RolePolicy
from mesos_py.resources import EMPTY, Resources


def flags(**given):
    """As if given as variables."""
    variables = {f"{ENV_PREFIX}{name.upper()}": text for name, text in given.items()}
    return config.load(MasterFlags, env_prefix=ENV_PREFIX, environ=variables)


def test_without_flags_the_options_are_the_defaults_of_the_interface():
    assert allocator_options(AllocationFlags(), {}) == AllocatorOptions()
    assert flags().first_offer_timeout_s is None


def test_every_flag_reaches_the_options():
    policies = {"web": RolePolicy(weight=2.0)}
    made = allocator_options(
        flags(
            min_offer="cpus:1;mem:64|gpus:1",
            min_offer_share="25%",
            max_offer="cpus:8",
            scarce_resources="gpus,tapes",
            short_task_share="10%",
            short_task_max_duration="30s",
            fair_guarantee="no",
            revocation="most-over",
            revocation_patience="3s",
            revocation_interval="2s",
            revocation_cap="5%",
            revocation_hold="1m",
            priority_preemption="yes",
            allocator_seed="7",
        ),
        policies,
    )
    assert made == AllocatorOptions(
        policies=policies,
        min_offer=(Resources.of(cpus=1, mem=64), Resources.of(gpus=1)),
        min_offer_share=0.25,
        max_offer=Resources.of(cpus=8),
        unfair=frozenset({"gpus", "tapes"}),
        short_share=0.1,
        short_max_s=30.0,
        fair_guarantee=False,
        victims="most-over",
        revocation_patience_s=3.0,
        revocation_interval_s=2.0,
        revocation_cap=0.05,
        revocation_hold_s=60.0,
        preempt=True,
        seed=7,
    )


def test_a_victim_policy_of_another_distribution_is_found_by_its_name(tmp_path, monkeypatch):
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mesos_py.victims]\noldest = builtins:len\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = allocator_options(flags(revocation="oldest"), {})
    assert (made.victims, made.victim_policy) == ("oldest", len)
    make_allocator(MasterFlags(revocation="oldest"), {})


def test_the_core_is_told_its_times():
    options = options_of(flags(first_offer_timeout="3s", revocation_grace="1s"), durable=False)
    assert (options.first_offer_timeout_s, options.offer_timeout_s) == (3.0, 30.0)
    assert options.revocation_grace_s == 1.0


@pytest.mark.parametrize(
    ("first_s", "most_s", "used_s"),
    [(None, 30.0, 2.0), (None, 1.0, 1.0), (None, 0.0, 2.0), (5.0, 30.0, 5.0), (0.0, 9.0, 0.0)],
)
def test_first_offers_are_good_for_no_longer_than_any(first_s, most_s, used_s):
    assert first_offer_timeout_s(AllocationFlags(first_offer_timeout_s=first_s), most_s) == used_s


def test_nothing_is_too_small_if_no_minimum_is_given():
    made = flags(min_offer="", max_offer="cpus:0.001")
    assert (made.min_offer, flags(max_offer="").max_offer) == ((), EMPTY)
    require_consistent(made, "drf", 30.0)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("min_offer", "cpus", "must be NAME:VALUE"),
        ("min_offer", "cpus:1|", "has an empty alternative"),
        ("min_offer", "ports:[1-2]", "must name amounts only"),
        ("max_offer", "cpus:0", "must be above zero"),
        ("max_offer", "names:{a}", "must name amounts only"),
        ("min_offer_share", "101%", "must be from 0% to 100%"),
        ("short_task_share", "-1", "must be from 0% to 100%"),
        ("short_task_max_duration", "0s", "must be above zero"),
        ("fair_guarantee", "perhaps", "is neither true nor false"),
        ("revocation", "oldest", "is not known; known are: cost, most-over, off, youngest"),
        ("revocation_interval", "0", "must be at least 0.01"),
        ("revocation_cap", "0%", "must be above zero"),
        ("revocation_grace", "-1s", "must not be negative"),
        ("first_offer_timeout", "-1s", "must not be negative"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_reason(name, text, reason):
    with pytest.raises(InvalidValue) as caught:
        flags(**{name: text})
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"first_offer_timeout": "31s"},
            "--first-offer-timeout: '31s': is longer than --offer-timeout 30s",
        ),
        (
            {"first_offer_timeout": "1s", "offer_timeout": "0"},
            "--first-offer-timeout: '1s': says nothing with --offer-timeout 0s (never)",
        ),
        (
            {"priority_preemption": "yes", "revocation": "off"},
            "--priority-preemption: 'true': takes nothing back with --revocation off",
        ),
        (
            {"priority_preemption": "yes"},
            "--priority-preemption: 'true': says nothing with --allocator drf, which knows no "
            "priorities",
        ),
        (
            {"min_offer": "cpus:2|cpus:1;mem:64", "max_offer": "cpus:1;mem:32"},
            "--max-offer: 'cpus:1;mem:32': is less than --min-offer cpus:2|cpus:1;mem:64: "
            "nothing could be offered",
        ),
    ],
)
def test_values_that_contradict_each_other_are_both_named(given, message):
    with pytest.raises(InvalidValue) as caught:
        make_allocator(flags(**given), {})
    assert caught.value.message == message


def test_the_allocator_is_made_with_the_options():
    made = make_allocator(flags(allocator_seed="5"), {"web": 2.0})
    assert isinstance(made, DrfAllocator)
    assert (made.options.seed, made.options.policies) == (5, {"web": RolePolicy(weight=2.0)})
