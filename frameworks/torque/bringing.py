"""From options to a backend; what has to be the same each time is kept in the state directory."""

from __future__ import annotations

import getpass
import json
import socket
from pathlib import Path
from typing import Final

from frameworks.torque.backend import Backend
from frameworks.torque.options import TorqueOptions
from frameworks.torque.pbs.server import Torque
from frameworks.torque.slurm.config import Settings
from frameworks.torque.slurm.server import Slurm
from mesos_py import InvalidValue, MesosPyError
from mesos_py.files import write_atomically

CHOSEN: Final = "chosen.json"


def backend_of(options: TorqueOptions) -> Backend:
    """Raises InvalidValue."""
    if options.backend == "torque":
        return Torque(options.node_port)
    port, node_port = _ports(options)
    directory = options.state_dir.absolute()
    own_munge = options.munge_socket is None
    settings = Settings(
        cluster="torque",
        hostname=socket.gethostname().partition(".")[0],
        address=options.ip,
        port=port,
        node_port=node_port,
        munge_socket=str(options.munge_socket or directory / "munge.socket"),
        user=options.user or getpass.getuser(),
        directory=str(directory),
        job_mem_mb=options.job_mem_mb,
        # One for what may come, and for each one that ends while the next begins.
        most_nodes=2 * options.max_nodes + 1,
    )
    for name in ("directory", "munge_socket"):
        value = getattr(settings, name)
        if any(sign.isspace() or sign in "#\"'\\,()=|" for sign in value):
            raise InvalidValue(name, value, "must have no blanks and none of # \" ' \\ , ( ) = |")
    return Slurm(settings, own_munge)


def _ports(options: TorqueOptions) -> tuple[int, int]:
    """Those that were picked before stay: nodes that run know them."""
    path = options.state_dir / CHOSEN
    try:
        kept = json.loads(path.read_text())
        before = int(kept["port"]), int(kept["node_port"])
    except FileNotFoundError:
        before = 0, 0
    except (ValueError, KeyError, TypeError) as error:
        raise MesosPyError(f"{path} is damaged ({error!r}): remove it") from error
    free = _free_ports(options.ip)
    port = options.port or before[0] or free[0]
    node_port = options.node_port or before[1] or free[1]
    if (port, node_port) != before:
        write_atomically(path, json.dumps({"port": port, "node_port": node_port}) + "\n")
    return port, node_port


def _free_ports(ip: str) -> tuple[int, int]:
    """Two that nobody listens at now."""
    with socket.socket() as first, socket.socket() as second:
        try:
            first.bind((ip, 0))
            second.bind((ip, 0))
        except OSError as error:
            raise InvalidValue("ip", ip, error.strerror or str(error)) from error
        return first.getsockname()[1], second.getsockname()[1]


def environment_text(backend: Backend) -> str:
    """For users' shells."""
    return "".join(f"export {key}={value}\n" for key, value in backend.user_environment().items())


def environment_file(state_dir: Path) -> Path:
    return state_dir.absolute() / "env.sh"


__all__ = ["backend_of", "environment_file", "environment_text"]
