"""Wheels of what is installed here, put together from its files: no network is needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("mesos_py", "master", "agent", "frameworks")
# Notes that an installer leaves beside a distribution; an installer makes its own.
_NOTES: Final = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")


def wheelhouse(directory: Path, *extras: str) -> None:
    """Fill `directory` with a wheel of this project and of each distribution it needs."""
    directory.mkdir(parents=True, exist_ok=True)
    found: dict[str, Distribution] = {}
    _collect(distribution("mesos-py"), extras, found, set())
    for each in found.values():
        if each.metadata["Name"] != "mesos-py":
            _pack(each, directory)
    _build(directory)


def _collect(
    each: Distribution,
    extras: tuple[str, ...],
    found: dict[str, Distribution],
    seen: set[tuple[str, tuple[str, ...]]],
) -> None:
    """All that `each` needs with these extras, and itself."""
    name = each.metadata["Name"]
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    found[name] = each
    for text in each.requires or ():
        needed = Requirement(text)
        marker = needed.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            inner = tuple(sorted(needed.extras))
            _collect(distribution(needed.name), inner, found, seen)


def _pack(each: Distribution, directory: Path) -> None:
    """Its files once more as the wheel that they came from."""
    files = [
        path
        for path in each.files or ()
        if path.parts[0] != ".." and "__pycache__" not in path.parts and path.name not in _NOTES
    ]
    (info,) = {path.parts[0] for path in files if path.parts[0].endswith(".dist-info")}
    lines = (each.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag:").strip() for line in lines if line.startswith("Tag:")]
    parts = [
        ".".join(dict.fromkeys(part)) for part in zip(*(t.split("-") for t in tags), strict=True)
    ]
    name = "-".join([info.removesuffix(".dist-info"), *parts])
    with zipfile.ZipFile(directory / f"{name}.whl", "w") as wheel:
        for path in files:
            wheel.write(str(path.locate()), str(path))
        record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
        wheel.writestr(f"{info}/RECORD", record)


def _build(directory: Path) -> None:
    """This project's own, from a copy: building writes beside the sources."""
    copy = directory / "sources"
    for name in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(directory)]
    subprocess.run([*pip, *options, str(copy)], check=True, stdin=subprocess.DEVNULL)
    shutil.rmtree(copy)
