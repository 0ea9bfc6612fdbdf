"""The `hadoop` command as a whole, and the directory that it is found in."""

import io
import os
import shlex
import subprocess

import pytest

from frameworks.mapreduce.hadoop import home, main
from frameworks.mapreduce.hadoop.words import Streams
from tests.kit.mrjob_logs import STREAMING_JAR


def run(*words):
    out, err = io.BytesIO(), io.StringIO()
    code = main.run(list(words), Streams(io.BytesIO(), out, err))
    return code, out.getvalue().decode(), err.getvalue()


def test_version_begins_with_one_that_programs_understand():
    code, out, _ = run("version")
    assert code == 0
    assert out.splitlines()[0] == "Hadoop 3.3.6"


def test_unknown_commands_name_the_nearest():
    code, _, err = run("verson")
    assert code == 255
    assert "did you mean version?" in err


def test_without_a_command_it_shows_what_there_is():
    assert run()[0] == 255
    assert run("--help")[0] == 0


def test_a_jar_that_is_not_there_is_said_in_hadoops_words():
    code, _, err = run("jar", "/nope/other.jar")
    assert code == 255
    assert err == "Not a valid JAR: /nope/other.jar\n"


def test_a_jar_that_is_not_streamings_is_refused(tmp_path):
    jar = tmp_path / "wordcount.jar"
    jar.touch()
    code, _, err = run("jar", str(jar))
    assert code == 255
    assert "no Java here" in err


def test_a_bad_option_fails_as_hadoop_streaming_does():
    code, _, err = run("jar", "hadoop-streaming.jar", "-maper", "x")
    assert code == 1
    assert "the nearest is -mapper" in err
    assert err.endswith("Streaming Command Failed!\n")


def test_the_main_class_may_be_given_and_help_is_shown():
    code, out, _ = run(
        "jar", "hadoop-streaming-2.7.jar", "org.apache.hadoop.streaming.HadoopStreaming", "-help"
    )
    assert code == 0
    assert "-numReduceTasks N" in out


# ---- hadoop-home ---------------------------------------------------------------------------


def environment(script, **given):
    """What the script exports before it starts the program."""
    text = script.read_text()
    head, _, _ = text.partition("exec ")
    clean = {"PATH": os.environ["PATH"], **given}
    done = subprocess.run(["sh", "-c", f"{head}env"], env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.partition("=")[::2] for line in done.stdout.splitlines())


@pytest.fixture
def directory(tmp_path):
    # A name that a shell would take apart.
    return tmp_path / "it's a home"


def test_it_has_what_programs_look_for(directory):
    home.make(directory)
    assert os.access(directory / "bin" / "hadoop", os.X_OK)
    (jar,) = directory.rglob("*.jar")
    assert STREAMING_JAR.match(jar.name)


def test_defaults_are_of_the_directory_and_the_environment_wins(directory):
    home.make(directory, local=2)
    script = directory / "bin" / "hadoop"
    found = environment(script)
    assert found["MESOS_PY_MAPREDUCE_FS"] == f"file://{directory}/fs"
    assert found["MESOS_PY_MAPREDUCE_LOCAL"] == "2"
    assert found["MESOS_PY_HADOOP_HOME"] == str(directory)
    given = environment(script, MESOS_PY_MASTER="m:1", MESOS_PY_MAPREDUCE_FS="s3://b")
    assert given["MESOS_PY_MAPREDUCE_FS"] == "s3://b"
    assert "MESOS_PY_MAPREDUCE_LOCAL" not in given


def test_it_can_be_made_again_with_other_defaults_and_keeps_files(directory):
    home.make(directory, local=2)
    (directory / "fs" / "kept").write_text("x")
    home.make(directory, tracker="http://t:1")
    found = environment(directory / "bin" / "hadoop")
    assert found["MESOS_PY_MAPREDUCE_TRACKER"] == "http://t:1"
    assert "MESOS_PY_MAPREDUCE_LOCAL" not in found
    assert (directory / "fs" / "kept").read_text() == "x"


def test_the_script_is_one_that_a_shell_understands(directory):
    home.make(directory, master="zk://a/b", fs="hdfs://nn:8020/")
    text = (directory / "bin" / "hadoop").read_text()
    assert shlex.split(text.splitlines()[-1])[-1] == "$@"
    assert environment(directory / "bin" / "hadoop")["MESOS_PY_MASTER"] == "zk://a/b"
