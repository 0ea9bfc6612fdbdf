"""deploy/docker-compose.yml with a dockerd of the tests' own and images that need no registry."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final, Self

from tests.kit import images
from tests.kit.dockerd import PrivateDockerd

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
ZOOKEEPERS: Final = ("zk1", "zk2", "zk3")
MASTERS: Final = ("master1", "master2", "master3")
_LIMIT_S: Final = 240


class Compose:
    """The file's services as one project; the end removes all of it."""

    def __init__(self, dockerd: PrivateDockerd, directory: Path) -> None:
        self.dockerd = dockerd
        # Where no official image can be had: the stand-in needs this machine's Java.
        mounts = {name: {"volumes": images.zookeeper_mounts()} for name in ZOOKEEPERS}
        override = directory / "here.json"
        override.write_text(json.dumps({"services": mounts}))
        self._argv = ["docker-compose", "--project-name", directory.name, "--ansi", "never"]
        self._argv += ["--file", str(DEPLOY / "docker-compose.yml"), "--file", str(override)]
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "DOCKER_HOST": f"unix://{dockerd.socket}",
            "MESOS_PY_IMAGE": images.MESOS_PY,
            "ZOOKEEPER_IMAGE": images.ZOOKEEPER,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.run("down", "--volumes", "--timeout", "20")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """docker-compose with these words, in the background."""
        return subprocess.Popen(
            [*self._argv, *words],
            env=self._env,
            cwd=DEPLOY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> str:
        """docker-compose with these words, to its end; what it prints."""
        with self.start(*words) as process:
            out, errors = process.communicate(timeout=_LIMIT_S)
        assert process.returncode == 0, f"{words}: {out}{errors}"
        return out

    def up(self, agents: int) -> None:
        self.run("up", "--detach", "--no-build", "--scale", f"agent={agents}")

    # ---- Containers ------------------------------------------------------------------

    def containers(self, service: str) -> list[dict[str, Any]]:
        """Of a service, as docker describes them, in the order of their numbers."""
        label = f"com.docker.compose.service={service}"
        rows = self.dockerd.client.containers(all=True, filters={"label": [label]})
        found = [self.dockerd.client.inspect_container(row["Id"]) for row in rows]
        number = "com.docker.compose.container-number"
        return sorted(found, key=lambda each: int(each["Config"]["Labels"][number]))

    def inside(self, docker_id: str, *words: str) -> tuple[int, str]:
        """Run something in a container: its exit code and what it prints."""
        client = self.dockerd.client
        made = client.exec_create(docker_id, list(words))
        printed = client.exec_start(made["Id"]).decode()
        return int(client.exec_inspect(made["Id"])["ExitCode"]), printed
