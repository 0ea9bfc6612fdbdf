"""Where executors find an agent's HTTP."""

import pytest

from agent.api.http.flags import executor_ip


@pytest.mark.parametrize(
    ("ip", "advertised", "expected"),
    [
        ("10.0.0.2", None, "10.0.0.2"),
        # Others come through address translation; who is on the machine need not.
        ("10.0.0.2", "192.0.2.1", "10.0.0.2"),
        ("0.0.0.0", "192.0.2.1", "192.0.2.1"),
        ("0.0.0.0", None, "127.0.0.1"),
        ("::", None, "::1"),
    ],
)
def test_executors_are_told_an_address_that_leads_to_their_agent(ip, advertised, expected):
    assert executor_ip(ip, advertised) == expected
