"""The README is true: its commands are run, and print what it says they print."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.local import LIMIT_S, Local, environment

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
# These change the shell, or are the cluster itself, which a test has in its own way.
NOT_RUN = (". .venv/bin/activate", "mesos-py local --agents 3 --port 5060")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def session() -> tuple[str, str]:
    """The console blocks as one script, and what it prints: `...` is anything at all."""
    script: list[str] = []
    wanted: list[str] = []
    skipped = False
    for line in "".join(blocks("console")).splitlines():
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            skipped = command in NOT_RUN
            if not skipped:
                script.append(command)
            if command.endswith("&"):
                # Whoever types takes this long.
                script.append("until mesos-py tasks 2>&1 | grep -q RUNNING; do sleep 0.1; done")
        elif not skipped:
            wanted.append(line)
    return "\n".join(script), "".join(f"{line}\n" for line in wanted)


def matches(wanted: str, got: str) -> bool:
    """Whether `got` is as `wanted`, in which `...` is anything; blanks count as one."""
    first, *others = (" ".join(part.split()) for part in wanted.split("..."))
    got = " ".join(got.split())
    if not got.startswith(first) or not got.endswith(others[-1]):
        return False
    at = len(first)
    for part in others:
        at = got.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Local]:
    with Local(tmp_path_factory.mktemp("readme"), "--agents", "3") as cluster:
        yield cluster


@pytest.fixture
def env(cluster) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**environment(cluster.master), "PATH": path}


def test_the_tour_prints_what_it_says(cluster, env, tmp_path):
    script, wanted = session()
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=2 * LIMIT_S,
    )
    assert matches(wanted, ended.stdout), ended.stdout


def test_the_framework_runs(cluster, env, tmp_path):
    (code,) = blocks("python")
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"^hello-\d FINISHED Command exited with status 0$", ended.stdout, re.M)


def test_what_it_links_to_is_there():
    for page in (ROOT / "README.md", ROOT / "docs" / "command-line.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_its_make_targets_are_there():
    targets = set(re.findall(r"^    make ([a-z-]+) ", README, re.MULTILINE))
    assert targets == {"demo", "test"}
    for target in targets:
        assert f"\n{target}:" in (ROOT / "Makefile").read_text()
