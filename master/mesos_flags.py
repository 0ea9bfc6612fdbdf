"""What becomes of the flags of mesos-master (1.11) in `mesos-py master`."""

from __future__ import annotations

from typing import Final

from master.flags import ENV_PREFIX, MasterFlags
from mesos_py.mesos_flags import MesosFlag, Table, path_of

_NO_SUCH: Final = (
    "there is no such protection yet, and a master that lacks it must not seem to have it"
)
_REGISTRY: Final = "with --zk the registry is kept in ZooKeeper, else in the work directory"
_OUTSIDE: Final = "logs go to stderr; whoever starts the daemon keeps them"


def _allocator(name: str) -> str:
    return "drf" if name in {"hierarchical", "HierarchicalDRF"} else name


TABLE: Final = Table(
    MasterFlags,
    ENV_PREFIX,
    (
        MesosFlag("zk", "zk", convert=path_of),
        MesosFlag("zk_session_timeout", "zk-session-timeout"),
        MesosFlag("ip", "ip"),
        MesosFlag(
            "port",
            "http-port",
            "on the command line --port is the port of gRPC here, which agents of ours connect to",
            env_only=True,
        ),
        MesosFlag("advertise_ip", "advertise-ip"),
        MesosFlag("advertise_port", "advertise-http-port"),
        MesosFlag("hostname", "hostname"),
        MesosFlag("work_dir", "work-dir"),
        MesosFlag("offer_timeout", "offer-timeout"),
        MesosFlag("weights", "weights"),
        MesosFlag("allocator", "allocator", "hierarchical is drf", convert=_allocator),
        MesosFlag("agent_ping_timeout", "agent-ping-interval"),
        MesosFlag("slave_ping_timeout", "agent-ping-interval"),
        MesosFlag("max_agent_ping_timeouts", "max-agent-ping-timeouts"),
        MesosFlag("max_slave_ping_timeouts", "max-agent-ping-timeouts"),
        MesosFlag("agent_reregister_timeout", "agent-reregister-timeout"),
        MesosFlag("slave_reregister_timeout", "agent-reregister-timeout"),
        MesosFlag("agent_removal_rate_limit", "agent-removal-rate-limit"),
        MesosFlag("recovery_agent_removal_limit", "recovery-agent-removal-limit"),
        MesosFlag("allocator_agent_recovery_factor", "allocation-recovery-factor"),
        MesosFlag("allocator_recovery_timeout", "allocation-recovery-timeout"),
        MesosFlag("max_completed_frameworks", "max-completed-frameworks"),
        MesosFlag("max_completed_tasks_per_framework", "max-completed-tasks-per-framework"),
        MesosFlag("max_unreachable_tasks_per_framework", "max-unreachable-tasks-per-framework"),
        MesosFlag("credentials", "credentials", convert=path_of),
        MesosFlag("logging_level", "log-level", convert=str.lower),
        MesosFlag("quorum", note=_REGISTRY),
        MesosFlag("registry", note=_REGISTRY),
        MesosFlag("registry_fetch_timeout", note=_REGISTRY),
        MesosFlag("registry_store_timeout", note=_REGISTRY),
        MesosFlag("log_auto_initialize", note=_REGISTRY),
        MesosFlag("log_dir", note=_OUTSIDE),
        MesosFlag("external_log_file", note=_OUTSIDE),
        MesosFlag("logbufsecs", note=_OUTSIDE),
        MesosFlag("quiet", note=_OUTSIDE),
        MesosFlag("allocation_interval", note="allocation follows each change, nothing is polled"),
        MesosFlag("roles", note="any role may be used; `mesos-py roles` says what each may have"),
        MesosFlag("cluster", note="a cluster has no name here"),
        MesosFlag("root_submissions", note="tasks may run as any user, root among them"),
        MesosFlag(
            "hostname_lookup", note="the host name is what --hostname says, or the machine's"
        ),
        MesosFlag("webui_dir", note="there are no web pages; `mesos-py` and the endpoints tell it"),
        MesosFlag(
            "authenticate_http_frameworks",
            note="with --credentials every framework that comes over HTTP must say who it is",
        ),
        MesosFlag("http_framework_authenticators", note="basic authentication, by --credentials"),
        MesosFlag("authenticate_frameworks", note=_NO_SUCH, refused=True),
        MesosFlag("authenticate_agents", note=_NO_SUCH, refused=True),
        MesosFlag("authenticate_slaves", note=_NO_SUCH, refused=True),
        MesosFlag("authenticate_http_readonly", note=_NO_SUCH, refused=True),
        MesosFlag("authenticate_http_readwrite", note=_NO_SUCH, refused=True),
        MesosFlag("acls", note=_NO_SUCH, refused=True),
        MesosFlag("firewall_rules", note=_NO_SUCH, refused=True),
        MesosFlag("rate_limits", note=_NO_SUCH, refused=True),
        MesosFlag("whitelist", note=_NO_SUCH, refused=True),
        MesosFlag("modules", note="modules of Mesos are C++ and cannot be loaded", refused=True),
        MesosFlag(
            "modules_dir", note="modules of Mesos are C++ and cannot be loaded", refused=True
        ),
        MesosFlag("hooks", note="modules of Mesos are C++ and cannot be loaded", refused=True),
    ),
)
