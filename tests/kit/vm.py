"""A small virtual machine with cgroup v2 alone, for what this machine's kernel has not.

machine = Machine(cache)            # builds the disk if it is not there: a minute or two
status, output = machine.run("python3 -m pytest tests/...", tmp_path)

It runs under emulation (no KVM is needed), without a network; its disk is never changed.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from importlib import metadata
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / ".cache" / "vm"
BUILD_WITHIN_S: Final = 600.0
# What the tests import there beside the standard library; all of it is plain Python or works
# with any Python from 3.8 on.
DISTRIBUTIONS: Final = (
    *("pytest", "pytest-asyncio", "pluggy", "iniconfig", "packaging", "pygments"),
    *("hypothesis", "sortedcontainers", "protobuf", "typing_extensions"),
)
SOURCES: Final = (
    "mesos_py",
    "agent",
    "tests/kit",
    "tests/system/test_cgroups.py",
    "tests/conftest.py",
)


def build() -> None:
    script = Path(__file__).parents[1] / "vm" / "image.sh"
    subprocess.run([script, CACHE], check=True, timeout=BUILD_WITHIN_S, stdin=subprocess.DEVNULL)


def run(script: str, scratch: Path, within_s: float) -> tuple[int | None, str]:
    """Boot, run `script` (sh) in a copy of this repository, switch off.

    Returns its exit status, None if it did not get so far, and all that was printed.
    """
    payload = scratch / "payload.tar"
    _pack(payload, script)
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max"]
    command += ["-m", "1024", "-smp", "2"]
    command += ["-display", "none", "-no-reboot", "-nodefaults", "-serial", "stdio"]
    command += ["-kernel", str(CACHE / "kernel"), "-initrd", str(CACHE / "initrd")]
    command += ["-append", "console=ttyS0 root=/dev/vda rw init=/vm-init quiet panic=-1"]
    command += ["-drive", f"file={CACHE / 'disk.img'},format=raw,if=virtio,snapshot=on"]
    command += ["-drive", f"file={payload},format=raw,if=virtio,readonly=on"]
    log = scratch / "console.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    output = log.read_text(errors="replace").replace("\r\n", "\n")
    told = re.search(r"^VM-STATUS (\d+)$", output, re.MULTILINE)
    return int(told[1]) if told else None, output


def _pack(path: Path, script: str) -> None:
    with tarfile.open(path, "w") as tar:
        for name in ("pyproject.toml", *SOURCES):
            tar.add(ROOT / name, name, filter=_without_caches)
        for name in DISTRIBUTIONS:
            for file in metadata.distribution(name).files or ():
                if ".." not in file.parts and file.suffix != ".pyc":
                    tar.add(file.locate(), f"site/{file}")
        run_file = path.with_name("run")
        run_file.write_text(f"export PYTHONPATH=/payload/site:/payload\n{script}\n")
        tar.add(run_file, "run")


def _without_caches(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in info.name else info
