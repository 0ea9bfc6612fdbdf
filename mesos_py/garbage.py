"""The garbage collector of a process that runs for months."""

from __future__ import annotations

import gc
from typing import Final

# Reference counts free nearly everything at once; what the collector looks for is rare
# here.  Python's defaults (700, 10, 10) have it look through all young objects every few
# messages and through everything every few seconds, which stops the world for a tenth of
# a second in a large cluster.
THRESHOLDS: Final = (50_000, 20, 100)


def settle() -> None:
    """To be called once a daemon is ready: what there is now stays, and is not looked at
    again; what comes is looked at seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
