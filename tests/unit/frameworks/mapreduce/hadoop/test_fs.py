"""`hadoop fs`: its words, output and exit codes, on a directory that stands for HDFS."""

import bz2
import getpass
import gzip
import io
import os
import re

import pytest

from frameworks.mapreduce.hadoop import shell
from frameworks.mapreduce.hadoop.words import Streams


class Fs:
    """Runs commands; `root` is the default file system."""

    def __init__(self, directory):
        self.root = directory / "root"
        self.here = directory / "here"
        self.root.mkdir()
        self.here.mkdir()
        self.out = self.err = ""
        self.raw = b""

    def __call__(self, *words, stdin=b""):
        out, err = io.BytesIO(), io.StringIO()
        conf = {"fs.defaultFS": f"file://{self.root}"}
        streams = Streams(io.BytesIO(stdin), out, err)
        code = shell.run([str(word) for word in words], conf, streams)
        self.raw, self.err = out.getvalue(), err.getvalue()
        self.out = self.raw.decode(errors="replace")
        return code

    def file(self, path, data=b"x"):
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data)
        return full

    def names(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


@pytest.fixture
def fs(tmp_path):
    return Fs(tmp_path)


# ---- ls ------------------------------------------------------------------------------------


def test_ls_of_a_directory_counts_and_shows_rows_by_name(fs):
    fs.file("d/b", b"12345")
    fs.file("d/a")
    (fs.root / "d/sub").mkdir()
    assert fs("-ls", "/d") == 0
    first, *rows = fs.out.splitlines()
    assert first == "Found 3 items"
    assert [row.split()[-1] for row in rows] == ["/d/a", "/d/b", "/d/sub"]
    form = r"-rw.{7} +1 \S+ +\S+ +5 \d{4}-\d\d-\d\d \d\d:\d\d /d/b"
    assert re.fullmatch(form, rows[1])
    assert rows[2].startswith("drwx")
    assert " - " in rows[2]


def test_ls_shows_paths_as_they_were_given(fs):
    fs.file(f"user/{getpass.getuser()}/mine/f")
    fs("-ls", "mine")
    assert fs.out.splitlines()[1].endswith(" mine/f")
    fs("-ls", f"hdfs:///user/{getpass.getuser()}/mine")
    assert fs.out.splitlines()[1].endswith(f" hdfs:///user/{getpass.getuser()}/mine/f")


def test_ls_of_a_file_is_one_row(fs):
    fs.file("f")
    assert fs("-ls", "hdfs:///f") == 0
    assert len(fs.out.splitlines()) == 1
    assert fs.out.rstrip().endswith("hdfs:///f")


def test_ls_of_what_is_not_there_says_so_and_goes_on(fs):
    fs.file("d/f")
    assert fs("-ls", "/nope", "/d") == 1
    assert fs.err == "ls: `/nope': No such file or directory\n"
    assert "/d/f" in fs.out


def test_ls_recursive_has_no_count_and_goes_into_directories(fs):
    fs.file("d/e/f")
    fs.file("d/g")
    assert fs("-ls", "-R", "hdfs:///d") == 0
    paths = [line.split(" ")[-1] for line in fs.out.splitlines()]
    assert paths == ["hdfs:///d/e", "hdfs:///d/e/f", "hdfs:///d/g"]


def test_the_old_lsr_is_ls_recursive(fs):
    fs.file("d/e/f")
    assert fs("-lsr", "/d") == 0
    assert "/d/e/f" in fs.out
    assert "DEPRECATED" in fs.err


def test_globs_with_braces_and_names_with_spaces(fs):
    for name in ("part-0", "part-1", "other", "with space"):
        fs.file(f"d/{name}")
    assert fs("-ls", "-C", "/d/part-*") == 0
    assert fs.out.split("\n")[:-1] == ["/d/part-0", "/d/part-1"]
    assert fs("-ls", "-C", "hdfs:///d/{other,with space}") == 0
    assert fs.out.split("\n")[:-1] == ["hdfs:///d/other", "hdfs:///d/with space"]


def test_a_glob_that_matches_nothing_is_a_fault(fs):
    assert fs("-ls", "/d/part-*") == 1
    assert "No such file or directory" in fs.err


# ---- Bytes ---------------------------------------------------------------------------------


def test_cat_gives_bytes_as_they_are_in_order(fs):
    fs.file("a", b"\xff\x00one\r\n")
    fs.file("b", b"two")
    assert fs("-cat", "/a", "/b") == 0
    assert fs.raw == b"\xff\x00one\r\ntwo"


def test_cat_of_a_directory_is_a_fault(fs):
    fs.file("d/f")
    assert fs("-cat", "/d") == 1
    assert fs.err == "cat: `/d': Is a directory\n"


def test_text_unpacks_by_how_a_file_begins(fs):
    fs.file("a.gz", gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    fs.file("b", bz2.compress(b"three\n"))
    fs.file("c", b"plain\n")
    assert fs("-text", "/a.gz", "/b", "/c") == 0
    assert fs.raw == b"one\ntwo\nthree\nplain\n"


def test_text_of_a_file_that_is_cut_off_is_a_fault(fs):
    fs.file("a.gz", gzip.compress(b"one\n" * 1000)[:-12])
    assert fs("-text", "/a.gz") == 1
    assert "/a.gz" in fs.err


def test_put_and_get(fs):
    local = fs.here / "f"
    local.write_bytes(b"data")
    fs("-mkdir", "-p", "hdfs:///tmp/x")
    assert fs("-put", local, "hdfs:///tmp/x/g") == 0
    assert (fs.root / "tmp/x/g").read_bytes() == b"data"
    assert fs("-get", "hdfs:///tmp/x/g", fs.here / "back") == 0
    assert (fs.here / "back").read_bytes() == b"data"


def test_put_into_a_directory_keeps_the_name_and_takes_stdin(fs):
    local = fs.here / "f"
    local.write_bytes(b"data")
    (fs.root / "d").mkdir()
    assert fs("-copyFromLocal", local, "/d") == 0
    assert fs("-put", "-", "/d/piped", stdin=b"piped") == 0
    assert (fs.root / "d/f").read_bytes() == b"data"
    assert (fs.root / "d/piped").read_bytes() == b"piped"


def test_put_does_not_replace_without_force_and_leaves_nothing_half(fs):
    local = fs.here / "f"
    local.write_bytes(b"new")
    fs.file("f", b"old")
    assert fs("-put", local, "/f") == 1
    assert fs.err == "put: `/f': File exists\n"
    assert (fs.root / "f").read_bytes() == b"old"
    assert fs("-put", "-f", local, "/f") == 0
    assert (fs.root / "f").read_bytes() == b"new"
    assert fs.names() == ["f"]


def test_put_into_no_directory_is_a_fault(fs):
    local = fs.here / "f"
    local.write_bytes(b"new")
    assert fs("-put", local, "/none/f") == 1
    assert "No such file or directory" in fs.err
    assert fs("-put", fs.here / "absent", "/g") == 1
    assert fs.names() == []


def test_directories_are_put_and_got_whole(fs):
    (fs.here / "tree/sub").mkdir(parents=True)
    (fs.here / "tree/sub/f").write_bytes(b"deep")
    assert fs("-put", fs.here / "tree", "/copy") == 0
    assert (fs.root / "copy/sub/f").read_bytes() == b"deep"
    assert fs("-get", "/copy", fs.here / "again") == 0
    assert (fs.here / "again/sub/f").read_bytes() == b"deep"


def test_get_does_not_replace_without_force(fs):
    fs.file("f", b"new")
    (fs.here / "f").write_bytes(b"old")
    assert fs("-copyToLocal", "/f", fs.here / "f") == 1
    assert (fs.here / "f").read_bytes() == b"old"
    assert fs("-get", "-f", "/f", fs.here) == 0
    assert (fs.here / "f").read_bytes() == b"new"


def test_getmerge_joins_the_files_of_a_directory(fs):
    fs.file("d/part-00001", b"b\n")
    fs.file("d/part-00000", b"a\n")
    assert fs("-getmerge", "/d", fs.here / "all") == 0
    assert (fs.here / "all").read_bytes() == b"a\nb\n"


def test_head_and_tail_are_a_kilobyte(fs):
    fs.file("f", b"a" * 2000 + b"b" * 1000)
    fs("-head", "/f")
    assert fs.raw == b"a" * 1024
    fs("-tail", "/f")
    assert fs.raw == b"a" * 24 + b"b" * 1000


# ---- What there is -------------------------------------------------------------------------


def test_mkdir_needs_p_for_parents_and_for_what_is_there(fs):
    assert fs("-mkdir", "/a/b") == 1
    assert fs.err == "mkdir: `/a/b': No such file or directory\n"
    assert fs("-mkdir", "-p", "/a/b") == 0
    assert fs("-mkdir", "-p", "/a/b") == 0
    assert fs("-mkdir", "/a/b") == 1
    assert fs.err == "mkdir: `/a/b': File exists\n"


def test_mkdir_over_a_file_is_a_fault_also_with_p(fs):
    fs.file("f")
    assert fs("-mkdir", "-p", "/f") == 1
    assert "File exists" in fs.err


def test_rm_wants_r_for_directories(fs):
    fs.file("d/f")
    assert fs("-rm", "/d") == 1
    assert fs.err == "rm: `/d': Is a directory\n"
    assert fs("-rm", "-R", "-f", "-skipTrash", "hdfs:///d") == 0
    assert fs.out == "Deleted hdfs:///d\n"
    assert fs.names() == []


def test_rm_of_nothing_is_a_fault_unless_forced(fs):
    assert fs("-rm", "/nope") == 1
    assert fs.err == "rm: `/nope': No such file or directory\n"
    assert fs("-rm", "-f", "/nope") == 0
    assert fs.err == ""


@pytest.mark.parametrize("path", ["/", "hdfs:///", "/x/..", "hdfs:////"])
def test_the_root_is_not_removed(fs, path):
    fs.file("f")
    assert fs("-rm", "-r", path) == 1
    assert fs.names() == ["f"]


def test_a_path_cannot_lead_out_of_the_root(fs):
    (fs.here / "secret").write_bytes(b"s")
    assert fs("-cat", "hdfs:///../here/secret") == 1
    assert fs.raw == b""
    assert fs("-cat", "/../here/secret") == 1
    assert fs.raw == b""


def test_rmdir_of_a_directory_that_is_not_empty_is_a_fault(fs):
    fs.file("d/f")
    assert fs("-rmdir", "/d") == 1
    assert fs("-rmdir", "--ignore-fail-on-non-empty", "/d") == 0
    assert fs.names() == ["d", "d/f"]


def test_du_has_sizes_first(fs):
    fs.file("d/a", b"123")
    fs.file("d/sub/b", b"4567")
    assert fs("-du", "/d") == 0
    rows = [line.split() for line in fs.out.splitlines()]
    assert rows == [["3", "3", "/d/a"], ["4", "4", "/d/sub"]]
    assert fs("-du", "-s", "/d") == 0
    assert fs.out.split() == ["7", "7", "/d"]


def test_count_has_columns(fs):
    fs.file("d/a", b"123")
    fs.file("d/sub/b", b"4567")
    assert fs("-count", "/d") == 0
    assert fs.out == "           2            2                  7 /d\n"


@pytest.mark.parametrize(
    ("flag", "path", "code"),
    [
        ("-e", "/d", 0),
        ("-e", "/nope", 1),
        ("-d", "/d", 0),
        ("-d", "/d/f", 1),
        ("-f", "/d/f", 0),
        ("-z", "/d/f", 1),
        ("-z", "/d/empty", 0),
        ("-s", "/d/f", 0),
        ("-s", "/d/empty", 1),
    ],
)
def test_test_answers_by_its_exit_code(fs, flag, path, code):
    fs.file("d/f")
    fs.file("d/empty", b"")
    assert fs("-test", flag, path) == code
    assert fs.out == ""


def test_touchz_makes_empty_files_and_spares_others(fs):
    assert fs("-touchz", "/f") == 0
    assert (fs.root / "f").read_bytes() == b""
    fs.file("g")
    assert fs("-touchz", "/g") == 1
    assert fs.err == "touchz: `/g': Not a zero-length file\n"


def test_mv_renames_and_moves_into_directories(fs):
    fs.file("a")
    fs.file("d/x")
    assert fs("-mv", "/a", "/b") == 0
    assert fs("-mv", "/b", "/d") == 0
    assert fs.names() == ["d", "d/b", "d/x"]
    fs.file("x")
    assert fs("-mv", "/x", "/d") == 1
    assert "File exists" in fs.err
    assert fs("-mv", "/d", "/d/e") == 1
    assert fs.names() == ["d", "d/b", "d/x", "x"]


def test_cp_copies_trees(fs):
    fs.file("d/sub/f", b"deep")
    assert fs("-cp", "/d", "/e") == 0
    assert (fs.root / "e/sub/f").read_bytes() == b"deep"
    assert (fs.root / "d/sub/f").read_bytes() == b"deep"


def test_stat_fills_forms(fs):
    fs.file("f", b"123")
    assert fs("-stat", "%n %b %F %%", "/f") == 0
    assert fs.out == "f 3 regular file %\n"
    assert fs("-stat", "/f") == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n", fs.out)


# ---- Wrong usage ---------------------------------------------------------------------------


def test_an_unknown_command_names_the_nearest(fs):
    assert fs("-lss", "/") == 255
    assert fs.err == "lss: Unknown command; did you mean -ls?\n"


def test_an_unknown_flag_and_missing_paths_are_wrong_usage(fs):
    assert fs("-ls", "-Q", "/") == 255
    assert "Illegal option -Q" in fs.err
    assert fs("-cat") == 255
    assert "Not enough arguments" in fs.err
    assert fs() == 255


def test_a_scheme_that_nobody_knows_is_one_line(fs):
    assert fs("-ls", "nosuch://x/y") == 1
    assert fs.err.startswith("ls: ")
    assert len(fs.err.splitlines()) == 1


def test_names_that_are_no_utf8_pass_through(fs):
    (fs.root / "d").mkdir()
    (fs.root / "d" / os.fsdecode(b"\xff")).write_bytes(b"odd")
    assert fs("-ls", "-C", "/d") == 0
    assert fs.raw == b"/d/\xff\n"
