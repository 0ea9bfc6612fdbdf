"""What becomes of the flags of mesos-agent (1.11) in `mesos-py agent`."""

from __future__ import annotations

from typing import Final

from agent.flags import ENV_PREFIX, AgentFlags
from mesos_py.mesos_flags import MesosFlag, Table, path_of

_NO_SUCH: Final = (
    "there is no such protection yet, and an agent that lacks it must not seem to have it"
)
_OUTSIDE: Final = "logs go to stderr; whoever starts the daemon keeps them"
_OURS_ALONE: Final = "tasks are started by the agent's own warden"
_MODULES: Final = "modules of Mesos are C++ and cannot be loaded"
# Isolators of Mesos by those here that do the same.
_ISOLATORS: Final = {
    "posix/cpu": "posix",
    "posix/mem": "posix",
    "posix/rlimits": "posix",
    "posix/disk": "disk",
    "disk/du": "disk",
}


def _isolation(names: str) -> str:
    """cgroups/cpu,cgroups/mem,disk/du is cgroups,disk.

    What is to be refused stays as it is: an unknown name, and one that is there twice.
    """
    given = [name.strip() for name in names.split(",")]
    made = [
        "cgroups" if name.startswith("cgroups/") else _ISOLATORS.get(name, name) for name in given
    ]
    return ",".join(dict.fromkeys(made) if len(set(given)) == len(given) else made)


def _containerizers(names: str) -> str:
    return ",".join("posix" if name == "mesos" else name for name in names.split(","))


TABLE: Final = Table(
    AgentFlags,
    ENV_PREFIX,
    (
        MesosFlag(
            "master",
            "master",
            "zk://... as it is; of a HOST:PORT the port is that of gRPC here, 5060",
            convert=path_of,
        ),
        MesosFlag("ip", "ip"),
        MesosFlag(
            "port",
            "http-port",
            "on the command line --port is the port of gRPC here, which masters of ours connect to",
            env_only=True,
        ),
        MesosFlag("advertise_ip", "advertise-ip"),
        MesosFlag("advertise_port", "advertise-http-port"),
        MesosFlag("hostname", "hostname"),
        MesosFlag("work_dir", "work-dir"),
        MesosFlag("resources", "resources"),
        MesosFlag("attributes", "attributes"),
        MesosFlag(
            "isolation",
            "isolation",
            "cgroups/... is cgroups, posix/cpu and posix/mem are posix, disk/du is disk",
            convert=_isolation,
        ),
        MesosFlag("containerizers", "containerizers", "mesos is posix", convert=_containerizers),
        MesosFlag("cgroups_root", "cgroups-root"),
        MesosFlag("cgroups_enable_cfs", "cgroups-enable-cfs"),
        MesosFlag("cgroups_limit_swap", "cgroups-limit-swap"),
        MesosFlag("container_disk_watch_interval", "container-disk-watch-interval"),
        MesosFlag("enforce_container_disk_quota", "enforce-container-disk-quota"),
        MesosFlag("executor_registration_timeout", "executor-registration-timeout"),
        MesosFlag("executor_reregistration_timeout", "executor-reregistration-timeout"),
        MesosFlag("executor_shutdown_grace_period", "executor-shutdown-grace-period"),
        MesosFlag("http_heartbeat_interval", "http-heartbeat-interval"),
        MesosFlag("recover", "recover"),
        MesosFlag("recovery_timeout", "recovery-timeout"),
        MesosFlag("registration_backoff_factor", "registration-backoff"),
        MesosFlag("max_completed_executors_per_framework", "max-completed-executors"),
        MesosFlag("gc_delay", "gc-delay"),
        MesosFlag("gc_disk_headroom", "gc-disk-headroom"),
        MesosFlag("disk_watch_interval", "disk-watch-interval"),
        MesosFlag("docker_socket", "docker-socket"),
        MesosFlag("docker_config", "docker-config", convert=path_of),
        MesosFlag("fetcher_cache_size", "fetcher-cache-size"),
        MesosFlag("fetcher_stall_timeout", "fetcher-stall-timeout"),
        MesosFlag("frameworks_home", "frameworks-home"),
        MesosFlag("logging_level", "log-level", convert=str.lower),
        MesosFlag("log_dir", note=_OUTSIDE),
        MesosFlag("external_log_file", note=_OUTSIDE),
        MesosFlag("logbufsecs", note=_OUTSIDE),
        MesosFlag("quiet", note=_OUTSIDE),
        MesosFlag("strict", note="what cannot be recovered is told, and the rest goes on"),
        MesosFlag("launcher", note=_OURS_ALONE),
        MesosFlag("launcher_dir", note=_OURS_ALONE),
        MesosFlag("runtime_dir", note=_OURS_ALONE),
        MesosFlag("systemd_enable_support", note=_OURS_ALONE),
        MesosFlag("cgroups_hierarchy", note="hierarchies are found where they are mounted"),
        MesosFlag("docker", note="the agent talks to dockerd itself, by --docker-socket"),
        MesosFlag("docker_remove_delay", note="containers go with their sandboxes"),
        MesosFlag("docker_stop_timeout", note="a task's own grace counts"),
        MesosFlag("docker_kill_orphans", note="containers that nobody knows are always ended"),
        MesosFlag("fetcher_cache_dir", note="the cache is in the work directory"),
        MesosFlag("http_command_executor", note="command tasks need no executor"),
        MesosFlag("switch_user", note="tasks run as their user wherever the agent may do that"),
        MesosFlag("reconfiguration_policy", note="what may change of an agent is in operations.md"),
        MesosFlag(
            "hostname_lookup", note="the host name is what --hostname says, or the machine's"
        ),
        MesosFlag("credential", note=_NO_SUCH, refused=True),
        MesosFlag("http_credentials", note=_NO_SUCH, refused=True),
        MesosFlag("authenticate_http_readonly", note=_NO_SUCH, refused=True),
        MesosFlag("authenticate_http_readwrite", note=_NO_SUCH, refused=True),
        MesosFlag("authenticate_http_executors", note=_NO_SUCH, refused=True),
        MesosFlag("acls", note=_NO_SUCH, refused=True),
        MesosFlag("image_providers", note="images need dockerd: --containerizers", refused=True),
        MesosFlag("modules", note=_MODULES, refused=True),
        MesosFlag("modules_dir", note=_MODULES, refused=True),
        MesosFlag("hooks", note=_MODULES, refused=True),
        MesosFlag("resource_estimator", note=_MODULES, refused=True),
        MesosFlag("qos_controller", note=_MODULES, refused=True),
    ),
)
