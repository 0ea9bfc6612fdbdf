"""Daemons that are told what cannot be: one line that names the flag and the value, an
exit code that scripts can trust, and nothing left behind."""

from pathlib import Path

import pytest

from tests.kit.cluster import Daemon

NOBODY = "127.0.0.1:1"

# A few, since each is a process; the kinds of flags have unit tests.
CASES = [
    ("agent", "resources", "cpus:-1"),
    ("agent", "resources", "ports:[5-1]"),
    ("agent", "attributes", "rack"),
    ("agent", "master", "host:99999"),
    ("agent", "ip", "300.1.1.1"),
    ("agent", "isolation", "no-such-isolator"),
    ("master", "weights", "a=-1"),
    ("master", "allocator", "no-such-allocator"),
    ("master", "offer-timeout", "-1s"),
    ("master", "min-offer", "cpus:1|"),
    ("master", "revocation", "no-such-policy"),
    ("master", "first-offer-timeout", "31s"),
]


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> dict[tuple[str, str, str], tuple[int, str, list[Path]]]:
    """Each case, run to its end: exit code, output, files left.  A few at a time."""
    base = tmp_path_factory.mktemp("flags")
    results = {}
    for start in range(0, len(CASES), 4):
        group = []
        for number, case in enumerate(CASES[start : start + 4], start):
            kind, flag, value = case
            directory = base / str(number)
            directory.mkdir()
            flags = {"master": NOBODY} if kind == "agent" else {}
            daemon = Daemon(kind, "it", directory, {**flags, flag.replace("-", "_"): value})
            group.append((case, directory, daemon.launch()))
        for case, directory, daemon in group:
            code = daemon.wait()
            left = [path for path in directory.rglob("*") if path != daemon.log_file]
            results[case] = (code, daemon.log, left)
    return results


@pytest.mark.parametrize(("kind", "flag", "value"), CASES)
def test_it_is_said_in_one_line_and_nothing_is_left(ended, kind, flag, value):
    code, log, left = ended[kind, flag, value]
    assert code == 2, log
    last = log.splitlines()[-1]
    assert last.startswith("mesos-py: error: ")
    assert flag in last
    assert "Traceback" not in log
    assert [path for path in left if path.suffix in (".port", ".sock")] == []


def test_a_work_directory_that_is_a_file(tmp_path):
    (tmp_path / "it").write_text("here first")
    for kind, flags in (("agent", {"master": NOBODY}), ("master", {})):
        daemon = Daemon(kind, "it", tmp_path, flags).launch()
        assert daemon.wait() in (1, 2)
        assert str(tmp_path / "it") in daemon.log.splitlines()[-1]
    assert (tmp_path / "it").read_text() == "here first"
