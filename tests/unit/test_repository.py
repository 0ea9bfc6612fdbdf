"""Rules for the repository as a whole: sizes, names, imports, nothing of one machine in it."""

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("mesos_py", "master", "agent", "frameworks")
GENERATED = "mesos_py/v1/"
MODULE_LINES = 500
FUNCTION_LINES = 60

CORES = (
    "master/core/",
    "master/allocator/",
    "agent/core/",
    "frameworks/common/",
    "frameworks/mapreduce/core/",
    "frameworks/mpi/core/",
    "frameworks/rdd/core/",
    "frameworks/torque/core/",
    "frameworks/webfarm/core/",
)
FORBIDDEN_IN_CORES = frozenset(
    {"asyncio", "grpc", "kazoo", "time", "random", "os", "socket", "subprocess", "threading"}
)

# Written so that this file does not contain what it looks for.
MARKERS = re.compile(
    "|".join(rf"\b{a}{b}\b" for a, b in [("TO", "DO"), ("FIX", "ME"), ("X", "XX")])
)
MACHINE_PATHS = re.compile("|".join([r"(?<![\w.~})-])" + "/" + "work" + "/", "/opt/" + "pypi"]))
REGISTRY_HOSTS = re.compile(
    "|".join(
        [
            "py" + r"pi\.org",
            "python" + r"hosted\.org",
            "pkg" + r"\.dev\b",
            "index" + r"[-_]url",
            "trusted" + "-host",
        ]
    ),
    re.IGNORECASE,
)


@cache
def _files() -> list[str]:
    """What is tracked, or would be if it were added; without git, every file that is no cache."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
        names = done.stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = list(_walk())
    return sorted(name for name in names if name and (ROOT / name).is_file())


def _walk() -> Iterator[str]:
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [
            name
            for name in subfolders
            if name not in ("__pycache__", "build", "dist")
            and not name.endswith(".egg-info")
            and (name == ".ci" or not name.startswith("."))
        ]
        yield from (str((Path(folder) / name).relative_to(ROOT)) for name in names)


def _modules() -> list[str]:
    return [n for n in _files() if n.endswith(".py") and not n.startswith(GENERATED)]


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def _lines_that_match(pattern: re.Pattern[str], names: list[str]) -> list[str]:
    texts = {name: _text(name) for name in names}
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts.items()
        if pattern.search(text)  # no match goes over the end of a line
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def _functions(name: str) -> Iterator[tuple[str, int]]:
    """Each function with its length; a docstring is a contract and does not count."""
    for node in _statements(ast.parse(_text(name), name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                docstring = node.body[0]
                length -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
            yield f"{name}:{node.lineno}: {node.name}", length


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Everything that may have a function or an import in it: no expression does."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            todo.extend(getattr(node, part, ()))


def _imports(source: str) -> set[str]:
    """Top-level names of everything that is imported absolutely, inside functions too."""
    found: set[str] = set()
    for node in _statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_modules_are_short():
    lengths = {name: len(_text(name).splitlines()) for name in _modules()}
    assert {name: n for name, n in lengths.items() if n > MODULE_LINES} == {}


@pytest.mark.long
def test_functions_are_short():
    assert [f for name in _modules() for f in _functions(name) if f[1] > FUNCTION_LINES] == []


def test_there_is_no_module_for_everything():
    assert [name for name in _files() if Path(name).name == "utils.py"] == []


def test_cores_import_nothing_that_does_io_or_tells_time():
    cores = [name for name in _modules() if name.startswith(CORES)]
    assert cores
    broken = {name: _imports(_text(name)) & FORBIDDEN_IN_CORES for name in cores}
    assert {name: found for name, found in broken.items() if found} == {}


def test_the_rule_for_cores_sees_every_way_to_import():
    source = (
        "def f():\n    import os.path\n    from time import monotonic as now\nimport mesos_py.ids"
    )
    assert _imports(source) == {"os", "time", "mesos_py"}


def test_import_linter_has_the_same_rule_for_cores():
    contracts = tomllib.loads(_text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (cores,) = [c for c in contracts if "master.core" in c.get("source_modules", [])]
    assert set(cores["forbidden_modules"]) == FORBIDDEN_IN_CORES
    assert {name.replace(".", "/") + "/" for name in cores["source_modules"]} == set(CORES)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed(package):
    assert f"{package}/py.typed" in _files()


def test_versions_agree():
    """The floors of grpcio and protobuf are what the generated code asks for."""
    declared = tomllib.loads(_text("pyproject.toml"))["project"]["dependencies"]
    stubs = "".join(
        _text(n) for n in _files() if n.startswith(GENERATED) and n.endswith("_grpc.py")
    )
    for version in re.findall(r"GRPC_GENERATED_VERSION = '([\d.]+)'", stubs):
        assert f"grpcio>={version}" in declared
    gencode = set(re.findall(r"^# Protobuf Python Version: ([\d.]+)", _pb2(), re.MULTILINE))
    for version in gencode:
        assert any(line.startswith(f"protobuf>={version},") for line in declared)


def _pb2() -> str:
    return "".join(_text(n) for n in _files() if n.startswith(GENERATED) and n.endswith("_pb2.py"))


def test_nothing_of_one_machine_is_in_a_file():
    assert _lines_that_match(MACHINE_PATHS, _files()) == []
    assert _lines_that_match(REGISTRY_HOSTS, _files()) == []


def test_no_work_is_left_as_a_marker():
    sources = [
        n for n in _files() if n.endswith((".py", ".pyi", ".sh", ".proto")) or n == ".ci/run"
    ]
    assert _lines_that_match(MARKERS, sources) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (MARKERS, "# TO" + "DO: later"),
        (MACHINE_PATHS, "cd /wo" + "rk/main"),
        (REGISTRY_HOSTS, "https://py" + "pi.org/project/x"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern, line):
    assert pattern.search(line)


@pytest.mark.parametrize(
    "line", ["/var/lib/mesos/wo" + "rk/", "${DIR}/wo" + "rk/x", "network/working", "TODOS"]
)
def test_the_patterns_leave_other_text_alone(line):
    assert not MARKERS.search(line)
    assert not MACHINE_PATHS.search(line)
