"""`local[N]`: one executor of N slots, a child process of the driver.

The executor ends with the driver, however that ends: it watches its parent's process, and its
link.  An executor that dies is replaced by another, with another id.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from frameworks.rdd import properties
from frameworks.rdd.backend import BlockServer, Listener
from frameworks.rdd.executor.settings import HASHES, Settings
from frameworks.rdd.link import Link
from frameworks.rdd.messages import FromDriver, FromExecutor, Hello, Leave
from frameworks.runtime import exits
from mesos_py import logs
from mesos_py.errors import MesosPyError, shortened

_IP: Final = "127.0.0.1"
_HOST: Final = "localhost"
_LEAVE_S: Final = 10.0
_TERM_S: Final = 5.0
# So many in a row that end before they have joined: there will be none.
_MAX_FALSE_STARTS: Final = 3
_log = logs.get("rdd.local")


class LocalBackend:
    """Implements backend.Backend."""

    elastic = False

    def __init__(self, slots: int, conf: Mapping[str, str] | None = None) -> None:
        """Raises InvalidValue for a property that is wrong."""
        conf = conf or {}
        self._slots = slots
        self._storage_bytes = int(
            properties.EXECUTOR_MEMORY.of(conf) * properties.MEMORY_FRACTION.of(conf)
        )
        self._worker_memory_bytes = properties.WORKER_MEMORY.of(conf)
        self._reuse = properties.WORKER_REUSE.of(conf)
        self._base = properties.LOCAL_DIR.of(conf) or None
        self._secret = secrets.token_hex(32)
        self._link = Link(self._secret, self)
        self._lock = threading.Lock()
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: threading.Thread | None = None
        self._number = 0
        self._here = ""  # the executor that has joined
        self._dropped: dict[str, str] = {}
        self._stopping = False

    @property
    def blocks(self) -> BlockServer:
        return self._link

    def start(self, listener: Listener) -> None:
        """Raises MesosPyError if no process can be started, or there is no place for files."""
        self._listener = listener
        try:
            self._directory = Path(tempfile.mkdtemp(prefix="mesos-py-rdd-", dir=self._base))
            self._link.start(_IP, _IP, 0)
            process = self._begin()
        except OSError as error:
            self.stop()
            raise MesosPyError(f"no executor can be started: {error}") from error
        except BaseException:
            self.stop()
            raise
        self._keeper = threading.Thread(
            target=self._keep, args=(process,), name="rdd-local", daemon=True
        )
        self._keeper.start()

    def send(self, executor_id: str, message: FromDriver) -> None:
        self._link.send(executor_id, message)

    def want(self, slots: int) -> None:
        """There is one executor, always."""

    def drop(self, executor_id: str, reason: str) -> None:
        with self._lock:
            if executor_id == self._here:
                self._dropped[executor_id] = reason
                self._link.send(executor_id, Leave(reason))

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            process, here = self._process, self._here
        if process is not None:
            if here:
                self._link.send(here, Leave("the context was stopped"))
            else:
                # It may be about to join: told by a signal, which waits for it.
                process.terminate()
            _wait_for(process)
        if self._keeper is not None and self._keeper is not threading.current_thread():
            self._keeper.join()
        self._link.stop()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    # ---- the link's thread -----------------------------------------------------------------

    def joined(self, hello: Hello) -> str:
        with self._lock:
            if self._stopping or hello.executor_id != str(self._number):
                return "not expected"
            self._here = hello.executor_id
        self._listener.executor_joined(hello)
        return ""

    def heard(self, executor_id: str, message: FromExecutor) -> None:
        self._listener.heard(executor_id, message)

    def left(self, executor_id: str, reason: str) -> None:
        """Its process ends too, which is what counts: then all is known."""
        with self._lock:
            process = self._process
            if executor_id != str(self._number) or process is None or self._stopping:
                return
            # One that hangs is to end as well.
            with contextlib.suppress(ProcessLookupError):
                process.terminate()

    # ---- the executor's process ------------------------------------------------------------

    def _begin(self) -> subprocess.Popen[bytes] | None:
        """None if it is being stopped.  Raises OSError."""
        assert self._directory is not None
        with self._lock:
            if self._stopping:
                return None
            self._number += 1
            self._here = ""
            place = self._directory / str(self._number)
            place.mkdir()
            settings = Settings(
                executor_id=str(self._number),
                driver=self._link.address,
                directory=str(place),
                slots=self._slots,
                storage_bytes=self._storage_bytes,
                host=_HOST,
                ip=_IP,
                parent_pid=os.getpid(),
                remove=True,
                python_path=tuple(str(Path(path or ".").resolve()) for path in sys.path),
                preload=("numpy",) if "numpy" in sys.modules else (),
                worker_memory_bytes=self._worker_memory_bytes,
                reuse=self._reuse,
            )
            self._process = subprocess.Popen(
                # -P: what lies in the user's directory is not taken for a module of ours.
                [sys.executable, "-P", "-m", "frameworks.rdd.executor"],
                env={**HASHES, **os.environ, **settings.variables(self._secret)},
                stdin=subprocess.DEVNULL,
                # What tasks print is seen where the driver's errors are.
                stdout=2,
                # A Ctrl-C at the terminal is for the driver, which then cancels its job.
                start_new_session=True,
            )
        return self._process

    def _keep(self, process: subprocess.Popen[bytes] | None) -> None:
        """In a thread: one after the other, as long as they are wanted."""
        false_starts = 0
        while process is not None:
            code = process.wait()
            with self._lock:
                here, number = self._here, str(self._number)
                self._here = ""
                if self._stopping:
                    return
            how = f"the executor {exits.exit_worded(code)}{exits.memory_hint(code)}"
            _log.info("executor has ended", executor=number, code=code)
            false_starts = 0 if here else false_starts + 1
            if here:
                dropped = self._dropped.pop(number, "")
                self._listener.executor_lost(
                    number, dropped or how, outputs_lost=True, blame=not dropped
                )
            if false_starts >= _MAX_FALSE_STARTS:
                self._listener.refused(f"{how}, {false_starts} times before it could do anything")
                return
            assert self._directory is not None
            shutil.rmtree(self._directory / number, ignore_errors=True)
            try:
                process = self._begin()
            except OSError as error:
                self._listener.refused(f"no executor can be started: {shortened(str(error))}")
                return


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    """Until it has ended, which it was told to do."""
    for send, wait_s in ((None, _LEAVE_S), (signal.SIGTERM, _TERM_S), (signal.SIGKILL, None)):
        if send is not None:
            process.send_signal(send)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return


__all__ = ["LocalBackend"]
