"""The warden with real processes: starts, true ends, and nothing that stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.waiting import gone, until
from tests.kit.warden import ROOT, Warden, make, sh

# With another user wanted the process is forked, else spawned: both must do the same.
ME = (os.getuid(), os.getgid(), sorted(os.getgroups()))
ways = pytest.mark.parametrize(
    "way",
    [
        {},
        pytest.param({"user": ME}, marks=pytest.mark.needs("root"), id="forked"),
    ],
)


@pytest.fixture
def warden(tmp_path: Path) -> Iterator[Warden]:
    made = Warden(tmp_path)
    yield made
    made.close()


# ---- Starting -----------------------------------------------------------------------


@ways
def test_a_process_starts_in_its_sandbox_with_its_own_session_output_and_environment(warden, way):
    script = "pwd; readlink /proc/self/fd/0; env; ps -o pid=,sid=,pgid= -p $$; echo oops >&2"
    pid, status = warden.run("t", *sh(script), **way)
    assert status == 0
    lines = warden.output("t").splitlines()
    assert lines[0] == str(warden.sandbox("t"))
    assert lines[1] == "/dev/null"
    assert lines[-1].split() == [str(pid)] * 3
    assert (warden.sandbox("t") / "stderr").read_text() == "oops\n"
    assert "AGENTS_OWN" not in warden.output("t")
    assert "MESOS_CONTAINER_ID=t" in lines


@ways
def test_a_process_starts_with_default_signals_and_no_open_files_of_the_wardens(warden, way):
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd"
    warden.run("t", *sh(script), **way)
    blocked, ignored, *fds = warden.output("t").split("\n")
    # 32 and 33 are glibc's own; its posix_spawn leaves them ignored.
    own = 1 << 31 | 1 << 32
    assert int(blocked.split()[1], 16) == int(ignored.split()[1], 16) & ~own == 0
    assert [fd for fd in fds if fd] == ["0", "1", "2", "3"]  # 3: that of ls itself


@ways
def test_a_task_heeds_signals_that_whoever_started_the_agent_ignores(tmp_path, way):
    # As of a daemon that a shell starts in the background.
    ignored = {
        each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGQUIT, signal.SIGUSR1)
    }
    try:
        made = Warden(tmp_path)
    finally:
        for each, before in ignored.items():
            signal.signal(each, before)
    made.run("t", *sh("kill -QUIT $$; exit 7"), **way)
    _, status = made.run("u", *sh("kill -USR1 $$; exit 7"), **way)
    made.close()
    assert os.WTERMSIG(status) == signal.SIGUSR1


@ways
@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 3", 3, None),
        ("exit 137", 137, None),
        ("kill -KILL $$", None, signal.SIGKILL),
        ("kill -SEGV $$", None, signal.SIGSEGV),
    ],
)
def test_the_true_wait_status_is_told(warden, way, script, code, number):
    _, status = warden.run("t", *sh(script), **way)
    if number is None:
        assert os.WIFEXITED(status)
        assert os.WEXITSTATUS(status) == code
    else:
        assert os.WIFSIGNALED(status)
        assert os.WTERMSIG(status) == number


@ways
@pytest.mark.parametrize(
    ("exe", "words"),
    [
        ("/no/such/program", "cannot run '/no/such/program': No such file or directory"),
        ("no-such-program", "cannot run 'no-such-program': No such file or directory (in PATH"),
        ("/etc/passwd", "cannot run '/etc/passwd': Permission denied"),
        ("/etc", "cannot run '/etc': Permission denied"),
        ("./script", "the interpreter that it names is not"),
        ("./text", "Exec format error"),
    ],
)
def test_what_cannot_be_run_is_told_with_the_reason(warden, way, exe, words):
    warden.sandbox("t").mkdir(parents=True)
    for name, text in (("script", "#!/no/such/interpreter\n"), ("text", "no program\n")):
        (warden.sandbox("t") / name).write_text(text)
        (warden.sandbox("t") / name).chmod(0o755)
    warden.start("t", exe, **way)
    assert words in warden.hear("failed", "t")
    assert warden.run("next")[1] == 0


def test_a_program_is_looked_up_in_the_path_of_the_task(warden, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mine").write_text("#!/bin/sh\necho mine\n")
    (tools / "mine").chmod(0o755)
    warden.run("t", "mine", env={"PATH": f"/no/such:{tools}"})
    assert warden.output("t") == "mine\n"
    warden.start("u", "mine", env={})
    assert "No such file or directory" in warden.hear("failed", "u")


@pytest.mark.needs("root")
def test_another_user_gets_the_process_and_the_sandbox_and_no_rights_of_ours(warden, tmp_path):
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o011)
    user = (65534, 65534, [65534])
    _, status = warden.run("t", *sh("id -u; id -G; touch mine"), user=user, owner=user[:2])
    assert status == 0
    assert warden.output("t").split() == ["65534", "65534"]
    assert (warden.sandbox("t") / "mine").stat().st_uid == 65534


@pytest.mark.needs("root")
def test_steps_before_the_program_name_what_failed(warden):
    warden.start("t", enter=["/no/such/cgroup.procs"])
    assert warden.hear("failed", "t") == "cannot enter /no/such/cgroup.procs: " + os.strerror(2)
    warden.start("u", namespaces=["/no/such/ns"])
    assert "cannot enter the namespace /no/such/ns" in warden.hear("failed", "u")
    warden.start("v", rlimits=[(7, 20, 10)])
    assert "cannot set the limit 7 to 20:10" in warden.hear("failed", "v")


@pytest.mark.needs("root")
def test_a_process_enters_groups_and_has_limits_before_its_program_runs(warden, tmp_path):
    group = tmp_path / "cgroup.procs"
    group.touch()
    _, status = warden.run("t", *sh("ulimit -n"), enter=[str(group)], rlimits=[(7, 99, 99)])
    assert status == 0
    assert warden.output("t") == "99\n"
    assert group.read_text() == "0"


@pytest.mark.needs("root")
def test_a_process_enters_a_namespace(warden):
    with subprocess.Popen(
        ["unshare", "--uts", "sh", "-c", "echo; exec sleep 1000"], stdout=-1
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        namespace = f"/proc/{other.pid}/ns/uts"
        warden.run("t", "readlink", "/proc/self/ns/uts", namespaces=[namespace])
        assert warden.output("t").strip() == str(Path(namespace).readlink())
        other.kill()


def test_a_link_planted_as_stdout_is_not_written_through(warden, tmp_path):
    canary = tmp_path / "canary"
    canary.write_text("secret")
    warden.sandbox("t").mkdir(parents=True)
    (warden.sandbox("t") / "stdout").symlink_to(canary)
    warden.start("t", *sh("echo overwritten"))
    assert "cannot open stdout" in warden.hear("failed", "t")
    assert canary.read_text() == "secret"


@pytest.mark.parametrize("part", ["..", "a/b", ""])
def test_a_sandbox_elsewhere_is_refused(warden, part):
    warden.start("t", sandbox=["agents", part])
    assert "cannot make the sandbox" in warden.hear("failed", "t")


def test_a_request_that_makes_no_sense_fails_alone(warden):
    warden.send(["start", {"id": "t"}], ["start", make("u")])
    assert "KeyError" in warden.hear("failed", "t")
    warden.hear("ended", "u")
    warden.start("v", "/bin/echo", "a\0b")
    assert "null" in warden.hear("failed", "v")


# ---- Signals ------------------------------------------------------------------------

# Writes down that it was told to end, and takes a moment over it.
POLITE = """
import pathlib, signal, sys, time
def end(*_):
    time.sleep(0.2)
    pathlib.Path("polite").write_text("said goodbye")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
