"""Threads of the driver's program whose jobs are as from the thread that has made them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from frameworks.rdd.context import SparkContext


class InheritableThread(threading.Thread):
    """With the group, the tags and the other properties that the thread had which calls
    `start`."""

    def __init__(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(None, target, *args, **kwargs)

    def start(self) -> None:
        context = SparkContext.active()
        if context is not None:
            self.run = context.inherited(self.run, named=False)  # type: ignore[method-assign]
        super().start()
