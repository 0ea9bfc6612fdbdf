"""The Torque backend.  pbs_server is a service of the machine: it is used, not brought up."""

from __future__ import annotations

from typing import Final

from frameworks.torque.backend import BatchError, Daemon, run
from frameworks.torque.core.records import Job, Node, Size
from frameworks.torque.pbs import reading
from frameworks.torque.pbs.reading import PROPERTY

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NO_NODE: Final = ("Unknown node", "cannot locate specified nodes", "No nodes found")
_NO_JOB: Final = ("Unknown Job", "Request invalid for state of job")
_NOT_AGAIN: Final = ("Job is not rerunnable",)
# It asks the server whose name is where Torque is installed; its files are in the sandbox.
_MOM: Final = 'set -eu\nmkdir -p log\nexec pbs_mom -D -p -L "$PWD/log/mom" -H "$NODE_HOST"\n'


class Torque:
    """See `Backend`.  Torque calls a node by its host's name, so there is one on an agent, and
    agents must have names that pbs_server can resolve."""

    one_per_agent = True
    keeps_time = False
    # pbs_mom.
    overhead_mb = 32

    def __init__(self, node_port: int, path: str = _PATH) -> None:
        """path: where Torque's commands are."""
        self._node_port = node_port
        self._environment = {"PATH": path, "LC_ALL": "C"}

    # ---- The server ------------------------------------------------------------

    def start(self) -> None:
        try:
            self._run("qmgr", "-c", "list server")
        except BatchError as error:
            raise BatchError(f"pbs_server must run before this: {error.message}") from error

    def alive(self) -> bool:
        try:
            self._run("qmgr", "-c", "list server")
        except BatchError:
            return False
        return True

    def stop(self) -> None:
        """It was not started by us."""

    def user_environment(self) -> dict[str, str]:
        return {}

    # ---- Jobs and nodes -----------------------------------------------------------

    def jobs(self) -> list[Job]:
        return reading.read_jobs(self._run("qstat", "-x"))

    def nodes(self) -> list[Node]:
        return [node for _, node, _ in self._nodes()]

    def place(self, number: int, hostname: str) -> str:
        return hostname

    def daemon(self, name: str, size: Size, address: str) -> Daemon:
        return Daemon(
            command=("/bin/sh", "-c", _MOM),
            environment={"PATH": _PATH, "NODE_HOST": address},
            port=self._node_port or None,
        )

    def register(self, name: str, size: Size, address: str, life_s: float | None) -> None:
        if self._find(name) is None:
            what = f"create node {address} np={size.cpus},properties='{PROPERTY},{name}'"
            self._run("qmgr", "-c", what)

    def drain(self, name: str, why: str) -> None:
        self._at(name, "-o")

    def resume(self, name: str) -> None:
        self._at(name, "-c")

    def lose(self, name: str, why: str) -> None:
        found = self._find(name)
        if found is None:
            return
        host, jobs = found
        for job_id in jobs:
            # Its node will not say that it has ended: it begins anew, or it is closed.
            if self._says(_NOT_AGAIN, "qrerun", "-f", job_id):
                self._says(_NO_JOB, "qdel", "-p", job_id)
        self._says(_NO_NODE, "qmgr", "-c", f"delete node {host}")

    def tell(self, job_id: str, why: str) -> None:
        self._says(_NO_JOB, "qalter", "-W", f"comment={why}", job_id)

    # ---- Its own --------------------------------------------------------------------

    def _nodes(self) -> list[tuple[str, Node, list[str]]]:
        try:
            return reading.read_nodes(self._run("pbsnodes", "-x"))
        except BatchError as error:
            # So it says when there is not one.
            if any(words in error.message for words in _NO_NODE):
                return []
            raise

    def _find(self, name: str) -> tuple[str, list[str]] | None:
        """Its host and its jobs."""
        return next(((host, jobs) for host, node, jobs in self._nodes() if node.name == name), None)

    def _at(self, name: str, option: str) -> None:
        found = self._find(name)
        if found is not None:
            self._says(_NO_NODE, "pbsnodes", option, found[0])

    def _says(self, words: tuple[str, ...], *argv: str) -> bool:
        """Whether the command has failed with one of these.  Raises BatchError for others; that
        a job is not there any more is never one."""
        try:
            self._run(*argv)
        except BatchError as error:
            if any(each in error.message for each in words):
                return True
            if any(each in error.message for each in _NO_JOB):
                return False
            raise
        return False

    def _run(self, *argv: str) -> str:
        return run(argv, self._environment)


__all__ = ["Torque"]