pathlib.Path("ready").touch()
while True: signal.pause()
"""
# Does not listen.
RUDE = """
import pathlib, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("ready").touch()
while True: signal.pause()
"""


def shell_started(warden: Warden, name: str, program: str) -> int:
    """A program that a shell runs and waits for; returns the shell's pid."""
    warden.sandbox(name).mkdir(parents=True)
    (warden.sandbox(name) / "srv.py").write_text(program)
    warden.start(name, *sh(f"{sys.executable} srv.py; echo x"))
    pid: int = warden.hear("started", name)
    until((warden.sandbox(name) / "ready").exists)
    return pid


def test_kill_grace_reaches_a_program_that_a_shell_has_started(warden):
    shell_started(warden, "t", POLITE)
    warden.signal("t", signal.SIGTERM)
    status = warden.hear("ended", "t")
    # The shell dies at once, its program in its own time: not before is it the end.
    assert (warden.sandbox("t") / "polite").read_text() == "said goodbye"
    assert os.WTERMSIG(status) == signal.SIGTERM


def test_a_process_that_left_the_session_is_asked_to_end_when_its_parent_is_gone(warden):
    warden.start("t", *sh("(setsid sleep 1000 &); sleep 1000"))
    warden.hear("started", "t")
    until(lambda: len(processes_of("t")) == 3)
    warden.signal("t", signal.SIGTERM)
    # No KILL is needed.
    warden.hear("ended", "t")
    assert not processes_of("t")


