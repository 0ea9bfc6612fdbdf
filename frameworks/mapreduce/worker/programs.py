"""Starting what the user has given: commands and functions alike, as a process with pipes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frameworks.mapreduce.job import Program
from frameworks.mapreduce.worker import functions
from frameworks.mapreduce.worker.failures import AttemptFailed
from frameworks.runtime.processes import Child, forked

# As large as an unprivileged process may have it by default (/proc/sys/fs/pipe-max-size).
PIPE_BYTES: Final = 1 << 20


@dataclass(slots=True)
class Running:
    """A program that runs.  stdin is -1 if somebody else feeds it.

    word: where a function's process says that it has come to its end: exit code 0 alone may be
    that of an `os._exit` in the middle, with what was not yet written lost.  -1 for commands.
    complete: whether it has; known when it is closed, as is `groups`: of how many keys it was given
        the lines (0 for commands, which do not say).
    """

    what: str
    child: Child
    stdin: int
    stdout: int
    stderr: int
    word: int = -1
    complete: bool = True
    groups: int = 0

    def close_stdin(self) -> None:
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def close(self) -> None:
        """Nothing of it is left afterwards; again is no harm."""
        self.child.kill()
        self.close_stdin()
        if self.word >= 0:
            with contextlib.suppress(BlockingIOError, ValueError):
                self.groups = int(os.read(self.word, 20))
                self.complete = True
            os.close(self.word)
            self.word = -1
        for fd in (self.stdout, self.stderr):
            if fd >= 0:
                os.close(fd)
        self.stdout = self.stderr = -1


@dataclass(frozen=True, slots=True)
class Launcher:
    """Starts programs of one attempt, in its directory and environment.

    form: how functions read and write (`functions.Form`).
    """

    cwd: Path
    env: Mapping[str, str]

    def start(
        self, program: Program, role: functions.Role, form: functions.Form, stdin: int | None = None
    ) -> Running:
        """stdin: what it reads; it is closed here.  None: a pipe.  Raises AttemptFailed."""
        what = f"{role}: {program.command}" if program.command else f"{role}: function"
        own: list[int] = []
        given: list[int] = [] if stdin is None else [stdin]
        feed = -1
        try:
            if not program.command and not program.function:
                raise AttemptFailed("job", f"{role}: has neither a command nor a function")
            if stdin is None:
                stdin, feed = pipe()
                given.append(stdin)
                own.append(feed)
                os.set_blocking(feed, False)
            out, out_end = pipe()
            own.append(out)
            given.append(out_end)
            err, err_end = os.pipe()
            own.append(err)
            given.append(err_end)
            std = (stdin, out_end, err_end)
            word = -1
            if program.command:
                child = self._executed(program.command, role, std)
            else:
                word, word_end = os.pipe()
                own.append(word)
                given.append(word_end)
                os.set_blocking(word, False)
                run = functions.runner(program.function, role, form, self.cwd, self.env, word_end)
                child = forked(run, fds=(word_end,), std=std)
        except BaseException:
            for fd in own:
                os.close(fd)
            raise
        finally:
            for fd in given:
                os.close(fd)
        for fd in (out, err):
            os.set_blocking(fd, False)
        return Running(what, child, feed, out, err, word, complete=word < 0)

    def _executed(self, command: str, role: str, std: tuple[int, int, int]) -> Child:
        words = self.words(command, role)
        try:
            # It is waited for as any Child; Popen only starts it, as cheaply as can be (vfork).
            process = subprocess.Popen(
                words,
                cwd=self.cwd,
                env=self.env,
                stdin=std[0],
                stdout=std[1],
                stderr=std[2],
                process_group=0,
            )
        except OSError as error:
            raise _not_started(role, command, self._named(words[0]), error) from error
        child = Child(process.pid)
        # So that Popen does not wait for it, or warn that nobody did.
        process.returncode = 0
        return child

    def words(self, command: str, role: str) -> list[str]:
        """Raises AttemptFailed if there is no such program here."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise AttemptFailed("job", f"{role}: {command}: cannot be parted: {error}") from None
        if not words:
            raise AttemptFailed("job", f"{role}: the command is empty")
        shipped = self.cwd / words[0]
        if "/" in words[0] and not words[0].startswith("/"):
            words[0] = str(shipped)
        if shipped.is_file() and not os.access(shipped, os.X_OK):
            _make_executable(shipped)
        if shutil.which(words[0], path=self.env["PATH"]) is None and not shipped.is_file():
            name = self._named(words[0])
            raise AttemptFailed(
                "place",
                f"{role}: {command}: there is no program {name} among the files of the job "
                "nor in PATH of this machine",
                missing=name,
            )
        return words

    def _named(self, program: str) -> str:
        """By the same name on all agents: attempts have directories of their own."""
        return program.removeprefix(f"{self.cwd}/")


def pipe() -> tuple[int, int]:
    read, write = os.pipe()
    # Over the user's limit for pipes it stays small; that is only slower.
    with contextlib.suppress(OSError):
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return read, write


def _make_executable(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.chmod(path.stat().st_mode | 0o111)


def _not_started(role: str, command: str, program: str, error: OSError) -> AttemptFailed:
    if error.errno == errno.ENOEXEC:
        return AttemptFailed(
            "job", f"{role}: {command}: {program} is no program and has no first line as #!/bin/sh"
        )
    if error.errno == errno.ENOENT:
        return AttemptFailed(
            "place",
            f"{role}: {command}: its interpreter (the first line) is not on this machine",
            missing=f"the interpreter of {program}",
        )
    return AttemptFailed(
        "job" if error.errno in (errno.E2BIG, errno.EACCES) else "place",
        f"{role}: {command}: cannot be started: {error.strerror}",
    )


__all__ = ["Launcher", "Running", "pipe"]
