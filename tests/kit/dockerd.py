"""A dockerd of the tests' own, in namespaces of its own, and an image without a registry.

    with PrivateDockerd(directory) as dockerd:
        dockerd.client.containers()

Its network, mounts and /run are those of a holder process: the machine's firewall, its
mounts and a dockerd that it may have are not touched, and what it leaves goes with the
holder.  Its containers' cgroups are all below one group, `dockerd.group`.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

from agent.containers.docker.cgroups import hierarchies
from agent.containers.docker.transport import new_client
from tests.kit.waiting import LIMIT_S, gone, until

IMAGE: Final = "tiny:1"
NEEDS: Final = ("root", "dockerd", "containerd", "runc", "unshare", "nsenter", "ip", "busybox")
_APPLETS: Final = (
    *("sh", "sleep", "echo", "cat", "kill", "ls", "id", "env", "head", "dd", "true", "false"),
    *("wget", "nc", "seq", "hostname", "grep", "touch", "stat", "tr", "ps", "yes", "tail"),
    *("mkdir", "chown", "date", "test", "basename"),
)
# dockerd and containerd write into these whatever they are told; /opt keeps what is in it.
_HOLDER: Final = """
set -e
ip link set lo up
mount -t tmpfs tmpfs /run
if [ -d /etc/docker ]; then mount -t tmpfs tmpfs /etc/docker; fi
if [ -d /opt ]; then
    mkdir /run/opt
    mount --rbind /opt /run/opt
    mount -t tmpfs tmpfs /opt
    for each in /run/opt/*/; do
        name=$(basename "$each")
        if [ "$name" != containerd ] && [ "$name" != '*' ]; then
            mkdir "/opt/$name"
            mount --rbind "$each" "/opt/$name"
        fi
    done
fi
echo ready
exec cat
"""


class PrivateDockerd:
    """Started by `start`, and anew after `kill`, in the same namespaces."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)
        self.socket = directory / "docker.sock"
        self.log = directory / "dockerd.log"
        self.group = f"mesos_py_test_{os.getpid()}_{id(self) % 100_000}"
        self._holder: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Any = None

    def __enter__(self) -> Self:
        try:
            self._hold()
            self.start()
            self._import_image()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def client(self) -> Any:
        """The SDK's APIClient."""
        if self._client is None:
            self._client = new_client(str(self.socket), "1.41", 30)
            # None is kept open: it would look like a leak of the test's.
            self._client.headers["Connection"] = "close"
        return self._client

    @property
    def flags(self) -> tuple[str, ...]:
        """For an agent that is to use it."""
        return (
            *("--containerizers", "posix,docker", "--docker-socket", str(self.socket)),
            *("--docker-cgroup-root", f"{self.group}/agents"),
        )

    # ---- Life ------------------------------------------------------------------------

    def start(self, *options: str) -> None:
        assert self._holder is not None
        argv = ["nsenter", f"--target={self._holder.pid}", "--net", "--mount", "--", "dockerd"]
        argv += [f"--host=unix://{self.socket}", f"--data-root={self.directory}/data"]
        argv += [f"--exec-root={self.directory}/exec", f"--pidfile={self.directory}/pid"]
        argv += ["--iptables=false", "--ip6tables=false", "--ip-masq=false", "--log-level=warn"]
        argv += ["--exec-opt=native.cgroupdriver=cgroupfs", f"--cgroup-parent=/{self.group}/other"]
        # Of a dockerd that was killed.
        (self.directory / "pid").unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*argv, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
            )
        until(self._answers)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()
        with socket.socket(socket.AF_UNIX) as tried:
            if tried.connect_ex(str(self.socket)) != 0:
                return False
        return bool(self.client.ping())

    def kill(self) -> None:
        """kill -9.  Its containerd goes with it, the containers run on."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        note = self.directory / "exec/containerd/containerd.pid"
        with contextlib.suppress(FileNotFoundError):
            containerd = int(note.read_text())
            until(lambda: gone(containerd))
            # A zombie that nobody has reaped yet would be taken for a containerd.
            note.unlink()

    def stop(self) -> None:
        """SIGTERM, to its end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(LIMIT_S)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self.resume()
            with contextlib.suppress(Exception):
                self.remove_all()
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
            if self._process.poll() is None:
                self.kill()
        if self._client is not None:
            self._client.close()
        if self._holder is not None:
            self._end_namespaces(self._holder)
        self._remove_groups()
        shutil.rmtree(self.directory / "data", ignore_errors=True)
        shutil.rmtree(self.directory / "exec", ignore_errors=True)

    def _hold(self) -> None:
        argv = ["unshare", "--net", "--mount", "--propagation=private", "sh", "-c", _HOLDER]
        self._holder = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"

    def _end_namespaces(self, holder: subprocess.Popen[bytes]) -> None:
        """All that is left in them, containerd and its shims, then the holder itself."""
        mine = _namespace(holder.pid)
        left = [pid for pid in _processes() if pid != holder.pid and _namespace(pid) == mine]
        left += [pid for group in self.groups() for pid in _members(group)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: all(map(gone, left)))
        for stream in (holder.stdin, holder.stdout):
            if stream is not None:
                stream.close()
        holder.kill()
        holder.wait()

    # ---- Containers ------------------------------------------------------------------

    def remove_all(self) -> None:
        for row in self.client.containers(all=True):
            self.client.remove_container(row["Id"], v=True, force=True)

    def ids(self, **labels: str) -> list[str]:
        """Docker ids of all containers with these labels ("agent_id": "A1")."""
        wanted = [f"mesos_py.{key}={value}" for key, value in labels.items()]
        rows = self.client.containers(all=True, filters={"label": wanted})
        return [row["Id"] for row in rows]

    def inspect(self, **labels: str) -> dict[str, Any]:
        """The one container with these labels."""
        (docker_id,) = self.ids(**labels)
        found: dict[str, Any] = self.client.inspect_container(docker_id)
        return found

    def command_lines(self, docker_id: str) -> dict[str, int]:
        """Of all processes of a container, with their pids."""
        groups = [group for group in self.groups() if group.name == docker_id]
        found = {}
        for pid in {pid for group in groups for pid in _members(group)}:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                found[" ".join(words).strip()] = pid
        return found

    def kill_process(self, docker_id: str, words: str) -> None:
        """kill -9 the one process of a container whose command line has these words."""
        lines = self.command_lines(docker_id)
        # The init process in front has them, too.
        (found,) = (pid for line, pid in lines.items() if words in line and "init" not in line)
        os.kill(found, signal.SIGKILL)

    def run_stranger(self, labels: dict[str, str], name: str | None = None) -> str:
        """A container that sleeps, of somebody else; its docker id."""
        made = self.client.create_container(
            IMAGE,
            ["sleep", "1000"],
            labels=labels,
            name=name,
            host_config=self.client.create_host_config(network_mode="none", init=True),
        )
        self.client.start(made["Id"])
        return str(made["Id"])

    def running(self, docker_id: str) -> bool:
        return bool(self.client.inspect_container(docker_id)["State"]["Running"])

    def inside(self, *argv: str) -> str:
        """Run busybox in dockerd's network; what it prints."""
        assert self._holder is not None
        where = ["nsenter", f"--target={self._holder.pid}", "--net", "--", "busybox"]
        ended = subprocess.run([*where, *argv], stdin=subprocess.DEVNULL, capture_output=True)
        return ended.stdout.decode(errors="replace")

    @contextlib.contextmanager
    def network(self) -> Iterator[int]:
        """The namespace of its network, which is that of containers on their host's network."""
        assert self._holder is not None
        namespace = os.open(f"/proc/{self._holder.pid}/ns/net", os.O_RDONLY)
        try:
            yield namespace
        finally:
            os.close(namespace)

    @contextlib.contextmanager
    def registry(self, mode: str) -> Iterator[str]:
        """Its address, as dockerd sees it; see tests/kit/registry.py."""
        assert self._holder is not None
        root = self.directory / "root.tar"
        root.write_bytes(_root())
        argv = ["nsenter", f"--target={self._holder.pid}", "--net", "--", sys.executable]
        argv += [str(Path(__file__).with_name("registry.py")), mode, str(root)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd="/") as process:
            assert process.stdout is not None
            yield f"127.0.0.1:{int(process.stdout.readline())}"
            process.kill()

    def _import_image(self) -> None:
        self.client.import_image_from_data(_root(), repository="tiny", tag="1")

    # ---- Cgroups ---------------------------------------------------------------------

    def groups(self) -> list[Path]:
        """All below ours, the innermost first."""
        found = []
        for hierarchy in hierarchies(Path("/proc/self/mountinfo").read_text()):
            for directory, _, _ in os.walk(hierarchy / self.group, topdown=False):
                found.append(Path(directory))
        return found

    def _remove_groups(self) -> None:
        until_s = time.monotonic() + LIMIT_S
        while groups := self.groups():
            assert time.monotonic() < until_s, f"cgroups left: {groups}"
            for group in groups:
                with contextlib.suppress(OSError):
                    group.rmdir()


def add_busybox(archive: tarfile.TarFile) -> None:
    """A root file system: busybox, and places to mount a machine's own programs."""
    for name in ("bin", "tmp", "proc", "sys", "dev", "etc", "usr", "root"):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(entry)
    busybox = shutil.which("busybox")
    assert busybox is not None
    archive.add(os.path.realpath(busybox), "bin/busybox")
    links = {f"bin/{name}": "busybox" for name in _APPLETS}
    links |= {"lib": "usr/lib", "lib64": "usr/lib64"}
    for name, target in links.items():
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        archive.addfile(entry)


def _root() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        add_busybox(archive)
    return made.getvalue()


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:
        return ""


def _members(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []
