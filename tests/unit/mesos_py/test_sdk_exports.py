"""What `import mesos_py` offers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mesos_py

FORKING = "GRPC_ENABLE_FORK_SUPPORT"


def test_every_exported_name_is_there():
    for name in mesos_py.__all__:
        assert getattr(mesos_py, name) is not None
    assert set(mesos_py.__all__) <= set(dir(mesos_py))
    assert sorted(mesos_py._HOME) == sorted(set(mesos_py.__all__) - {"__version__"})


def test_unknown_name_is_an_attribute_error():
    assert not hasattr(mesos_py, "Slave")


def test_package_is_marked_as_typed():
    assert (Path(mesos_py.__path__[0]) / "py.typed").is_file()


def test_an_error_or_an_amount_does_not_load_grpc():
    program = (
        "import sys; from mesos_py import InvalidValue, Resources; sys.exit('grpc' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(("given", "there"), [({}, "0"), ({FORKING: "1"}, "1")])
def test_what_is_forked_beside_grpc_starts_no_threads_of_its(given, there):
    """One start in thirty, by subprocess with `preexec_fn`, aborted before its `exec`."""
    environment = {name: text for name, text in os.environ.items() if name != FORKING}
    program = f"import mesos_py, os; print(os.environ['{FORKING}'])"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, **given},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout.strip() == there
