"""The data set that users hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from frameworks.rdd.saving import Saving

T = TypeVar("T")


class RDD(Saving[T]):
    """A data set in partitions, which tasks compute when an action needs them.

    Its methods are PySpark's, with the same names, parameters and defaults: docs/rdd.md says
    where they differ.  They stand by theme in the classes that this one is made of.
    """

    if not TYPE_CHECKING:  # or every name would be taken for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            text = ABSENT.get(name, f"an RDD has no {name!r}")
            raise AttributeError(text, name=name, obj=self)


_HADOOP = (
    "it needs Hadoop's classes, and there is no JVM here; there are saveAsTextFile and "
    "saveAsPickleFile"
)

# Of PySpark's RDD what is not here, and why: for programs that try it.
ABSENT = {
    "barrier": "tasks of a stage are not started together here; the MPI framework does that",
    "cleanShuffleDependencies": "what no data set needs any more is removed by itself",
    "getResourceProfile": "all executors of a context are alike",
    "withResources": "all executors of a context are alike",
    "toDF": "there are no DataFrames here",
    **dict.fromkeys(
        (
            "saveAsHadoopDataset",
            "saveAsHadoopFile",
            "saveAsNewAPIHadoopDataset",
            "saveAsNewAPIHadoopFile",
            "saveAsSequenceFile",
        ),
        _HADOOP,
    ),
}