def test_kill_ends_a_whole_group_that_does_not_listen(warden):
    shell = shell_started(warden, "t", RUDE)
    warden.signal("t", signal.SIGTERM)
    until(lambda: gone(shell))
    assert not warden.heard("ended", "t")
    warden.signal("t", signal.SIGKILL)
    warden.hear("ended", "t")
    assert not processes_of("t")


def test_a_signal_before_the_start_takes_the_request_back(warden):
    # Busy with the first, it reads both messages about the second together.
    warden.send(["start", make("a")], ["start", make("b")], ["signal", "b", 15])
    assert warden.hear("failed", "b") == "stopped before it was started"
    warden.hear("ended", "a")


def test_a_signal_for_a_container_that_is_gone_or_unknown_is_nothing(warden):
    warden.run("t")
    warden.signal("t", signal.SIGKILL)
    warden.signal("unknown", signal.SIGTERM)
    assert warden.run("u")[1] == 0


# ---- What is left behind ---------------------------------------------------------------


def processes_of(name: str) -> list[int]:
    """All processes that were started for the container, whatever became of them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"MESOS_CONTAINER_ID={name}\0".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_what_the_first_process_leaves_behind_ends_with_it(warden):
    pid, status = warden.run("t", *sh("sleep 1000 & sleep 1001 & exit 4"))
    assert os.WEXITSTATUS(status) == 4
    assert not processes_of("t")
    assert gone(pid)


def test_children_that_forked_twice_and_left_the_session_are_ended_and_reaped(warden):
    script = "for i in 1 2 3; do (setsid setsid sleep 1000 & ) ; done; sleep 0.1; exit 0"
    warden.run("t", *sh(script))
    assert not processes_of("t")
    # Its own children are gone as well: no zombie is left.
    assert children(warden.process.pid) == []


def test_other_containers_are_left_alone_by_the_end_of_one(warden):
    warden.start("other", *sh("(setsid sleep 1000 &); sleep 1000"))
    warden.hear("started", "other")
    until(lambda: len(processes_of("other")) == 3)
    for number in range(5):
        warden.run(f"t{number}", *sh("(setsid sleep 1000 &); exit 0"))
        assert not processes_of(f"t{number}")
    assert len(processes_of("other")) == 3
    warden.signal("other", signal.SIGKILL)
    warden.hear("ended", "other")
    assert not processes_of("other")


def test_many_short_tasks_leave_no_process_descriptor_or_zombie(warden):
    warden.run("first")
    before = len(os.listdir(f"/proc/{warden.process.pid}/fd"))  # noqa: PTH208
    scripts = {f"t{n}": "(sleep 1000 &); exit 0" if n % 2 else "exit 0" for n in range(200)}
    warden.send(*(["start", make(name, *sh(script))] for name, script in scripts.items()))
    for name in scripts:
        assert warden.hear("ended", name) == 0
    assert children(warden.process.pid) == []
    assert len(os.listdir(f"/proc/{warden.process.pid}/fd")) == before  # noqa: PTH208


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


# ---- The agent's end ---------------------------------------------------------------------


def test_the_death_of_the_agent_ends_everything(tmp_path):
    warden = Warden(tmp_path)
    warden.start("a", *sh("sleep 1000 & (setsid sleep 1000 &); sleep 1000"))
    warden.start("b", *sh("trap '' TERM; while :; do sleep 1000; done"))
    for name in ("a", "b"):
        warden.hear("started", name)
    until(lambda: len(processes_of("a")) == 4 and len(processes_of("b")) == 2)
    warden.close()
    assert not processes_of("a")
    assert not processes_of("b")


def test_signals_for_the_whole_machine_do_not_end_it(warden):
    warden.run("up")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        warden.process.send_signal(number)
    assert warden.run("t")[1] == 0


def test_it_imports_nothing_large():
    code = (
        "import sys, agent.containers.warden; "
        "big = {'grpc', 'google', 'mesos_py', 'asyncio', 'subprocess', 'pathlib', 'click'}; "
        "sys.exit(' '.join(big & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
