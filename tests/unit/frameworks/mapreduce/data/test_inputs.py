import os

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from frameworks.mapreduce.data import inputs
from mesos_py.errors import InvalidValue, NotFound


@pytest.fixture
def tree(tmp_path):
    for name in ("a.txt", "b.txt", "c.log", "_hidden", ".too", "sub/d.txt", "sub/deep/e.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    yield fs
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


def names(root, *given, recursive=False, conf=None):
    conf = conf or {"mapreduce.input.fileinputformat.input.dir.recursive": str(recursive).lower()}
    found = inputs.find([one.replace("$", str(root)) for one in given], conf)
    return [file.url.removeprefix(f"file://{root}/") for file in found]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("$/a.txt", ["a.txt"]),
        ("file://$/a.txt", ["a.txt"]),
        ("file:$/a.txt", ["a.txt"]),
        ("$/sub/../a.txt", ["a.txt"]),
        ("$/*.txt", ["a.txt", "b.txt"]),
        ("$/?.txt", ["a.txt", "b.txt"]),
        ("$/[bc].*", ["b.txt", "c.log"]),
        ("$/[^b].*", ["a.txt", "c.log"]),
        ("$/[!b].txt", ["a.txt"]),
        ("$/{a,c}.*", ["a.txt", "c.log"]),
        ("$/{b.txt,a.*}", ["b.txt", "a.txt"]),
        ("$/{a,{b,c}}.{txt,log}", ["a.txt", "b.txt", "c.log"]),
        ("$/{a*,?.txt}", ["a.txt", "b.txt"]),
        ("$/b.txt,$/a.txt", ["b.txt", "a.txt"]),
        ("$/a.txt,$/a*", ["a.txt", "a.txt"]),
        ("$/_*", ["_hidden"]),
        ("$/_hidden", ["_hidden"]),
        ("$/.t*", [".too"]),
        ("$/s*/d.txt", ["sub/d.txt"]),
        ("$/*/*/e*", ["sub/deep/e.txt"]),
        ("$/**/*.txt", ["a.txt", "b.txt", "sub/d.txt", "sub/deep/e.txt"]),
        ("$/sub/**", ["sub/d.txt", "sub/deep/e.txt"]),
        ("$/sub/deep", ["sub/deep/e.txt"]),
        ("$/sub/d*", ["sub/d.txt", "sub/deep/e.txt"]),
    ],
)
def test_what_names_lead_to(tree, pattern, wanted):
    assert names(tree, pattern) == wanted


def test_names_in_their_order(tree):
    assert names(tree, "$/c.log", "$/*.txt") == ["c.log", "a.txt", "b.txt"]


def test_directories_in_directories_are_not_passed_over(tree):
    with pytest.raises(InvalidValue, match=r"has directories in it .*recursive=true"):
        names(tree, "$")
    wanted = ["a.txt", "b.txt", "c.log", "sub/d.txt", "sub/deep/e.txt"]
    assert names(tree, "$", recursive=True) == wanted


def test_hidden_directories_are_passed_over(tree):
    (tree / "sub/deep/_temporary").mkdir()
    assert names(tree, "$/sub/deep") == ["sub/deep/e.txt"]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("$/nothing", "is not there"),
        ("$/a.txt/below", "is not there"),
        ("$/nothing/*", "matches nothing"),
        ("$/*.gz", "matches nothing"),
        ("$/a.txt/*", "matches nothing"),
        ("$/{x,y}.txt", "matches nothing"),
        ("$/a.txt,$/x.txt", "/x.txt': is not there"),
    ],
)
def test_nothing_there(tree, pattern, text):
    with pytest.raises(NotFound, match=r"^input ") as error:
        names(tree, pattern)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "empty name"),
        ("$/a\0b", "is not the name of a file"),
        ("$/a.txt,,$/b.txt", "empty name"),
        ("nosuch://x/y", "nosuch: cannot be used"),
        ("$/" + "{a,b}" * 15, "more than 10000 alternatives"),
        ("file://elsewhere/x", "is a file of another host"),
        ("hdfs:///a/../../etc/passwd", "must not have .. in it"),
        ("memory://a::file:///b", "chains of file systems"),
    ],
)
def test_names_that_are_no_good(tree, name, text):
    with pytest.raises(InvalidValue, match=r"^input: ") as error:
        names(tree, name)
    assert text in str(error.value)


@pytest.mark.parametrize("name", ["a,b.txt", "x[1].txt", "{y}", "what?*", "back\\slash"])
def test_a_name_that_exists_means_itself(tmp_path, name):
    (tmp_path / name).write_text("it")
    (tmp_path / "a").write_text("another")
    assert names(tmp_path, f"$/{name}") == [name]


