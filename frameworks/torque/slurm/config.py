"""The configuration that we write: for slurmctld and users' commands, and for each slurmd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from frameworks.torque.core.records import Size

# A node that never is: without it Slurm refuses jobs that are larger than what is there now.
ROOM_NODE: Final = "room"
# Nobody listens there.
ROOM_ADDRESS: Final = "127.255.255.254"
ROOM_CPUS: Final = 32_768
ROOM_MEM_MB: Final = 1_000_000_000
PLUGINS: Final = "optional spank_pbs.so\n"
# Where a node sees its sandbox: names of its sockets must be short (108 bytes), which a sandbox's
# is not, and jobs of all users have to get there.  A directory for mounts that is in every /proc.
HERE: Final = "/proc/fs/nfsd"

# slurmd leaves jobs to themselves when it ends, and they hide that they are its children; so a
# node is a process namespace, and what is in there ends with its first process.  What is mounted
# on the machine later is seen in there, and not the other way round.
_APART: Final = (
    *("unshare", "--pid", "--fork", "--kill-child"),
    *("--mount", "--propagation=slave", "--mount-proc"),
)
# The first process, with the configuration in its environment.
_START: Final = f"""set -eu
chmod o+x .
mount --bind . {HERE}
mkdir -p spool
printf '%s' "$NODE_CONF" > slurm.conf
printf '%s' "$NODE_PLUGINS" > plugstack.conf
chmod 644 slurm.conf plugstack.conf
unset NODE_CONF NODE_PLUGINS
"""
# srun in jobs is to be reached at any address of the machine, so jobs have a file of their own.
_FOR_JOBS: Final = f"""sed '/^CommunicationParameters=/d' slurm.conf > jobs.conf
printf '#!/bin/sh\\necho "export SLURM_CONF={HERE}/jobs.conf"\\n' > prolog
chmod 644 jobs.conf
chmod 755 prolog
"""
# It reaps what comes to it, and hands on that it is to end.
_SERVE: Final = """slurmd "$@" &
daemon=$!
code=0
trap 'kill "$daemon"' TERM
while kill -0 "$daemon" 2>/dev/null; do
    code=0
    wait "$daemon" || code=$?
done
exit "$code"
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """
    cluster: a name for it.
    hostname: of this machine, short, as the kernel has it: slurmctld looks for itself.
    address, port: where nodes and users find slurmctld.
    node_port: where slurmd listens; one for all (what Slurm 22.05 knows of a dynamic node's port
        is wrong).
    munge_socket: of the munged that all use.
    user: who runs the daemons.
    directory: where slurmctld keeps its files.
    job_mem_mb: memory per cpu of jobs that do not say.
    most_nodes: as many may come.
    """

    cluster: str
    hostname: str
    address: str
    port: int
    node_port: int
    munge_socket: str
    user: str
    directory: str
    job_mem_mb: int
    most_nodes: int


def server_text(settings: Settings) -> str:
    """slurm.conf for slurmctld and for commands."""
    return _lines(_common(settings, settings.directory))


def node_text(settings: Settings, name: str, size: Size, address: str) -> str:
    """slurm.conf for one slurmd; with an `address` it listens there only, and is described,
    else it registers by itself."""
    lines = _common(settings, HERE)
    if address:
        lines["CommunicationParameters"] = "NoInAddrAny"
        lines["NodeName"] = f"{name} {node_words(size)} NodeAddr={address}"
        lines["TaskProlog"] = f"{HERE}/prolog"
    return _lines(lines)


def node_words(size: Size) -> str:
    """How Slurm is told of a node's size."""
    return f"CPUs={size.cpus} RealMemory={size.mem_mb}"


def node_script(name: str, size: Size, address: str) -> tuple[str, ...]:
    """What runs on the agent, with NODE_CONF and NODE_PLUGINS in its environment."""
    slurmd = ("slurmd", "-D", "-f", f"{HERE}/slurm.conf", "-N", name)
    if not address:
        itself = ("-Z", "--conf", node_words(size))
        return (*_APART, "/bin/sh", "-c", _START + _SERVE, *slurmd, *itself)
    # slurmd listens at the address of its machine's name.  Here each has a name of its own, in a
    # namespace of its own: the number of its address, which resolves to it without any look-up.
    named = f"hostname {number_of(address)}\n"
    return (*_APART, "--uts", "/bin/sh", "-c", _START + named + _FOR_JOBS + _SERVE, *slurmd)


def number_of(address: str) -> int:
    """An IPv4 address as one number."""
    number = 0
    for part in address.split("."):
        number = number * 256 + int(part)
    return number


def loopback_address(number: int) -> str:
    """One for the node with this number, from 1 up: the next 16 million have others."""
    number %= 2**22
    return f"127.{64 + (number >> 16)}.{(number >> 8) & 255}.{number & 255}"


def _common(settings: Settings, directory: str) -> dict[str, str]:
    return {
        "ClusterName": settings.cluster,
        "SlurmctldHost": f"{settings.hostname}({settings.address})",
        "SlurmctldPort": str(settings.port),
        "SlurmdPort": str(settings.node_port),
        "SlurmUser": settings.user,
        "SlurmdUser": settings.user,
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        # How long a leave to start a job is good, and so how long one that was put back waits.
        "AuthInfo": f"socket={settings.munge_socket},cred_expire=20",
        "StateSaveLocation": f"{directory}/state",
        "SlurmctldPidFile": f"{directory}/slurmctld.pid",
        "SlurmctldLogFile": f"{directory}/slurmctld.log",
        "SlurmdSpoolDir": f"{directory}/spool",
        "SlurmdPidFile": f"{directory}/slurmd.pid",
        "SlurmdLogFile": f"{directory}/slurmd.log",
        "PlugStackConfig": f"{directory}/plugstack.conf",
        # The agent's isolation is the isolation; Slurm leaves control groups alone.
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        # A job that takes more memory than it has is ended, before all jobs of its node are.
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherParams": "OverMemoryKill",
        "JobAcctGatherFrequency": "task=5",
        "MpiDefault": "none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": str(settings.job_mem_mb),
        # A node is what we say, also on a machine with fewer cores.
        "SlurmdParameters": "config_overrides",
        "DebugFlags": "NO_CONF_HASH",
        "MaxNodeCount": str(settings.most_nodes),
        # slurmctld speaks to each node itself: they come and go.
        "TreeWidth": "65533",
        "ReturnToService": "2",
        "JobRequeue": "1",
        # That a node has come is not always a reason for slurmctld to look at its queue.
        "SchedulerParameters": "sched_interval=2,bf_interval=2,batch_sched_delay=1",
        "MailProg": "/bin/true",
        "PartitionName": "batch Default=YES Nodes=ALL MaxTime=INFINITE State=UP",
    }


def _lines(values: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())


__all__ = [
    "HERE",
    "PLUGINS",
    "ROOM_ADDRESS",
    "ROOM_CPUS",
    "ROOM_MEM_MB",
    "ROOM_NODE",
    "Settings",
    "loopback_address",
    "node_script",
    "node_text",
    "node_words",
    "server_text",
]
