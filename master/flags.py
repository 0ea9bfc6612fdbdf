"""What `mesos-py master` can be told, and what that means to the core."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from master.allocation_flags import AllocationFlags, first_offer_timeout_s
from master.core.cluster import Options
from mesos_py import config, rpc
from mesos_py.config import at_least, between, flag
from mesos_py.errors import InvalidValue

ENV_PREFIX: Final = "MESOS_PY_MASTER_"


@dataclass(frozen=True)
class MasterFlags(AllocationFlags):
    """What `mesos-py master` can be told."""

    ip: str = flag(
        "127.0.0.1",
        kind=config.text,
        check=config.not_empty,
        help="Address to listen on; agents and schedulers must be able to reach it",
    )
    port: int = flag(
        5060,
        kind=config.port_number,
        help="Port for agents, and for schedulers and commands of our own (gRPC); 0 picks one",
    )
    http_port: int = flag(
        5050,
        kind=config.port_number,
        help="Port for clients of the Mesos v1 HTTP API; 0 picks one",
    )
    http_port_file: Path | None = flag(
        None, kind=config.path, help="File that gets the HTTP port in it once the master is ready"
    )
    advertise_http_port: int | None = flag(
        None, kind=config.port_number, help="HTTP port that others are told (default: http-port)"
    )
    credentials: Path | None = flag(
        None,
        kind=config.path,
        help="File with principals and their secrets, as JSON: schedulers that come over HTTP"
        " must then authenticate themselves (default: nobody must)",
    )
    http_heartbeat_after_event: bool = flag(
        False,
        kind=config.boolean,
        help="Send a heartbeat right after each event to schedulers that come over HTTP, for"
        " clients that see a record only when the next one has come",
    )
    http_max_body: int = flag(
        32 * 1024 * 1024,
        kind=config.size_bytes,
        check=at_least(1024),
        help="No request over HTTP may be larger",
    )
    http_max_connections: int = flag(
        10_000,
        kind=config.integer,
        check=at_least(1),
        help="When so many clients are connected over HTTP, the longest idle makes room",
    )
    http_silence_timeout_s: float = flag(
        300.0,
        kind=config.duration_s,
        check=between(0, 86_400),
        help="A client over HTTP is gone when its machine has acknowledged nothing for so long,"
        " or it has read nothing although much waits for it; 0: when TCP gives up by itself,"
        " after a quarter of an hour",
    )
    front: str = flag(
        "grpc",
        kind=config.choice("grpc", "lean"),
        help="Who serves the port: gRPC's own server, or one that is made for tens of"
        " thousands of busy agents (same clients; see docs/performance.md)",
    )
    advertise_ip: str | None = flag(
        None,
        kind=config.text,
        help="Address that others are told to reach this master by (default: ip); behind"
        " address translation, or when ip is 0.0.0.0",
    )
    advertise_port: int | None = flag(
        None, kind=config.port_number, help="Port that others are told (default: port)"
    )
    zk: str | None = flag(
        None,
        kind=config.text,
        secret=True,
        help="ZooKeeper where masters elect their leader and keep what outlives them, as"
        " zk://[user:pass@]h1:p1,h2:p2/path (default: this master is alone)",
    )
    zk_session_timeout_s: float = flag(
        10.0,
        kind=config.duration_s,
        check=between(1, 120),
        help="After this long without word from a leader another one is elected",
    )
    hostname: str | None = flag(
        None, kind=config.text, help="Name that others are shown (default: this machine's)"
    )
    work_dir: Path | None = flag(
        None,
        kind=config.path,
        help="Directory of this master, which no second one may use; it keeps its lock there",
    )
    port_file: Path | None = flag(
        None, kind=config.path, help="File that gets the port in it once the master is ready"
    )
    metrics_port: int | None = flag(
        None,
        kind=config.port_number,
        help="Port to serve /metrics for Prometheus on; 0 picks one (default: not served)",
    )
    allocator: str = flag(
        "drf",
        kind=config.text,
        help="Who decides which framework is offered what: drf (weighted fair shares), priority"
        " (strict), lottery (by weight, for each agent anew), or another that is installed",
    )
    allocation_window_s: float = flag(
        0.01,
        kind=config.duration_s,
        check=at_least(0),
        help="Changes within this time after the first are allocated together",
    )
    offer_timeout_s: float = flag(
        30.0,
        kind=config.duration_s,
        check=at_least(0),
        help="Offers that are not answered within this time are rescinded; 0: never",
    )
    weights: tuple[str, ...] = flag(
        (), kind=config.text_list, help="Weights of roles, as role=2.0,other=0.5 (default 1)"
    )
    heartbeat_s: float = flag(
        rpc.LINK_TIMEOUTS.heartbeat_s,
        kind=config.duration_s,
        check=at_least(0.05),
        help="Schedulers hear from the master at least this often",
    )
    standby_hold_s: float = flag(
        2.0,
        kind=config.duration_s,
        check=at_least(0),
        help="After a change of the master, standbys wait so long for who was active before",
    )
    max_standbys_per_framework: int = flag(
        20, kind=config.integer, check=at_least(0), help="How many instances may wait to take over"
    )
    agent_ping_s: float = flag(
        rpc.LINK_TIMEOUTS.agent_ping_s,
        kind=config.duration_s,
        check=at_least(0.05),
        name="agent-ping-interval",
        help="Time between two pings of an agent",
    )
    max_agent_ping_timeouts: int = flag(
        rpc.LINK_TIMEOUTS.max_agent_ping_timeouts,
        kind=config.integer,
        check=at_least(1),
        help="An agent that misses so many pings in a row is unreachable",
    )
    agent_reregister_timeout_s: float = flag(
        75.0,
        kind=config.duration_s,
        check=at_least(0),
        help="An agent whose link broke, or that a new leader expects, is unreachable if it is "
        "not back by then",
    )
    agent_removal_rate_limit: config.Rate | None = flag(
        None,
        kind=config.rate,
        help="At most so many agents in that time are taken for unreachable (default: no limit)",
    )
    recovery_agent_removal_limit: float = flag(
        100.0,
        kind=config.percent,
        help="If a larger share of the agents is not back after a change of leader, none of "
        "them is taken for unreachable, until fewer are missing",
    )
    allocation_recovery_factor: float = flag(
        0.8,
        kind=config.number,
        check=between(0, 1),
        help="After a change of leader nothing is offered until this share of the agents is back",
    )
    allocation_recovery_timeout_s: float = flag(
        10.0,
        kind=config.duration_s,
        check=at_least(0),
        help="After a change of leader offers are held back for no longer than this",
    )
    max_completed_frameworks: int = flag(
        50, kind=config.integer, check=at_least(0), help="How many ended frameworks to remember"
    )
    max_completed_tasks_per_framework: int = flag(
        1000, kind=config.integer, check=at_least(0), help="How many ended tasks of each"
    )
    max_unreachable_tasks_per_framework: int = flag(
        1000, kind=config.integer, check=at_least(0), help="How many tasks on unreachable agents"
    )
    max_peer_queue_bytes: int = flag(
        64 * 1024 * 1024,
        kind=config.size_bytes,
        check=at_least(1024),
        help="A peer that lets more than this queue up is cut off",
    )
    log_level: str = flag(
        "info", kind=config.choice("debug", "info", "warning", "error"), help="What to log"
    )
    log_format: str = flag("text", kind=config.choice("text", "json"), help="How to log")


def parse_weights(items: tuple[str, ...]) -> dict[str, float]:
    """`("a=2", "b=0.5")` as numbers.  Raises InvalidValue."""
    weights: dict[str, float] = {}
    for item in items:
        role, equals, text = item.partition("=")
        try:
            weights[role.strip()] = float(text)
        except ValueError:
            equals = ""
        if not equals:
            raise InvalidValue("--weights", item, "must be ROLE=NUMBER")
    return weights


def options_of(flags: MasterFlags, *, durable: bool) -> Options:
    removals = flags.agent_removal_rate_limit or config.Rate(0, 0.0)
    return Options(
        offer_timeout_s=flags.offer_timeout_s,
        first_offer_timeout_s=first_offer_timeout_s(flags, flags.offer_timeout_s),
        revocation_grace_s=flags.revocation_grace_s,
        heartbeat_s=flags.heartbeat_s,
        max_standbys=flags.max_standbys_per_framework,
        standby_hold_s=flags.standby_hold_s,
        agent_ping_s=flags.agent_ping_s,
        agent_max_missed_pings=flags.max_agent_ping_timeouts,
        agent_timeout_s=flags.agent_reregister_timeout_s,
        removal_limit=removals.count,
        removal_per_s=removals.per_s,
        recovery_removal_percent=flags.recovery_agent_removal_limit,
        allocation_recovery_factor=flags.allocation_recovery_factor,
        allocation_recovery_timeout_s=flags.allocation_recovery_timeout_s,
        max_completed_frameworks=flags.max_completed_frameworks,
        max_completed_tasks=flags.max_completed_tasks_per_framework,
        max_unreachable_tasks=flags.max_unreachable_tasks_per_framework,
        allocation_window_s=flags.allocation_window_s,
        protocol_version=rpc.PROTOCOL_VERSION,
        durable=durable,
    )
