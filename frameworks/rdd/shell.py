"""What the shell begins with: `sc`, and the names that programs import."""

from __future__ import annotations

import sys
from typing import Final

from frameworks.rdd import SparkConf, SparkContext, StorageLevel
from mesos_py.version import VERSION

sc: Final = SparkContext.getOrCreate()
_PAGE: Final = f"\nWhat it does is shown at {sc.uiWebUrl}" if sc.uiWebUrl else ""

print(  # noqa: T201
    f"mesos-py {VERSION}, Python {sys.version.split()[0]}.  `sc` is a SparkContext on "
    f"{sc.master}.{_PAGE}",
    file=sys.stderr,
)

__all__ = ["SparkConf", "SparkContext", "StorageLevel", "sc"]
