import errno
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from frameworks.mapreduce.data import files
from frameworks.mapreduce.data.files import Entry
from mesos_py.errors import AlreadyExists, InvalidValue, NotFound


@pytest.fixture(autouse=True)
def no_default(monkeypatch):
    monkeypatch.delenv("MESOS_PY_MAPREDUCE_FS", raising=False)


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    yield fs
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


ROOT = {"fs.defaultFS": "/srv/files"}


@pytest.mark.parametrize(
    ("url", "conf", "wanted"),
    [
        ("/a/b", {}, "file:///a/b"),
        ("/a/../b/", {}, "file:///b"),
        ("//a", {}, "file:///a"),
        ("file:/a", {}, "file:///a"),
        ("file:///a//b", {}, "file:///a/b"),
        ("FILE://localhost/a", {}, "file:///a"),
        ("/a/x::y:/z", {}, "file:///a/x::y:/z"),
        ("s3://bucket/a b#?.txt", {}, "s3://bucket/a b#?.txt"),
        ("S3://bucket/K", {}, "s3://bucket/K"),
        ("hdfs://nn:8020/a/*", ROOT, "hdfs://nn:8020/a/*"),
        ("hdfs:///a/*", ROOT, "file:///srv/files/a/*"),
        ("hdfs:/a", ROOT, "file:///srv/files/a"),
        ("hdfs:///", ROOT, "file:///srv/files/"),
        ("hdfs:////a/./b/", ROOT, "file:///srv/files/a/b"),
        ("hdfs:///a", {"fs.defaultFS": "/"}, "file:///a"),
        ("hdfs:///a", {"fs.defaultFS": "file:///"}, "file:///a"),
        ("hdfs:///a", {"fs.defaultFS": "hdfs://nn:8020"}, "hdfs://nn:8020/a"),
        ("hdfs:///a", {"fs.defaultFS": "hdfs://nn:8020/"}, "hdfs://nn:8020/a"),
        ("hdfs:///a", {"fs.defaultFS": "s3://bucket/top/"}, "s3://bucket/top/a"),
        ("hdfs:///a", {"fs.defaultFS": "hdfs:///"}, "hdfs:///a"),
        ("hdfs:///a", {}, "hdfs:///a"),
        # Only names of Hadoop's are mapped.
        ("/a", ROOT, "file:///a"),
    ],
)
def test_names_that_mean_the_same_everywhere(url, conf, wanted):
    assert files.absolute(url, conf) == wanted


def test_the_environment_says_what_no_property_says(monkeypatch):
    monkeypatch.setenv("MESOS_PY_MAPREDUCE_FS", "/env")
    assert files.absolute("hdfs:///a", {}) == "file:///env/a"
    assert files.absolute("hdfs:///a", ROOT) == "file:///srv/files/a"


@pytest.mark.parametrize(
    "path", ["hdfs:///..", "hdfs:///a/../../etc", "hdfs:/../x", "hdfs:///a/.."]
)
def test_no_way_out_of_the_default_file_system(path):
    with pytest.raises(InvalidValue, match=r"^output: .* must not have \.\. in it"):
        files.absolute(path, ROOT, "output")


def test_relative_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert files.absolute("a/./b", {}) == f"file://{tmp_path}/a/b"
    assert files.absolute(".", {}) == f"file://{tmp_path}"


def test_what_is_not_installed_is_named():
    with pytest.raises(InvalidValue, match=r"gs: cannot be used: .*mesos-py\[gs\]"):
        files.resolve("gs://bucket/x", {})


@pytest.mark.parametrize(
    ("url", "path", "wanted"),
    [
        ("file:///a", "/b/c", "file:///b/c"),
        ("memory:///a/b", "/a/c", "memory:///a/c"),
        ("memory://a/b", "/a/c", "memory://a/c"),
        ("memory:///a/b/", "/a/c", "memory:///a/c"),
    ],
)
def test_urls_of_other_paths(url, path, wanted):
    fs, _ = files.resolve(url, {})
    assert files.url_of(url, path, fs) == wanted
    assert files.resolve(wanted, {})[1] == path


@pytest.mark.parametrize("root", ["file", "memory"])
def test_what_is_there(tmp_path, memory, root):
    base = f"{tmp_path}/d" if root == "file" else "/d"
    fs, _ = files.resolve(base if root == "file" else "memory:///d", {})
    fs.makedirs(f"{base}/sub")
    for name in ("b", "A", "_x"):
        fs.pipe_file(f"{base}/{name}", b"text")
    assert files.listing(fs, base) == [
        Entry(f"{base}/A", "file", 4),
        Entry(f"{base}/_x", "file", 4),
        Entry(f"{base}/b", "file", 4),
        Entry(f"{base}/sub", "directory", 0),
    ]
    assert files.entry(fs, f"{base}/b") == Entry(f"{base}/b", "file", 4)
    assert files.entry(fs, f"{base}/sub") == Entry(f"{base}/sub", "directory", 0)
    assert files.entry(fs, f"{base}/none") is None
    assert files.entry(fs, f"{base}/b/none") is None


