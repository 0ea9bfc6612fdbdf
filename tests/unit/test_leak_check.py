"""The leak check of tests/conftest.py finds what a test leaves behind, and only that."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

TESTS = """
import asyncio, os, subprocess, threading, time
import pytest

held = []

async def test_task():
    held.append(asyncio.create_task(asyncio.Event().wait()))

def test_file():
    os.pipe()

def test_child():
    held.append(subprocess.Popen(["sleep", "2"]))

def test_stray(tmp_path):
    subprocess.run("setsid sleep 2 >/dev/null 2>&1 &", shell=True, cwd=tmp_path)

def test_thread():
    threading.Thread(target=time.sleep, args=(0.5,)).start()

async def test_clean(tmp_path):
    await asyncio.to_thread((tmp_path / "x").write_text, "x")
    process = await asyncio.create_subprocess_exec("true", stdout=subprocess.PIPE)
    await process.communicate()
    threading.Thread(target=lambda: None).start()

@pytest.mark.needs("no-such-tool", "sh")
def test_tool():
    pass

def test_lacking(lacking):
    lacking("a moon")
"""


def _run(folder: Path, ci: str) -> str:
    folder.joinpath("conftest.py").write_text(
        CONFTEST.read_text().replace("GRACE = 30.0", "GRACE = 0.05")
    )
    folder.joinpath("test_it.py").write_text(TESTS)
    config = ["-o", "asyncio_mode=auto", "-o", "markers=needs", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-rA", "--color=no", *config, f"--rootdir={folder}"]
    done = subprocess.run(
        [*command, f"--basetemp={folder / 'tmp'}", str(folder)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "CI": ci, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
    )
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # not below a folder called unit, where the look for stray processes is left out
    place = tmp_path / "integration"
    place.mkdir()
    return place


def _outcomes(output: str, kind: str) -> set[str]:
    return set(re.findall(rf"^{kind} test_it\.py::(\w+)", output, re.MULTILINE))


@pytest.mark.long
def test_each_kind_of_leak_is_reported(folder):
    output = _run(folder, ci="")
    assert _outcomes(output, "ERROR") == {
        "test_task",
        "test_file",
        "test_child",
        "test_stray",
        "test_thread",
    }
    for words in (
        "tasks left behind",
        "pipe:",
        "child processes: ",
        "stray processes: ",
        "threads: ",
    ):
        assert words in output
    assert "test_clean" in _outcomes(output, "PASSED")
    assert "needs no-such-tool\n" in output
    assert "needs a moon\n" in output
    assert _outcomes(output, "FAILED") == set()


@pytest.mark.long
def test_a_missing_tool_is_a_failure_under_ci(folder):
    output = _run(folder, ci="true")
    assert "test_tool" in _outcomes(output, "ERROR")
    assert "test_lacking" in _outcomes(output, "FAILED")
    assert "needs no-such-tool, and CI must have it" in output
