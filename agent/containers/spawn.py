"""Starting the first process of a container, with an exact reason when that fails.

Mostly by posix_spawn, which shares our memory until the program is there: it costs
half of what a fork does.  A fork is needed for what must be done in the new process
before its program starts: another user, cgroups, namespaces, limits.

The warden imports this module: it must stay small (no mesos_py, no grpc).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import select
import signal
import termios
from typing import Any, Final, NoReturn, NotRequired, TypedDict

from agent.containers import sandbox

# All of them: what whoever started the agent ignores (a shell does so with INT and QUIT
# of what it runs in the background), what we ignore ourselves, and what Python does.
_TO_DEFAULT: Final = tuple(sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))


# A process that joins a frozen cgroup does not get to its program: so long it is waited for.
_JOIN_S: Final = 0.25

# What becomes a process's input, output and error output.
Stdio = tuple[int, int, int]


class StartRequest(TypedDict):
    """What is to be started.  Made by the agent, trusted by the warden."""

    id: str
    # Looked up in the PATH of `env` unless it has a slash.
    exe: str
    argv: list[str]
    env: dict[str, str]
    # Names beneath the work directory.
    sandbox: list[str]
    # Whose the sandbox is: uid and gid.
    owner: tuple[int, int]
    # Whom to become: uid, gid, groups.  None: stay who we are.
    user: tuple[int, int, list[int]] | None
    # Files that the new process writes "0" into: those of cgroups name who enters.
    enter: list[str]
    # Files of namespaces to enter.
    namespaces: list[str]
    # resource, soft, hard: as setrlimit takes them.
    rlimits: list[tuple[int, int, int]]
    # Its input is a terminal, which is to be that of its session.
    terminal: NotRequired[bool]
    # Others may be started beside it later (probes.py).
    probed: NotRequired[bool]


class StartError(Exception):
    """Nothing was started.  The text names what was tried, on what, and the reason."""


class Spawner:
    """Starts processes whose sandboxes are beneath `work_dir`.

    Changes the working directory of this process for moments: single-threaded only.
    """

    def __init__(self, work_dir: str, *, sessions: bool = True) -> None:
        """`sessions`: each process leads a session of its own; else it leads a process
        group in ours."""
        self._sessions = sessions
        self._root = os.open(work_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # What has no input reads this.
        self.null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    def start(
        self, request: StartRequest, stdio: Stdio | None = None, *, joins: bool = False
    ) -> int:
        """Make the sandbox and start the process; return its pid.  Raises StartError.

        `stdio`: where its input comes from and its output goes, in a sandbox that is there
        already.  `joins`: the process joins others, and may be stopped with them before its
        program runs: it is not waited for then.
        """
        directory = _opened_sandbox(self._root, request, made=stdio is None)
        fds = [directory]
        try:
            if stdio is None:
                for name in (sandbox.STDOUT, sandbox.STDERR):
                    fds.append(_opened_output(directory, name, request))
                stdio = (self.null, fds[1], fds[2])
            os.fchdir(directory)
            try:
                return self._start(request, stdio, _JOIN_S if joins else None)
            finally:
                os.chdir("/")  # no sandbox is kept in use by us
        finally:
            for fd in fds:
                os.close(fd)

    def _start(self, request: StartRequest, stdio: Stdio, patience_s: float | None) -> int:
        special = request["user"] or request["enter"] or request["namespaces"]
        forked = bool(special or request["rlimits"] or request.get("terminal"))
        exe, env = request["exe"], request["env"]
        candidates = _candidates(exe, env)
        failure: OSError | None = None
        for path in candidates:
            try:
                if forked:
                    return _fork(request, path, stdio, patience_s, session=self._sessions)
                return _posix_spawn(request, path, stdio, session=self._sessions)
            except OSError as error:
                # As execvp: the next directory, unless something is wrong with this one.
                if failure is None or error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    failure = error
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                    break
            except ValueError as error:
                raise StartError(f"cannot run {exe!r}: {error}") from None
        raise StartError(_reason(exe, env, candidates, failure))


def _opened_sandbox(root: int, request: StartRequest, *, made: bool) -> int:
    try:
        if not made:
            return sandbox.open_directory(root, request["sandbox"])
        return sandbox.create(root, request["sandbox"], *request["owner"])
    except (OSError, ValueError) as error:
        where = "/".join(request["sandbox"])
        what = "make" if made else "open"
        raise StartError(f"cannot {what} the sandbox {where}: {_why(error)}") from None


def _opened_output(directory: int, name: str, request: StartRequest) -> int:
    try:
        return sandbox.open_output(directory, name, *request["owner"])
    except OSError as error:
        raise StartError(f"cannot open {name} in the sandbox: {_why(error)}") from None


def _candidates(exe: str, env: dict[str, str]) -> list[str]:
    if "/" in exe:
        return [exe]
    return [f"{place or '.'}/{exe}" for place in env.get("PATH", "").split(":")]


def _reason(exe: str, env: dict[str, str], candidates: list[str], failure: OSError | None) -> str:
    if isinstance(failure, _StageError):
        return str(failure)
    text = f"cannot run {exe!r}: {_why(failure) if failure else 'PATH is empty'}"
    if failure is not None and failure.errno == errno.ENOENT:
        if any(os.access(path, os.F_OK) for path in candidates):
            return f"{text} (it is there, but the interpreter that it names is not)"
        if "/" not in exe:
            return f"{text} (in PATH {env.get('PATH', '')})"
    return text


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return error.strerror if error.strerror else os.strerror(error.errno)
    return str(error)


def _posix_spawn(request: StartRequest, path: str, stdio: Stdio, *, session: bool) -> int:
    own: dict[str, Any] = {"setsid": True} if session else {"setpgroup": 0}
    return os.posix_spawn(
        path,
        request["argv"],
        request["env"],
        file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(stdio)],
        setsigmask=(),
        setsigdef=_TO_DEFAULT,
        **own,
    )


# ---- By fork --------------------------------------------------------------------------


class _StageError(OSError):
    """A step before the program itself failed; the text names it."""

    def __init__(self, number: int, stage: str) -> None:
        super().__init__(number, os.strerror(number))
        self.stage = stage

    def __str__(self) -> str:
        return f"{self.stage}: {self.strerror}"


def _fork(
    request: StartRequest, path: str, stdio: Stdio, patience_s: float | None, *, session: bool
) -> int:
    """As posix_spawn: the child tells through a pipe why it failed; exec closes it."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
        if pid == 0:
            _child(request, path, stdio, writing, session=session)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        if patience_s is not None and not select.select([reading], [], [], patience_s)[0]:
            return pid
        told = os.read(reading, 4096).decode("utf-8", "replace")
    finally:
        os.close(reading)
    if not told:
        return pid
    os.waitpid(pid, 0)
    number, _, stage = told.partition(" ")
    if stage:
        raise _StageError(int(number), stage)
    raise OSError(int(number), os.strerror(int(number)))


