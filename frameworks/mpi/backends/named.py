"""The backends by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from frameworks.mpi.backends.base import Backend
from frameworks.mpi.backends.mpich import Mpich
from frameworks.mpi.backends.openmpi import OpenMpi

BACKENDS: Final[Mapping[str, type[Backend]]] = {Mpich.name: Mpich, OpenMpi.name: OpenMpi}
