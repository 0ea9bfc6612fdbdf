import pytest
from click.testing import CliRunner

from frameworks.torque.cli import command


@pytest.fixture
def served(monkeypatch):
    """The options that a wrapper would have been started with."""
    seen = []
    monkeypatch.setattr(
        "frameworks.torque.serving.serve", lambda options, ready: seen.append(options)
    )
    monkeypatch.setattr("mesos_py.logs.setup", lambda *_: None)
    return seen


@pytest.mark.parametrize(
    ("words", "environment", "master"),
    [
        ((), {}, "127.0.0.1:5050"),
        ((), {"MESOS_PY_MASTER": "h:1"}, "h:1"),
        ((), {"MESOS_PY_MASTER": "h:1", "MESOS_PY_TORQUE_MASTER": "h:2"}, "h:2"),
        (("--master", "h:3"), {"MESOS_PY_MASTER": "h:1", "MESOS_PY_TORQUE_MASTER": "h:2"}, "h:3"),
    ],
)
def test_the_master_is_found_where_all_commands_look(served, tmp_path, words, environment, master):
    none = {"MESOS_PY_MASTER": None, "MESOS_PY_TORQUE_MASTER": None}
    argv = ["up", "--state-dir", str(tmp_path / "s"), *words]
    result = CliRunner().invoke(command, argv, env={**none, **environment})
    assert result.exception is None, result.output
    (options,) = served
    assert options.master == master
