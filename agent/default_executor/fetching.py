"""What tasks want in their sandboxes before they begin: by the agent's fetcher, without its
cache."""

from __future__ import annotations

from agent.containers.users import Users
from agent.core.effects import ContainerSpec
from agent.default_executor import description
from agent.fetcher.fetcher import Fetcher, Limits
from mesos_py.metrics import Metrics
from mesos_py.v1 import types_pb2 as pb


class Fetching:
    """For all tasks of one executor, whose sandbox is `directory`."""

    def __init__(self, directory: str, limits: Limits) -> None:
        self._fetcher = Fetcher(directory, limits, Metrics())

    async def fetch(self, task: pb.TaskInfo, user: str, users: Users) -> None:
        """Raises MesosPyError."""
        spec = ContainerSpec(
            container_id=task.task_id.value,
            framework_id="",
            executor_id="",
            agent_id="",
            user=user,
            executable="",
            argv=[],
            environment={},
            command_environment={},
            sandbox=description.sandbox_of(task),
            command=task.command,
            holders=[],
        )
        await self._fetcher.run(spec, users.find)
