"""Resources as dockerd's limits."""

import pytest

from agent.containers.docker.limits import limits_of
from agent.containers.docker.settings import DockerSettings
from mesos_py.resources import Resources

PLAIN = DockerSettings()
QUOTA = DockerSettings(cpu_quota=True)


@pytest.mark.parametrize(
    ("text", "shares", "mem_mb"),
    [
        ("cpus:1;mem:64", 1024, 64),
        ("cpus:0.001;mem:1", 2, 32),
        ("mem:32.5", 2, 32.5),
        ("cpus:1000", 1_024_000, 32),
    ],
)
def test_shares_and_memory_have_mesos_least_amounts(text, shares, mem_mb):
    limits = limits_of(Resources.parse(text), PLAIN)
    assert (limits.cpu_shares, limits.mem_bytes) == (shares, mem_mb * 2**20)
    assert limits.cpu_quota_us == 0


@pytest.mark.parametrize(
    ("cpus", "quota_us"), [(1, 100_000), (0.5, 50_000), (0.001, 1_000), (2.5, 250_000)]
)
def test_a_quota_is_set_if_the_operator_wants_it(cpus, quota_us):
    arguments = limits_of(Resources.of(cpus=cpus), QUOTA).arguments()
    assert (arguments["cpu_quota"], arguments["cpu_period"]) == (quota_us, 100_000)


def test_there_is_no_swap_beyond_memory():
    arguments = limits_of(Resources.of(mem=64), PLAIN).arguments()
    assert arguments["memswap_limit"] == arguments["mem_limit"] == 64 << 20
    assert "cpu_quota" not in arguments
