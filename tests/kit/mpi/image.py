"""A docker image in which MPICH's ranks can run, from parts of this machine."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Any, Final

from tests.kit.dockerd import add_busybox

IMAGE: Final = "mpich-here:1"
PROGRAM: Final = "/parts"
_PROXY: Final = Path("/usr/bin/hydra_pmi_proxy")


def import_mpich(client: Any, program: Path) -> None:
    """The image IMAGE: busybox, MPICH's proxy, the program as PROGRAM, and what both load."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        add_busybox(archive)
        archive.add(program, PROGRAM)
        archive.add(_PROXY, str(_PROXY))
        for library in sorted(_loaded(program) | _loaded(_PROXY)):
            # As it is called there; /lib is /usr/lib, here and in the image.
            archive.add(library.resolve(), f"usr{library}".replace("usr/usr", "usr"))
    client.import_image_from_data(made.getvalue(), repository=IMAGE.split(":")[0], tag="1")


def _loaded(program: Path) -> set[Path]:
    """The shared libraries that a program loads, by the paths it finds them at."""
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    words = {word for line in told.splitlines() for word in line.split()}
    return {Path(word) for word in words if word.startswith("/")}
