"""A real Slurm, with real jobs through qsub, whose nodes come from real agents."""

import os
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.cluster import Cluster
from tests.kit.local import LIMIT_S
from tests.kit.torque import Batch
from tests.kit.waiting import until

pytestmark = pytest.mark.needs(
    "root", "slurmctld", "slurmd", "munged", "qsub", "unshare", "setpriv"
)
MACHINE = "cpus:8;mem:4096;disk:0;ports:[21000-21099]"
SOMEBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")

NO_OUTPUT = ("-o", "/dev/null", "-e", "/dev/null")
# Of all jobs of the first test.
ENDED = {"COMPLETED", "CANCELLED", "FAILED"}


@pytest.fixture
def batch() -> Iterator[Batch]:
    """In a directory that all users can get into."""
    with tempfile.TemporaryDirectory(prefix="mesos-py-torque-") as directory:
        with Cluster(Path(directory)) as cluster:
            # Agents that are killed find their tasks again.
            flags = {"resources": MACHINE, "tasks_on_exit": "keep"}
            cluster.start_agents("one.example.org", "two", **flags)
            with Batch(cluster) as made:
                yield made


def test_nodes_come_with_jobs_and_go_again(batch):
    """With no node jobs stay queued; then they run, nodes go, and the next job repeats it."""
    server = batch.pid_of("slurmctld")
    _one_after_the_other(batch)
    _of_all_sizes(batch)
    _of_somebody(batch)
    _many_at_once(batch)
    assert batch.pid_of("slurmctld") == server


def _one_after_the_other(batch: Batch) -> None:
    assert batch.tasks() == []
    for _ in range(2):
        job_id = batch.submit('#!/bin/sh\necho "$PBS_JOBID" "$SLURMD_NODENAME"\n', "-N", "hello")
        assert b" hello " in batch.user("qstat").out
        batch.wait_for_job(job_id, "COMPLETED")
        out = (batch.work / f"hello.o{job_id}").read_text().split()
        assert out[0] == job_id
        # Named for its machine, by the first word of whatever that is called.
        assert out[1].partition("-n")[0] in ("one", "two")
        batch.wait_for_no_nodes()
    # Offers are not wanted any more.
    until(lambda: batch.cluster.used() == {})


def _of_all_sizes(batch: Batch) -> None:
    """A job on two nodes; one larger than any node that is there; one that can never run."""
    first = batch.gated("first")
    batch.wait_for_job(first, "RUNNING")
    assert b"state = " in batch.user("pbsnodes").out
    large = batch.submit("#!/bin/sh\nsrun hostname\n", "-l", "nodes=2:ppn=2,mem=100mb")
    never = batch.submit("#!/bin/sh\n", "-l", "nodes=1:ppn=9")
    held = batch.submit("#!/bin/sh\n", "-h")
    until(lambda: batch.job(never)["admin_comment"])
    comment = "mesos-py: asks for 9 cpus on a node, the largest agent has 8"
    assert batch.job(never)["admin_comment"] == comment
    assert batch.status()["never"] == {never: comment.removeprefix("mesos-py: ")}
    batch.open_gate()
    batch.wait_for_job(large, "COMPLETED")
    assert len((batch.work / f"job.sh.o{large}").read_text().split()) == 4
    batch.wait_for_job(first, "COMPLETED")
    # Neither of those that are left has nodes started for it.
    batch.wait_for_no_nodes()
    assert batch.status()["waiting"] == 1
    assert batch.user("qdel", never).code == 0
    assert batch.user("qdel", held).code == 0
    assert batch.user("qdel", "4711").code != 0
    assert batch.job(never)["job_state"] == "CANCELLED"


