import json
import sys

import pytest
from click.testing import CliRunner

from frameworks.rdd import cli
from frameworks.rdd.submission import CONF_VARIABLE


@pytest.fixture
def become(monkeypatch):
    """What the command would have become."""
    seen = []
    monkeypatch.setattr("os.execve", lambda path, argv, env: seen.append((argv, env)))
    return seen


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.command, list(words), env={"MESOS_PY_MASTER": None})
    error = f"{type(result.exception).__name__}: {result.exception}" if result.exception else ""
    return result.exit_code, result.output + error


def test_submit_becomes_the_program_with_its_properties(become, tmp_path):
    script, module = tmp_path / "job.py", tmp_path / "helper.py"
    script.write_text("")
    module.write_text("")
    options = ["--master", "local[3]", "--executor-cores", "2", "--num-executors", "5"]
    options += ["-c", "spark.speculation=true", "--py-files", str(module)]
    assert run("submit", *options, str(script), "--flag", "x") == (0, "")
    ((argv, env),) = become
    assert argv == [sys.executable, str(script), "--flag", "x"]
    assert json.loads(env[CONF_VARIABLE]) == {
        "spark.app.name": "job.py",
        "spark.dynamicAllocation.maxExecutors": "5",
        "spark.dynamicAllocation.minExecutors": "5",
        "spark.executor.cores": "2",
        "spark.master": "local[3]",
        "spark.speculation": "true",
        "spark.submit.pyFiles": str(module),
    }
    assert env["PYTHONPATH"].split(":")[0] == str(tmp_path)


def test_options_go_before_properties_and_those_before_the_file(become, tmp_path):
    path = tmp_path / "conf"
    path.write_text("spark.mesos.role a\nspark.app.name of-file\nspark.cores.max 3\n")
    words = ["--properties-file", str(path), "--role", "b", "-c", "spark.cores.max=4"]
    assert run("shell", *words) == (0, "")
    conf = json.loads(become[0][1][CONF_VARIABLE])
    assert conf == {
        "spark.app.name": "of-file",
        "spark.mesos.role": "b",
        "spark.cores.max": "4",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-c", "spark.executor.cores=none"), "spark.executor.cores"),
        (("-c", "nothing"), "--conf: 'nothing': must be NAME=VALUE"),
        (("--executor-memory", "a lot"), "spark.executor.memory: 'a lot'"),
        (("--py-files", "absent.py"), "--py-files: 'absent.py': is not there"),
        (("--num-executors", "0"), "--num-executors"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_is_started(become, words, said):
    code, output = run("shell", *words)
    assert code != 0
    assert said in output
    assert become == []


def test_a_script_that_is_not_there_is_said(become):
    code, output = run("submit", "absent.py")
    assert code == 2
    assert "absent.py" in output
    assert become == []
