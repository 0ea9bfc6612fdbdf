import json
import os

import pytest

from frameworks.rdd import submission
from mesos_py.errors import InvalidValue


def test_a_program_finds_the_properties_that_it_was_given():
    env = submission.environment({"HOME": "/h"}, {"spark.app.name": "n"})
    assert env["HOME"] == "/h"
    assert "PYTHONPATH" not in env
    assert submission.defaults(env) == {"spark.app.name": "n"}
    assert submission.defaults({}) == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "3"])
def test_a_damaged_environment_is_said(text):
    with pytest.raises(InvalidValue, match=submission.CONF_VARIABLE):
        submission.defaults({submission.CONF_VARIABLE: text})


def test_python_files_are_imported_from_where_they_are(tmp_path):
    files = [str(tmp_path / "one.py"), str(tmp_path / "two.py"), str(tmp_path / "more.zip")]
    env = submission.environment({"PYTHONPATH": "/had"}, {}, files)
    assert env["PYTHONPATH"].split(os.pathsep) == [str(tmp_path), files[2], "/had"]
    assert json.loads(env[submission.CONF_VARIABLE]) == {}


def test_a_file_of_properties_is_read_as_spark_reads_it(tmp_path):
    path = tmp_path / "defaults.conf"
    path.write_text(
        "# of ours\n\nspark.app.name   my name \nspark.executor.cores=4\n"
        "spark.executor.memory: 2g\nspark.executorEnv.X=a=b c\nspark.mesos.role\n"
    )
    assert submission.read_properties(path) == {
        "spark.app.name": "my name",
        "spark.executor.cores": "4",
        "spark.executor.memory": "2g",
        "spark.executorEnv.X": "a=b c",
        "spark.mesos.role": "",
    }


def test_a_line_without_a_name_is_named(tmp_path):
    path = tmp_path / "defaults.conf"
    path.write_text("spark.app.name n\n = x\n")
    with pytest.raises(InvalidValue, match=r"defaults\.conf:2"):
        submission.read_properties(path)