def _of_somebody(batch: Batch) -> None:
    """An array of another user, and a job that takes more memory than it has asked for."""
    greedy = batch.submit(
        "#!/bin/sh\n(head -c 200m /dev/zero; sleep 600) | tail\n",
        *("-l", "mem=50mb,walltime=2:00:00", "-N", "greedy"),
    )
    batch.work.chmod(0o1777)
    script = "#!/bin/sh\nid -un\nsrun id -un\n"
    array = batch.submit(script, "-t", "1-3", "-N", "theirs", before=SOMEBODY)
    outputs = [batch.work / f"theirs.o{array}.{number}" for number in (1, 2, 3)]
    until(lambda: all(o.exists() and o.read_text() == "nobody\nnobody\n" for o in outputs), LIMIT_S)
    assert {output.owner() for output in outputs} == {"nobody"}
    assert batch.job(greedy)["time_limit"] == 120
    batch.wait_for_job(greedy, "FAILED", "CANCELLED")
    assert "exceeded memory limit" in (batch.work / f"greedy.e{greedy}").read_text()


def _many_at_once(batch: Batch) -> None:
    """300 jobs of 10 users at once: all of them run, each once."""
    ran = batch.work / "ran"
    ran.mkdir()
    script = batch.work / "many.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {ran}/$PBS_JOBID\n")

    def submit(_: int) -> None:
        for options in (["-t", "1-25"], *[[]] * 5):
            ended = batch.user("qsub", *options, *NO_OUTPUT, str(script))
            assert ended.code == 0, ended

    with ThreadPoolExecutor(10) as clients:
        list(clients.map(submit, range(10)))
    until(lambda: len(list(ran.iterdir())) == 300, 2 * LIMIT_S)
    until(lambda: {job["job_state"] for job in batch.json("squeue", "jobs")} <= ENDED, LIMIT_S)
    assert {path.read_text() for path in ran.iterdir()} == {"ran\n"}
    batch.wait_for_no_nodes()


def test_each_part_may_be_killed(batch):
    """kill -9 of the wrapper, of the master, an agent, a node's daemon, the server: no job is
    lost, or runs twice at a time."""
    server, framework_id = batch.pid_of("slurmctld"), batch.framework_id
    job_id = batch.gated("mark")
    batch.wait_for_lines("mark", "began")
    # A second one is on its way where the first one took its time.
    node = batch.job(job_id)["nodes"]
    assert node in batch.tasks()
    (first,) = batch.scripts_of(job_id)
    _without_wrapper_and_master(batch, framework_id)
    agent = batch.cluster.agents[node.startswith("two")]
    agent.kill()
    agent.start()
    # Nothing of that has come to the job.
    assert batch.scripts_of(job_id) == [first]
    assert node in batch.tasks()
    assert batch.pid_of("slurmctld") == server
    assert batch.framework_id == framework_id
    os.kill(batch.slurmd_of(node), signal.SIGKILL)
    until(lambda: batch.job(job_id)["restart_cnt"] == 1, LIMIT_S)
    batch.wait_for_lines("mark", "began", "began")
    assert first not in batch.scripts_of(job_id)
    # A server that is killed before it has saved what it has begun would begin it once more.
    batch.wait_until_saved()
    _kill(batch, "slurmctld", "munged")
    last = batch.submit("#!/bin/sh\n")
    batch.wait_for_job(last, "COMPLETED")
    batch.open_gate()
    batch.wait_for_job(job_id, "COMPLETED")
    assert batch.lines("mark") == ["began", "began", "ended"]
    assert batch.job(job_id)["restart_cnt"] == 1
    batch.wait_for_no_nodes()


def _without_wrapper_and_master(batch: Batch, framework_id: str) -> None:
    batch.kill()
    assert batch.status()["code"] == 1
    batch.cluster.restart_master()
    queued = batch.submit("#!/bin/sh\n", "-l", "nodes=1:ppn=2")
    batch.up()
    second = batch.cluster.cli("torque", "up", "--state-dir", str(batch.home))
    assert second.code != 0
    assert "is in use by process" in second.err
    batch.wait_for_job(queued, "COMPLETED")


def _kill(batch: Batch, *names: str) -> None:
    """And wait for the next ones."""
    before = [batch.pid_of(name) for name in names]
    for pid in before:
        os.kill(pid, signal.SIGKILL)

    def come_again() -> bool:
        found = [batch.daemons_called(name) for name in names]
        return all(pids and pids != [pid] for pids, pid in zip(found, before, strict=True))

    until(come_again, LIMIT_S)
