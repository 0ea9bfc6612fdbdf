"""The disk isolator on real directories: usage, quota, its end."""

import threading
from pathlib import Path

import pytest

from agent.isolation.base import AgentFacts, Container, Recovered
from agent.isolation.disk.isolator import DiskIsolator, limit_of
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.waiting import until

KB, MB = 1024, 1024 * 1024
LIMIT_S = 20.0


def isolator(work_dir: Path, **flags: object) -> DiskIsolator:
    given = {"container_disk_watch_interval_s": 0.01, **flags}
    return DiskIsolator(AgentFacts("A1", str(work_dir), Resources(), given))


def container(work_dir: Path, resources: Resources, container_id: str = "c1") -> Container:
    sandbox = work_dir / "agents/A1/frameworks/F1/executors/t/runs" / container_id
    sandbox.mkdir(parents=True)
    return Container(container_id, "F1", "t", str(sandbox), 0, 0, resources, None, {})


class Heard:
    """What the isolator tells when a limit is exceeded."""

    def __init__(self):
        self.limitations = []
        self.event = threading.Event()

    def __call__(self, limitation):
        self.limitations.append(limitation)
        self.event.set()


@pytest.mark.parametrize(
    ("resources", "limit"),
    [
        (Resources.of(cpus=1), None),
        (Resources.of(disk=1), MB),
        (Resources.of(disk=0.001), 1048),
    ],
)
def test_the_quota_is_the_disk_that_was_given(resources, limit):
    assert limit_of(resources) == limit


def test_what_is_stored_is_reported_with_its_limit(tmp_path):
    disk = isolator(tmp_path)
    one = container(tmp_path, Resources.of(disk=5))
    disk.prepare(one)
    assert disk.usage("c1") == {"disk_limit_bytes": 5 * MB}
    Path(one.sandbox, "data").write_bytes(b"x" * 100 * KB)
    disk.watch("c1", lambda limitation: pytest.fail(str(limitation)))
    until(lambda: disk.usage("c1").get("disk_bytes", 0) >= 100 * KB)
    disk.update("c1", Resources.of(disk=7))
    assert disk.usage("c1")["disk_limit_bytes"] == 7 * MB
    disk.cleanup("c1")
    assert disk.usage("c1") == {}


def test_a_container_above_its_quota_is_told_of_once_with_numbers(tmp_path):
    disk, heard = isolator(tmp_path, enforce_container_disk_quota=True), Heard()
    one = container(tmp_path, Resources.of(disk=1))
    disk.prepare(one)
    Path(one.sandbox, "data").write_bytes(b"x" * 2 * MB)
    disk.watch("c1", heard)
    assert heard.event.wait(LIMIT_S)
    (limitation,) = heard.limitations
    assert limitation.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_DISK
    assert limitation.message.startswith("Disk usage (2.")
    assert limitation.message.endswith(" MB) exceeds quota (1.0 MB)")
    assert limitation.resources == Resources.of(disk=1)
    disk.update("c1", Resources.of(disk=0.5))
    disk.cleanup("c1")
    assert len(heard.limitations) == 1


def test_a_quota_that_is_not_enforced_kills_nobody(tmp_path):
    disk = isolator(tmp_path)
    one = container(tmp_path, Resources.of(disk=0.1))
    disk.prepare(one)
    Path(one.sandbox, "data").write_bytes(b"x" * MB)
    disk.watch("c1", lambda limitation: pytest.fail(str(limitation)))
    until(lambda: disk.usage("c1").get("disk_bytes", 0) >= MB)
    disk.cleanup("c1")


def test_without_disk_resources_there_is_no_quota(tmp_path):
    disk = isolator(tmp_path, enforce_container_disk_quota=True)
    one = container(tmp_path, Resources.of(cpus=1))
    disk.prepare(one)
    Path(one.sandbox, "data").write_bytes(b"x" * MB)
    disk.watch("c1", lambda limitation: pytest.fail(str(limitation)))
    until(lambda: disk.usage("c1").get("disk_bytes", 0) >= MB)
    assert "disk_limit_bytes" not in disk.usage("c1")
    disk.cleanup("c1")


def test_a_quota_that_shrinks_below_what_is_stored_holds(tmp_path):
    disk, heard = isolator(tmp_path, enforce_container_disk_quota=True), Heard()
    one = container(tmp_path, Resources.of(disk=10))
    disk.prepare(one)
    Path(one.sandbox, "data").write_bytes(b"x" * MB)
    disk.watch("c1", heard)
    until(lambda: disk.usage("c1").get("disk_bytes", 0) >= MB)
    disk.update("c1", Resources.of(disk=0.5))
    assert heard.event.wait(LIMIT_S)
    disk.cleanup("c1")


def test_a_sandbox_that_is_gone_or_a_link_is_not_measured_and_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "big").write_bytes(b"x" * 2 * MB)
    disk = isolator(tmp_path, enforce_container_disk_quota=True)
    one = container(tmp_path, Resources.of(disk=1))
    disk.prepare(one)
    Path(one.sandbox).rmdir()
    Path(one.sandbox).symlink_to(outside)
    assert disk._look("c1") == 0.01
    assert "disk_bytes" not in disk.usage("c1")
    disk.cleanup("c1")


def test_cleanup_of_what_was_never_prepared_does_nothing(tmp_path):
    disk = isolator(tmp_path)
    disk.cleanup("nobody")
    disk.update("nobody", Resources.of(disk=1))
    disk.watch("nobody", lambda limitation: pytest.fail(str(limitation)))
    assert disk.usage("nobody") == {}


def test_a_container_that_outlived_its_agent_is_measured_and_held_to_its_quota(tmp_path):
    one = container(tmp_path, Resources.of(disk=1))
    Path(one.sandbox, "data").write_bytes(b"x" * 2 * MB)
    disk, heard = isolator(tmp_path, enforce_container_disk_quota=True), Heard()
    disk.recover([Recovered("c1", "F1", "t", 1, one.resources, None)])
    assert disk.usage("c1") == {"disk_limit_bytes": MB}
    disk.watch("c1", heard)
    assert heard.event.wait(LIMIT_S)
    disk.cleanup("c1")
