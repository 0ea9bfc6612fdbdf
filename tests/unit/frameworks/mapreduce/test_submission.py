"""A job made of options: its record, and what is shipped with it."""

import tarfile
from pathlib import Path

import pytest

from frameworks.mapreduce import names, submission
from frameworks.mapreduce.streaming import parse
from mesos_py.errors import InvalidValue, MesosPyError, NotFound

JOB = "job_20261128141500_0001"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job(*words, staging="stage"):
    options = parse(["-input", "in", "-output", "out", "-mapper", "cat", *words])
    programs = submission.commands(options)
    made = submission.job_of(options, programs, job_id=JOB, user="u", staging=staging, now_s=5.0)
    return made, options.shipped


def refused(*words):
    with pytest.raises(InvalidValue) as caught:
        job(*words)
    return caught.value


def test_paths_become_urls_that_mean_the_same_everywhere(here):
    made, _ = job("-input", "/data/*.gz,memory://bucket/x")
    assert made.inputs == (f"file://{here}/in", "file:///data/*.gz", "memory://bucket/x")
    assert made.output == f"file://{here}/out"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], "cat"),
        (["-D", "mapred.job.name=mine"], "mine"),
    ],
)
def test_a_job_has_a_name(here, words, name):
    assert job(*words)[0].name == name


def test_a_job_is_called_after_its_script_rather_than_after_python(here):
    (here / "wc.py").touch()
    options = parse(["-input", "i", "-output", "o", "-mapper", "python3 wc.py x", "-file", "wc.py"])
    programs = submission.commands(options)
    assert (
        submission.job_of(options, programs, job_id=JOB, user="u", staging="s", now_s=0).name
        == "wc.py"
    )


def test_ids_are_of_the_form_of_all_ids_and_differ():
    made = {submission.new_job_id() for _ in range(50)}
    assert len(made) > 40
    for each in made:
        assert names.checked_job_id("job", each) == each


@pytest.mark.parametrize(
    "words",
    [
        ["-D", "mapreduce.job.output.key.comparator.class=a.b.Mine"],
        ["-D", "mapreduce.map.output.compress=true", "-D", "mapreduce.map.output.compress.codec=x"],
        ["-D", "mapred.output.compress=true", "-D", "mapred.output.compression.codec=x"],
        ["-D", "stream.map.output.field.separator="],
        ["-D", "stream.reduce.input.field.separator="],
    ],
)
def test_what_tasks_could_not_do_is_refused_before(here, words):
    assert refused(*words).field.startswith(("mapreduce.", "stream."))


def test_a_command_with_an_open_quote_is_refused(here):
    assert refused("-reducer", "sh -c 'x").field == "-reducer"


@pytest.mark.parametrize("command", ["m.py arg", "./m.py"])
def test_a_script_of_this_directory_that_is_not_shipped_is_refused(here, command):
    (here / "m.py").touch()
    error = refused("-reducer", command)
    assert "-file" in error.reason
    assert job("-reducer", "m.py arg", "-file", "m.py")[0].reducer.command == "m.py arg"


def test_programs_of_the_path_and_absolute_ones_are_taken_as_they_are(here):
    (here / "cat").touch()
    made, _ = job("-reducer", "/usr/bin/env cat", "-combiner", "cat")
    assert made.reducer.command == "/usr/bin/env cat"
    assert made.combiner.command == "cat"


# ---- Shipping ------------------------------------------------------------------------------


def shipped(*words):
    made, given = job(*words)
    return submission.ship(made, given).shipped


def read(url):
    return Path(url.removeprefix("file://")).read_bytes()


def test_files_are_copied_and_may_be_run(here):
    (here / "m.py").write_bytes(b"code")
    (one,) = shipped("-file", "m.py")
    assert (one.name, one.archive, one.executable) == ("m.py", False, True)
    (here / "m.py").write_bytes(b"changed later")
    assert read(one.url) == b"code"
    assert one.url.startswith(f"file://{here}/stage/files/")


def test_two_files_of_one_name_at_their_sources_stay_apart(here):
    for number in ("1", "2"):
        (here / number).mkdir()
        (here / number / "f").write_text(number)
    one, other = shipped("-files", "1/f#a,2/f#b")
    assert (one.name, other.name) == ("a", "b")
    assert (read(one.url), read(other.url)) == (b"1", b"2")


def test_an_archive_keeps_its_extension(here):
    (here / "x.tar.gz").write_bytes(b"...")
    (one,) = shipped("-archives", "x.tar.gz#data")
    assert (one.name, one.archive) == ("data", True)
    assert one.url.endswith("/x.tar.gz")


def test_a_directory_is_packed(here):
    (here / "lib" / "sub").mkdir(parents=True)
    (here / "lib" / "sub" / "f").write_bytes(b"deep")
    (one,) = shipped("-file", "lib")
    assert (one.name, one.archive) == ("lib", True)
    with tarfile.open(one.url.removeprefix("file://")) as tar:
        member = tar.extractfile("sub/f")
        assert member is not None
        assert member.read() == b"deep"


def test_a_file_of_the_clusters_own_file_system_stays_where_it_is(here, monkeypatch):
    monkeypatch.setenv("MESOS_PY_MAPREDUCE_FS", str(here / "dfs"))
    (here / "dfs").mkdir()
    (here / "dfs" / "m.py").write_bytes(b"code")
    (one,) = shipped("-files", "hdfs:///m.py#n.py")
    assert one.url == f"file://{here}/dfs/m.py"
    assert one.executable
    assert not (here / "stage").exists()


def test_a_file_that_is_not_there_is_named(here):
    made, given = job("-file", "absent.py")
    with pytest.raises(NotFound) as caught:
        submission.ship(made, given)
    assert "-file" in caught.value.message
    assert "absent.py" in caught.value.message


def test_a_directory_is_no_archive(here):
    (here / "d").mkdir()
    made, given = job("-archives", "d")
    with pytest.raises(InvalidValue) as caught:
        submission.ship(made, given)
    assert caught.value.field == "-archives"


def test_a_staging_directory_that_cannot_be_written_is_named(here):
    (here / "m.py").touch()
    (here / "stage").write_text("in the way")
    made, given = job("-file", "m.py")
    with pytest.raises(MesosPyError) as caught:
        submission.ship(made, given)
    assert "m.py: cannot be shipped to" in caught.value.message


def test_what_was_shipped_can_be_removed_again(here):
    (here / "m.py").touch()
    made, given = job("-file", "m.py")
    submission.ship(made, given)
    submission.unship(made)
    submission.unship(made)
    assert sorted(path.name for path in here.iterdir()) == ["m.py"]


@pytest.mark.parametrize("text", ["\N{SUPERSCRIPT TWO}", "--5", "9" * 5000, "", "1.5"])
def test_what_only_looks_like_a_whole_number_is_refused(here, text):
    assert "must be a whole number" in refused("-D", f"mapreduce.job.maps={text}").message


def test_a_comma_after_a_backslash_is_of_the_name(here):
    assert job("-input", r"a\,b,{c\},d}")[0].inputs[1:] == (
        rf"file://{here}/a\,b",
        rf"file://{here}/{{c\}},d}}",
    )
