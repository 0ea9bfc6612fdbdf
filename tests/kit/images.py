"""Images without a registry, from parts of this machine.

`python_base` is what deploy/Dockerfile can build on, `zookeeper` stands in for the
official image of that name: the same settings, the same command.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Any, Final

from tests.kit.dockerd import add_busybox
from tests.kit.wheels import ROOT, SOURCES, wheelhouse

BASE: Final = "python-here:1"
MESOS_PY: Final = "mesos-py:test"
ZOOKEEPER: Final = "zookeeper-here:1"
_BUILD_WITHIN_S: Final = 300
# Of the standard library; site-packages are this machine's own.
_LEFT_OUT: Final = re.compile(
    r"site-packages|dist-packages|test|idlelib|lib2to3|pydoc_data|tkinter|turtledemo|config-.*"
    r"|.*\.opt-\d\.pyc"
)
_ETC: Final = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "nsswitch.conf": "hosts: files dns\n",
}

# As the official image: settings from the environment, data in /data.  The machine's own
# Java and ZooKeeper are mounted (`zookeeper_mounts`).
_ZOOKEEPER: Final = """#!/bin/sh
set -eu
mkdir -p /data /datalog /conf
{
    echo dataDir=/data
    echo dataLogDir=/datalog
    echo tickTime=2000
    echo initLimit=5
    echo syncLimit=2
    echo admin.enableServer=false
    for server in $ZOO_SERVERS; do echo "$server"; done
} >/conf/zoo.cfg
echo "$ZOO_MY_ID" >/data/myid
exec java -Xms16m -Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.forceSync=no \\
    -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar \\
    org.apache.zookeeper.server.quorum.QuorumPeerMain /conf/zoo.cfg
"""


def import_base(client: Any, directory: Path) -> None:
    """The image BASE: busybox and the Python that runs the tests."""
    path = directory / "base.tar"
    with tarfile.open(path, "w") as archive:
        add_busybox(archive)
        for name, text in _ETC.items():
            _add_text(archive, f"etc/{name}", text)
        _add_python(archive)
    client.import_image_from_file(str(path), repository=BASE.split(":")[0], tag="1")
    path.unlink()


def build(client: Any, directory: Path) -> None:
    """The image MESOS_PY, by deploy/Dockerfile, from what this repository has."""
    wheels = directory / "wheels"
    wheelhouse(wheels)
    path = directory / "context.tar"
    with tarfile.open(path, "w") as archive:
        names = ("LICENSE", "README.md", "constraints.txt", "pyproject.toml", "deploy", *SOURCES)
        for name in names:
            archive.add(ROOT / name, name, filter=_without_caches)
        archive.add(wheels, "deploy/wheels")
    with path.open("rb") as context:
        steps = client.build(
            fileobj=context,
            custom_context=True,
            dockerfile="deploy/Dockerfile",
            tag=MESOS_PY,
            buildargs={"BASE": BASE, "EXTRAS": ""},
            network_mode="none",
            rm=True,
            forcerm=True,
            timeout=_BUILD_WITHIN_S,
            decode=True,
        )
        said = list(steps)
    errors = [step["error"] for step in said if "error" in step]
    assert not errors, "".join(step.get("stream", "") for step in said) + "".join(errors)
    path.unlink()


def import_zookeeper(client: Any, directory: Path) -> None:
    """The image ZOOKEEPER, to be run with `zookeeper_mounts`."""
    path = directory / "zookeeper.tar"
    with tarfile.open(path, "w") as archive:
        add_busybox(archive)
        _add_text(archive, "docker-entrypoint.sh", _ZOOKEEPER, 0o755)
    client.import_image_from_file(
        str(path),
        repository=ZOOKEEPER.split(":")[0],
        tag="1",
        changes=["ENV PATH=/bin:/usr/bin", 'ENTRYPOINT ["/docker-entrypoint.sh"]'],
    )
    path.unlink()


def zookeeper_mounts() -> list[str]:
    """Volumes with this machine's Java and ZooKeeper, for a container of ZOOKEEPER."""
    settings = [str(path) for path in sorted(Path("/etc").glob("java-*"))]
    return [f"{path}:{path}:ro" for path in ("/usr", "/etc/alternatives", *settings)]


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.name.endswith("__pycache__") else entry


def _add_python(archive: tarfile.TarFile) -> None:
    """The interpreter as `python3`, its library, and all that these are linked with.

    Beside that what the wheels are linked with, which take the C++ library for granted.
    """
    program = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    added: set[str] = set()
    _add(archive, program, added)
    _add_link(archive, "usr/bin/python3", str(program))
    for path in sorted(library.rglob("*")):
        parts = path.relative_to(library).parts
        if path.is_file() and not any(map(_LEFT_OUT.fullmatch, parts)):
            _add(archive, path, added)
    if (bundled := sysconfig.get_config_var("WHEEL_PKG_DIR")) is not None:
        for path in Path(bundled).glob("*.whl"):
            _add(archive, path, added)
    installed = Path(sysconfig.get_path("platlib"))
    modules = [*library.glob("lib-dynload/*.so"), *installed.rglob("*.so")]
    for path in _linked([program, *modules]):
        if not path.is_relative_to(installed):
            _add(archive, path, added)


def _linked(files: list[Path]) -> list[Path]:
    """The shared libraries that `files` load, the loader among them."""
    done = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True)
    found = re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", done.stdout, re.MULTILINE)
    return [Path(each) for each in sorted(set(found))]


def _add(archive: tarfile.TarFile, path: Path, added: set[str]) -> None:
    """At its own place; /lib and /lib64 are links there, as they are here."""
    name = str(path).lstrip("/")
    if name.startswith("lib"):
        name = f"usr/{name}"
    if name in added:
        return
    added.add(name)
    # What is above it must be open to everybody, also where it is not here.
    for parent in reversed(Path(name).parents[:-1]):
        if str(parent) not in added and str(parent) not in ("usr", "root", "bin", "etc"):
            added.add(str(parent))
            entry = tarfile.TarInfo(str(parent))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
    archive.add(path.resolve(), name)


def _add_link(archive: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    archive.addfile(entry)


def _add_text(archive: tarfile.TarFile, name: str, text: str, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text.encode()), mode
    archive.addfile(entry, io.BytesIO(text.encode()))
