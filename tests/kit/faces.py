"""Over which face the tests' frameworks come to masters and their executors to agents: gRPC,
or HTTP.

`pytest --face http` has every framework that is given a master's address (a proxy's, that of
ZooKeeper) come to the same master by the HTTP API, and every executor that is started with
`of_executors` to its agent.  Agents and operators come as always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mesos_py.executor.environment import ENDPOINT

FACES: Final = ("grpc", "http")
# An executor that is not told of our service finds the HTTP API, as with Apache Mesos.
OVER_HTTP: Final = {ENDPOINT: ""}
_chosen: list[str] = [FACES[0]]
# Where who serves gRPC at an address serves HTTP.
_http: dict[str, str] = {}


def choose(face: str) -> None:
    _chosen[:] = [face]


def is_http() -> bool:
    return _chosen == ["http"]


def serves(address: str, http: str) -> None:
    """Whoever is found at `address` serves HTTP at `http`."""
    _http[address] = http


def http_of(address: str) -> str | None:
    """Where it serves HTTP; None: it is no master, or nobody wants to know."""
    return _http.get(address) if is_http() else None


def seen_by_frameworks(master: str) -> str:
    """What a framework is to be told in place of `master`."""
    if not is_http() or master.startswith("http"):
        return master
    if master.startswith("zk://"):
        return f"http+{master}"
    return "http://" + ",".join(_http[part] for part in master.split(","))


def of_executors() -> Mapping[str, str] | None:
    """What an executor is to have in its environment."""
    return OVER_HTTP if is_http() else None