@pytest.mark.parametrize("root", ["file", "memory"])
def test_moving(tmp_path, memory, root):
    base = f"{tmp_path}/d" if root == "file" else "/d"
    fs, _ = files.resolve(base if root == "file" else "memory:///d", {})
    fs.makedirs(base)
    fs.pipe_file(f"{base}/one", b"one")
    files.move(fs, f"{base}/one", f"{base}/deep/er/part")
    assert fs.cat_file(f"{base}/deep/er/part") == b"one"
    assert not fs.exists(f"{base}/one")
    # Once more, as after a crash before it was written down.
    files.move(fs, f"{base}/one", f"{base}/deep/er/part")
    # And as after one in between, where moving is copying.
    fs.pipe_file(f"{base}/one", b"two")
    files.move(fs, f"{base}/one", f"{base}/deep/er/part")
    assert fs.cat_file(f"{base}/deep/er/part") == b"two"
    with pytest.raises(NotFound, match="other"):
        files.move(fs, f"{base}/other", f"{base}/nowhere")


class Dies(Exception):
    pass


class Unreliable(MemoryFileSystem):
    """dies_in: the step of a move in which the process that makes it is killed.  silent: nothing
    is moved, and nothing raised."""

    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    cachable = False
    dies_in = ""
    silent = False

    def mv(self, path1, path2, **kwargs):
        self._step("moving")
        if not self.silent:
            super().mv(path1, path2, **kwargs)

    def cp_file(self, path1, path2, **kwargs):
        if self.dies_in == "copying":
            self.pipe_file(path2, self.cat_file(path1)[:2])
        self._step("copying")
        super().cp_file(path1, path2, **kwargs)

    def rm(self, path, **kwargs):
        self._step("removing")
        super().rm(path, **kwargs)

    def _step(self, name):
        if self.dies_in == name:
            self.dies_in = ""
            raise Dies


@pytest.fixture
def unreliable():
    fs = Unreliable()
    yield fs
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


@pytest.mark.parametrize("before", [None, b"old one"])
@pytest.mark.parametrize("step", ["moving", "copying", "removing"])
def test_whoever_dies_while_moving_loses_nothing_and_is_followed(unreliable, step, before):
    """Between removing what was there and moving, in the middle of a copy, and after it."""
    fs = unreliable
    fs.pipe_file("/d/new", b"whole")
    if before is not None:
        fs.pipe_file("/d/part", before)
    fs.dies_in = step
    with pytest.raises(Dies):
        files.move(fs, "/d/new", "/d/part")
    assert fs.cat_file("/d/new") == b"whole"
    files.move(fs, "/d/new", "/d/part")
    assert fs.cat_file("/d/part") == b"whole"
    assert not fs.exists("/d/new")
    files.move(fs, "/d/new", "/d/part")
    assert fs.cat_file("/d/part") == b"whole"


def test_what_a_file_system_has_only_said_to_have_moved_is_not_taken_for_moved(unreliable):
    fs = unreliable
    fs.pipe_file("/d/new", b"whole")
    fs.pipe_file("/d/part", b"old one")
    fs.silent = True
    with pytest.raises(OSError, match="is not there"):
        files.move(fs, "/d/new", "/d/part")
    fs.silent = False
    files.move(fs, "/d/new", "/d/part")
    assert fs.cat_file("/d/part") == b"whole"


def test_a_directory_is_not_replaced(tmp_path, memory):
    memory.makedirs("/d/sub")
    memory.pipe_file("/d/one", b"one")
    with pytest.raises(AlreadyExists):
        files.move(memory, "/d/one", "/d/sub")
    (tmp_path / "sub").mkdir()
    (tmp_path / "one").touch()
    with pytest.raises(OSError, match="directory"):
        files.move(files.resolve("/", {})[0], f"{tmp_path}/one", f"{tmp_path}/sub")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError("x"), "is not there"),
        (PermissionError("x"), "permission denied"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (ValueError("two\n lines"), "ValueError: two lines"),
        (KeyError(), "KeyError"),
        (InvalidValue("f", 1, "is bad"), "f: 1: is bad"),
    ],
)
def test_errors_in_words(error, text):
    assert files.why(error) == text
