"""What operators say of roles, through a real master: it holds, it lasts, and it is shown."""

import json
from collections.abc import Iterator

import pytest

from mesos_py.errors import Conflict, InsufficientResources, InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, what


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    flags = {"work_dir": str(tmp_path / "master"), "offer_timeout": "0s"}
    with Cluster(tmp_path, **flags) as cluster:
        cluster.start_agent("a", "cpus:4;mem:1024;disk:0")
        cluster.wait_for_agent("a", "connected")
        yield cluster


def amounts(**given):
    return {name: pb.Value.Scalar(value=value) for name, value in given.items()}


def rows(cluster: Cluster) -> dict[str, dict]:
    return {row["name"]: row for row in json.loads(cluster.cli("roles", "--json").out)}


def test_what_was_said_is_shown_and_outlives_the_master(cluster):
    said = cluster.cli(
        *("roles", "set", "eng/web", "--weight", "2", "--priority", "-3", "--limit", "cpus:3"),
        *("--guarantee", "cpus:1.5;mem:64", "--need-limit", "cpus:1", "--agents", "a,later"),
    )
    assert (said.code, said.err) == (0, "note: no agent is known as later (it may come)\n")
    assert cluster.cli("roles", "set", "ops", "--limit", "cpus:0").code == 0
    before = rows(cluster)
    assert list(before) == ["eng", "eng/web", "ops"]
    web = before["eng/web"]
    assert (web["weight"], web["priority"], web["agents"]) == (2.0, -3, ["a", "later"])
    assert web["guarantee"] == {"cpus": 1.5, "mem": 64.0}
    assert (web["limit"], web["need_limit"]) == ({"cpus": 3.0}, {"cpus": 1.0})
    cluster.restart_master()
    cluster.wait_for_agent("a", "connected")
    assert rows(cluster) == before
    assert cluster.cli("roles", "unset", "eng/web").out == b"eng/web: nothing is said of it\n"
    cluster.restart_master()
    assert list(rows(cluster)) == ["ops"]
    assert b"  limit:       cpus:0\n" in cluster.cli("roles", "show", "ops").out


def test_what_cannot_be_is_refused_word_by_word(cluster):
    def refusal(*args: str) -> str:
        ended = cluster.cli("roles", "set", *args)
        assert ended.code in (1, 2)
        said: str = ended.err
        return said.strip().removeprefix("mesos-py: error: ")

    assert refusal("web", "--guarantee", "cpus:5") == (
        "changes[web].policy.guarantees.cpus: 5: all guarantees come to 5 cpus, "
        "the cluster has 4 (can be forced)"
    )
    assert (
        cluster.cli("roles", "set", "eng", "--guarantee", "cpus:2", "--limit", "cpus:3").code == 0
    )
    assert refusal("eng/web", "--guarantee", "cpus:2.5") == (
        "changes[eng/web].policy.guarantees.cpus: 2.5: the guarantees below eng come to 2.5 cpus, "
        "eng has 2"
    )
    assert refusal("eng/web", "--limit", "cpus:4") == (
        "changes[eng/web].policy.limits.cpus: 4: is above the limit of eng, 3"
    )
    assert refusal("eng", "--guarantee", "cpus:4") == (
        "changes[eng].policy.guarantees.cpus: 4.0: is above the limit, 3"
    )
    assert cluster.cli("roles", "set", "eng", "--agents", "a").code == 0
    assert refusal("ops", "--agents", "a") == (
        "changes[ops].policy.agents: 'a': is reserved for eng"
    )
    assert refusal("a b", "--weight", "2").startswith("role: 'a b': must not contain white space")
    assert list(rows(cluster)) == ["eng"]
    forced = cluster.cli("roles", "set", "ops", "--guarantee", "cpus:50", "--force")
    assert forced.code == 0


def test_errors_keep_their_kind_over_the_wire(cluster):
    change = cluster.operator.update_role
    with pytest.raises(InvalidValue) as caught:
        change("web", pb.RolePolicy(limits=amounts(cpus=-1)))
    assert caught.value.field == "changes[web].policy.limits.cpus"
    with pytest.raises(InsufficientResources):
        change("web", pb.RolePolicy(guarantees=amounts(cpus=5)))
    change("a", pb.RolePolicy(limits=amounts(cpus=1)))
    with pytest.raises(Conflict, match="is above the limit of a, 1"):
        change("a/b", pb.RolePolicy(limits=amounts(cpus=2)))


def test_a_lower_limit_takes_an_offer_back_and_no_task(cluster):
    with Framework(cluster.address, roles=["web"]) as framework:
        framework.run("exec sleep 600", cpus=2)
        offer = framework.offer()
        assert what(offer).scalar("cpus") == 2
        assert cluster.cli("roles", "set", "web", "--limit", "cpus:2").code == 0
        framework.wait_for("rescinded", lambda offer_id: offer_id == offer.id.value)
        (row,) = cluster.operator.agents()
        assert what_of(row.allocated_resources).scalar("cpus") == 2


def what_of(messages) -> Resources:
    return Resources.from_proto("allocated", messages)


def test_a_limit_holds_between_two_frameworks_that_want_everything(tmp_path):
    """Of five agents with a core each the role with a limit of two gets two, and the other
    the rest, whoever asks first; a higher limit counts at once."""
    with Cluster(tmp_path, offer_timeout="0s") as cluster:
        assert cluster.cli("roles", "set", "web", "--limit", "cpus:2;mem:256").code == 0
        with Framework(cluster.address, "w", roles=["web"]) as web:
            names = [f"a{number}" for number in range(5)]
            cluster.start_agents(*names, resources="cpus:1;mem:128;disk:0")
            for _ in range(2):
                web.run("exec sleep 600", cpus=1, mem=128)
            with Framework(cluster.address, "o", roles=["ops"]) as ops:
                for _ in range(2):
                    ops.run("exec sleep 600", cpus=1, mem=128)
                cluster.wait_until(lambda: cores_held(cluster) == {"web": 2.0, "ops": 3.0})
                (last,) = [
                    offer
                    for each in cluster.operator.frameworks().frameworks
                    for offer in each.offers
                ]
                assert last.framework_id.value == ops.id
                ops.driver.decline_offers(last, filters=3600.0)
                cluster.wait_until(lambda: cores_held(cluster) == {"web": 2.0, "ops": 2.0})
                assert b"(limit)" in cluster.cli("explain", web.id).out
                assert cluster.cli("roles", "set", "web", "--limit", "cpus:3;mem:384").code == 0
                cluster.wait_until(lambda: cores_held(cluster) == {"web": 3.0, "ops": 2.0})


def cores_held(cluster: Cluster) -> dict[str, float]:
    """By role, offers included."""
    return {name: row["resources"].get("cpus", 0.0) for name, row in rows(cluster).items()}
