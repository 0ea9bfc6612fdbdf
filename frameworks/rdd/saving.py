"""Data sets into files, and checkpoints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from frameworks.rdd import writing
from frameworks.rdd.figures import Figures
from frameworks.rdd.paths import extension_of
from frameworks.rdd.storage import NONE, StorageLevel
from mesos_py.errors import Conflict

if TYPE_CHECKING:
    from frameworks.rdd.context import SparkContext
    from frameworks.rdd.nodes import Node

T = TypeVar("T")


class Saving(Figures[T]):
    def __init__(self, node: Node, ctx: SparkContext) -> None:
        super().__init__(node, ctx)
        self.is_checkpointed = False
        self._locally = False

    # ---- Files -----------------------------------------------------------------------------

    def saveAsTextFile(self, path: str, compressionCodecClass: str | None = None) -> None:
        """A line for each element, as str has it, in a file for each partition of a new
        directory; `_SUCCESS` is there when all are.

        compressionCodecClass: the name of Hadoop's GzipCodec, BZip2Codec or ZStandardCodec.
        Raises AlreadyExists if something is at `path`, InvalidValue for another codec.
        """
        extension = extension_of(compressionCodecClass)
        writing.save(self.ctx, self.node, path, writing.text, extension)

    def saveAsPickleFile(self, path: str, batchSize: int = 10) -> None:
        """As saveAsTextFile; for SparkContext.pickleFile to read.  batchSize: elements that
        are pickled together; 0: as many as is good."""
        writing.save(self.ctx, self.node, path, partial(writing.pickles, batchSize), "")

    # ---- Checkpoints -----------------------------------------------------------------------

    def checkpoint(self) -> None:
        """After the next job that needs it, it is written to the directory of
        SparkContext.setCheckpointDir, by a job of its own: persist it, or it is computed
        twice.  From then on it is read from there, and what it was made of is forgotten.

        Raises Conflict if no directory was set.
        """
        if self.ctx.getCheckpointDir() is None:
            raise Conflict(
                "Checkpoint directory has not been set in the SparkContext: setCheckpointDir "
                "comes first",
                rdd=self.node.id,
            )
        self.is_checkpointed = True
        self.ctx.mark(self.node)

    def isCheckpointed(self) -> bool:
        """Whether it was written."""
        return bool(self.node.checkpoint) or self._locally

    def getCheckpointFile(self) -> str | None:
        """The directory that has it, once it was written."""
        return self.node.checkpoint or None

    def localCheckpoint(self) -> None:
        """Kept by the executors, in memory or on disk.  Unlike Spark's it can still be
        computed again if they are lost: its lineage is not cut."""
        if self.node.storage == NONE:
            self.persist(StorageLevel.MEMORY_AND_DISK)
        self._locally = True

    def isLocallyCheckpointed(self) -> bool:
        return self._locally