def _child(
    request: StartRequest, path: str, stdio: Stdio, writing: int, *, session: bool
) -> NoReturn:
    """In the new process: never returns, and runs nothing of the parent's clean-up."""
    stage = ""
    try:
        if session:
            os.setsid()
        else:
            os.setpgid(0, 0)
        for file in request["enter"]:
            stage = f"cannot enter {file}"
            _enter(file)
        for file in request["namespaces"]:
            stage = f"cannot enter the namespace {file}"
            _setns(file)
        for number, soft, hard in request["rlimits"]:
            stage = f"cannot set the limit {number} to {soft}:{hard}"
            resource.setrlimit(number, (soft, hard))
        if request["user"] is not None:
            uid, gid, groups = request["user"]
            stage = f"cannot become the user with uid {uid}, gid {gid}"
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        stage = ""
        for target, source in enumerate(stdio):
            os.dup2(source, target)
        if request.get("terminal"):
            stage = "cannot take the terminal"
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            stage = ""
        for each in _TO_DEFAULT:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execve(path, request["argv"], request["env"])
    except OSError as error:
        os.write(writing, f"{error.errno or errno.EIO} {stage}".encode())
    except ValueError:
        os.write(writing, f"{errno.EINVAL} {stage}".encode())
    finally:
        os._exit(127)


def _enter(file: str) -> None:
    fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"0")
    finally:
        os.close(fd)


def _setns(file: str) -> None:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.close(fd)
