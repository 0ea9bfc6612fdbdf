"""What the image is built from, and what it sets, fits the project."""

import re
import tomllib
from pathlib import Path

from docker.utils.build import exclude_paths

from agent.flags import ENV_PREFIX as AGENT_PREFIX
from agent.flags import AgentFlags
from master.flags import ENV_PREFIX as MASTER_PREFIX
from master.flags import MasterFlags
from mesos_py.config import load

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


def context() -> set[str]:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    sent: set[str] = exclude_paths(str(ROOT), patterns, dockerfile="deploy/Dockerfile")
    return sent


def test_the_context_has_what_is_installed_and_nothing_else():
    sent = context()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["setuptools"]["packages"]["find"]["include"]
    expected = {name.rstrip("*") for name in packages}
    expected |= {"LICENSE", "README.md", "constraints.txt", "pyproject.toml"}
    # Docker adds the last two by itself.
    assert {name.split("/")[0] for name in sent} == expected | {"deploy", ".dockerignore"}
    assert {"deploy/entrypoint.sh", "master/py.typed", "mesos_py/v1/types_pb2.py"} <= sent
    assert not [name for name in sent if "__pycache__" in name]


def test_what_the_image_sets_are_flags():
    variables = dict(re.findall(r"^ +(MESOS_PY_\w+)=(\S+)", DOCKERFILE, re.MULTILINE))
    needed = {f"{AGENT_PREFIX}MASTER": "m:1", f"{MASTER_PREFIX}ADVERTISE_IP": "192.0.2.1"}
    environ = {**variables, **needed}
    master = load(MasterFlags, MASTER_PREFIX, environ=environ)
    agent = load(AgentFlags, AGENT_PREFIX, environ=environ)
    assert (master.ip, agent.ip) == ("0.0.0.0", "0.0.0.0")
    # Where the health check looks.
    assert f":{master.metrics_port}/metrics" in DOCKERFILE
    assert master.metrics_port == agent.http_port
    known = {MASTER_PREFIX + n.upper() for n in master.__dataclass_fields__}
    known |= {AGENT_PREFIX + n.upper() for n in agent.__dataclass_fields__}
    assert variables.keys() <= known
