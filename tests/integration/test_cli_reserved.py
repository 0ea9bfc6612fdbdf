"""What operators reserve, from the command line, on real daemons."""

import pytest

from tests.kit.local import Local
from tests.kit.waiting import until


@pytest.fixture
def cluster(tmp_path):
    with Local(tmp_path, "--agents", "1", "--resources", "cpus:2;mem:512;disk:500") as cluster:
        yield cluster


def done(cluster, *args):
    ended = cluster.cli(*args)
    assert ended.code == 0, ended
    return ended.out.decode()


def test_an_operator_reserves_a_part_of_an_agent_and_gives_it_back(cluster):
    (agent,) = cluster.json("agents")
    host = agent["hostname"]
    given = ("--role", "db", "--principal", "olga", "--label", "for=orders")
    said = done(cluster, "reserve", host, "cpus:1;disk:100", *given)
    assert said.startswith(
        f"ordered: reserve cpus:1;disk:100 of agent {agent['id']} ({host}) for db;"
    )
    (row,) = cluster.json("reservations")
    assert (row["role"], row["principal"], row["agent_id"]) == ("db", "olga", agent["id"])
    assert row["reserved"] == row["unused"] == {"cpus": 1.0, "disk": 100.0}
    refused = cluster.cli("reserve", host, "cpus:2", "--role", "web")
    assert (refused.code, refused.out) == (1, b"")
    assert "cpus: 2 wanted, 1 there that nobody uses" in refused.err
    done(cluster, "unreserve", host, "cpus:1", "--role", "db", "--label", "for=orders")
    (row,) = cluster.json("reservations")
    assert row["reserved"] == {"disk": 100.0}
    make = ("volume", "create", host, "--role", "db", "--id", "orders", "--path", "data")
    done(cluster, *make, "--disk", "60")
    refused = cluster.cli(*make, "--disk", "10")
    assert refused.code == 2
    assert "'orders': the role db has a volume of that id there already" in refused.err
    kept = cluster.work_dir / "agent-1" / "volumes" / "roles" / "db" / "orders"
    until(kept.is_dir)
    done(cluster, "volume", "grow", host, "orders", "--by", "20")
    done(cluster, "volume", "shrink", host, "orders", "--by", "50")
    (volume,) = cluster.json("volume", "list")
    assert (volume["id"], volume["disk"], volume["tasks"]) == ("orders", 30.0, [])
    done(cluster, "volume", "destroy", host, "orders", "--yes")
    assert cluster.json("volume", "list") == []
    until(lambda: not kept.exists())
    done(cluster, "unreserve", host, "--all", "--role", "db")
    assert cluster.json("reservations") == []
    (agent,) = cluster.json("agents")
    assert agent["total"]["cpus"] == 2.0