def test_a_backslash_takes_the_next_letter_as_it_is(tmp_path):
    for name in ("a,b1", "a,b2", "*1", "x1"):
        (tmp_path / name).write_text("it")
    assert names(tmp_path, r"$/a\,b*") == ["a,b1", "a,b2"]
    assert names(tmp_path, r"$/\*[1]") == ["*1"]


def test_names_are_in_order_of_their_bytes(tmp_path):
    for name in ("é", "z", "Z", "a", "10", "9"):
        (tmp_path / name).touch()
    assert names(tmp_path, "$") == ["10", "9", "Z", "a", "z", "é"]


def test_links_are_followed(tree):
    (tree / "sub/deep/link").symlink_to(tree / "a.txt")
    assert names(tree, "$/sub/deep") == ["sub/deep/e.txt", "sub/deep/link"]
    found = inputs.find([f"{tree}/sub/deep/link"], {})
    assert found[0].size == 5


def test_a_link_to_nothing(tree):
    (tree / "sub/deep/link").symlink_to("gone")
    with pytest.raises(InvalidValue, match=r"link': is neither a file nor a directory"):
        names(tree, "$/sub/deep")


def test_links_in_a_circle(tmp_path):
    (tmp_path / "again").symlink_to(".")
    with pytest.raises(InvalidValue, match=r"^input: "):
        names(tmp_path, "$", recursive=True)


def test_a_pipe_is_no_input(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidValue, match="is neither a file nor a directory"):
        names(tmp_path, "$/pipe")


def test_a_name_that_is_no_text(tmp_path):
    (tmp_path / os.fsdecode(b"\xff")).touch()
    with pytest.raises(InvalidValue, match="no UTF-8"):
        names(tmp_path, "$")


def test_what_can_be_parted(tmp_path):
    for name in ("a.txt", "b.gz", "c.bz2", "d.zst", "e.gz.txt"):
        (tmp_path / name).touch()
    found = inputs.find([str(tmp_path)], {})
    assert [file.parted for file in found] == [True, False, False, False, True]


def test_a_store(memory):
    for name in ("/in/b", "/in/a", "/in/sub/c", "/in/_SUCCESS"):
        memory.pipe_file(name, b"text")
    assert [file.url for file in inputs.find(["memory:///in/[ab]"], {})] == [
        "memory:///in/a",
        "memory:///in/b",
    ]
    assert [file.url for file in inputs.find(["memory://in/*/*"], {})] == ["memory://in/sub/c"]
    assert inputs.find(["memory:///in/a"], {}) == [inputs.InputFile("memory:///in/a", 4, True)]


def test_a_list_of_names_on_different_file_systems(tree, memory):
    memory.pipe_file("/in/a", b"text")
    found = inputs.find([f"memory:///in/a,file://{tree}/b.txt"], {})
    assert [file.url for file in found] == ["memory:///in/a", f"file://{tree}/b.txt"]


def test_relative_names(tree, monkeypatch):
    monkeypatch.chdir(tree / "sub")
    assert names(tree, "d.txt", "../a.txt", "deep/*") == ["sub/d.txt", "a.txt", "sub/deep/e.txt"]


def test_hdfs_without_a_host_is_beneath_the_default(tree, monkeypatch):
    assert names(tree, "hdfs:///*.txt", conf={"fs.defaultFS": str(tree)}) == ["a.txt", "b.txt"]
    assert names(tree, "hdfs:/sub/deep", conf={"fs.defaultFS": f"file://{tree}"}) == [
        "sub/deep/e.txt"
    ]
    monkeypatch.setenv("MESOS_PY_MAPREDUCE_FS", str(tree))
    assert names(tree, "hdfs:///a.txt") == ["a.txt"]


class Counting(MemoryFileSystem):
    """Says how often it was listed."""

    protocol = "counting"
    listed = 0

    def ls(self, path, detail=True, **kwargs):
        type(self).listed += 1
        return super().ls(path, detail, **kwargs)

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("counting://"))


def test_a_directory_is_listed_once(memory, monkeypatch):
    fsspec.register_implementation("counting", Counting, clobber=True)
    monkeypatch.setattr(Counting, "listed", 0)
    for i in range(50):
        memory.pipe_file(f"/many/{i:02}", b"x")
    found = inputs.find(["counting:///many/{0,1,2,3}*,counting:///many/*"], {})
    assert len(found) == 40 + 50
    assert Counting.listed == 1
