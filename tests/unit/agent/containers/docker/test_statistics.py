"""dockerd's numbers under the names that all containers use."""

from hypothesis import given
from hypothesis import strategies as st

from agent.containers.docker.limits import Limits
from agent.containers.docker.statistics import usage_of

PLAIN = Limits(1024, 0, 64 << 20)

V1 = {
    "pids_stats": {"current": 3, "limit": 18446744073709551615},
    "blkio_stats": {
        "io_service_bytes_recursive": [
            {"major": 8, "minor": 0, "op": "Read", "value": 4096},
            {"major": 8, "minor": 16, "op": "Read", "value": 1},
            {"major": 8, "minor": 0, "op": "Write", "value": 10},
            {"major": 8, "minor": 0, "op": "Total", "value": 4107},
        ],
        "io_serviced_recursive": [{"op": "Read", "value": 2}, {"op": "Write", "value": 1}],
    },
    "cpu_stats": {
        "cpu_usage": {
            "total_usage": 4_000_000_000,
            "usage_in_kernelmode": 1_000_000_000,
            "usage_in_usermode": 3_000_000_000,
        },
        "throttling_data": {"periods": 10, "throttled_periods": 4, "throttled_time": 500_000_000},
    },
    "memory_stats": {
        "usage": 1000,
        "max_usage": 2000,
        "limit": 64 << 20,
        "stats": {"rss": 1, "total_rss": 600, "cache": 2, "total_cache": 300},
    },
    "networks": {
        "eth0": {"rx_bytes": 5, "tx_bytes": 6, "rx_packets": 1, "tx_packets": 2, "rx_dropped": 0},
        "eth1": {"rx_bytes": 1, "tx_bytes": 1, "rx_packets": 1, "tx_packets": 1, "tx_dropped": 3},
    },
}


def test_of_cgroup_v1():
    assert usage_of(V1, PLAIN) == {
        "cpu_user_seconds": 3,
        "cpu_system_seconds": 1,
        "cpu_periods": 10,
        "cpu_throttled_periods": 4,
        "cpu_throttled_seconds": 0.5,
        "memory_bytes": 1000,
        "memory_peak_bytes": 2000,
        "memory_limit_bytes": 64 << 20,
        "memory_rss_bytes": 600,
        "memory_cache_bytes": 300,
        "pids": 3,
        "io_read_bytes": 4097,
        "io_write_bytes": 10,
        "io_reads": 2,
        "io_writes": 1,
        "net_rx_bytes": 6,
        "net_tx_bytes": 7,
        "net_rx_packets": 2,
        "net_tx_packets": 3,
        "net_rx_dropped": 0,
        "net_tx_dropped": 3,
    }


def test_of_cgroup_v2():
    stats = {
        "pids_stats": {"current": 1, "limit": 50},
        "blkio_stats": {
            "io_service_bytes_recursive": [{"op": "read", "value": 7}],
            "io_serviced_recursive": None,
        },
        "memory_stats": {
            "usage": 10,
            "stats": {"anon": 6, "file": 3},
            "limit": 9223372036854771712,
        },
    }
    assert usage_of(stats, Limits(1024, 150_000, 64 << 20)) == {
        "cpu_limit_cores": 1.5,
        "memory_bytes": 10,
        "memory_rss_bytes": 6,
        "memory_cache_bytes": 3,
        "pids": 1,
        "pids_limit": 50,
        "io_read_bytes": 7,
    }


def test_of_a_container_that_has_just_ended_there_is_nothing():
    assert usage_of({"memory_stats": {}, "networks": {}, "pids_stats": {}}, PLAIN) == {}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(["usage", "limit", "stats", "op", "value", "rx_bytes", "current"]), inner
    ),
    max_leaves=10,
)
_PARTS = ("cpu_stats", "memory_stats", "pids_stats", "blkio_stats", "networks")


@given(st.dictionaries(st.sampled_from(_PARTS), _JSON))
def test_numbers_that_cannot_be_had_are_left_out_and_nothing_is_raised(stats):
    for value in usage_of(stats, PLAIN).values():
        assert isinstance(value, (int, float))
