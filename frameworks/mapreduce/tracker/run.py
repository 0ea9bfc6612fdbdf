"""A tracker as a process of its own, that clients reach over HTTP."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Final

from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.service import Server
from frameworks.mapreduce.tracker.tracker import Tracker
from mesos_py import logs
from mesos_py.files import write_atomically

log = logs.get("mapreduce.tracker")

_LOOK_EVERY_S: Final = 0.5


def serve(
    options: TrackerOptions, *, ip: str = "127.0.0.1", port: int = 0, port_file: Path | None = None
) -> None:
    """Run one until SIGTERM or SIGINT; from the main thread.

    Its tasks go on when it leaves, for a tracker that takes over; with no jobs and nobody to
    stand by, the framework ends.  port_file: gets the port once it is served, whether this
    tracker is active or stands by.  Raises PortInUse, and what a tracker ends with.
    """
    stopped = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    tracker = Tracker(options)
    server = Server(tracker)
    try:
        for number in before:
            signal.signal(number, stop)
        tracker.start()
        bound = server.start(ip, port)
        if port_file is not None:
            write_atomically(port_file, str(bound))
        while not stopped.is_set() and not tracker.join(0):
            stopped.wait(_LOOK_EVERY_S)
    finally:
        server.close()
        tracker.stop(end=not options.standby and tracker.is_idle)
        for number, handler in before.items():
            signal.signal(number, handler)
        log.info("tracker stopped")


__all__ = ["serve"]
