"""Data sets that are kept in the cluster's memory, in the manner of Spark.

::

    from frameworks.rdd import SparkContext

    with SparkContext("local[4]", "words") as sc:
        lines = sc.textFile("*.txt")
        counts = lines.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(int.__add__)
        print(counts.takeOrdered(10, key=lambda pair: -pair[1]))

What is exported here is found when it is first asked for: executors need little of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frameworks.rdd.accumulators import Accumulator, AccumulatorParam
    from frameworks.rdd.broadcasts import Broadcast
    from frameworks.rdd.conf import SparkConf
    from frameworks.rdd.context import SparkContext
    from frameworks.rdd.rdd import RDD
    from frameworks.rdd.sparkfiles import SparkFiles
    from frameworks.rdd.statcounter import StatCounter
    from frameworks.rdd.status import SparkJobInfo, SparkStageInfo, StatusTracker
    from frameworks.rdd.storage import StorageLevel
    from frameworks.rdd.taskcontext import TaskContext
    from frameworks.rdd.threads import InheritableThread

_HOMES = {
    "Accumulator": "accumulators",
    "AccumulatorParam": "accumulators",
    "Broadcast": "broadcasts",
    "InheritableThread": "threads",
    "RDD": "rdd",
    "SparkConf": "conf",
    "SparkContext": "context",
    "SparkFiles": "sparkfiles",
    "SparkJobInfo": "status",
    "SparkStageInfo": "status",
    "StatCounter": "statcounter",
    "StatusTracker": "status",
    "StorageLevel": "storage",
    "TaskContext": "taskcontext",
}

__all__ = [
    "RDD",
    "Accumulator",
    "AccumulatorParam",
    "Broadcast",
    "InheritableThread",
    "SparkConf",
    "SparkContext",
    "SparkFiles",
    "SparkJobInfo",
    "SparkStageInfo",
    "StatCounter",
    "StatusTracker",
    "StorageLevel",
    "TaskContext",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"frameworks.rdd.{_HOMES[name]}"), name)
