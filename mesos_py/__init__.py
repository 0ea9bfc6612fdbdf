"""The SDK of mesos-py: write schedulers and executors for a cluster.

A scheduler implements `Scheduler` and is run by a `SchedulerDriver` (or, in asyncio
code, iterates over a `SchedulerClient`); a custom executor implements `Executor` and is
run by an `ExecutorDriver`.  The messages are those of the Mesos v1 API.

Names are loaded when they are used: what needs only an error or an amount does not
load gRPC.

gRPC's support for `fork` is switched off (GRPC_ENABLE_FORK_SUPPORT, unless it is set): it
starts threads in the child, which abort there when descriptors are closed before the `exec`
(seen in 3 of 100 starts by subprocess with `preexec_fn`).  A child that goes on in Python
must make its own channels either way.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from mesos_py import version

if TYPE_CHECKING:
    from mesos_py.containers import docker_container
    from mesos_py.errors import (
        AlreadyExists,
        Conflict,
        InsufficientResources,
        InternalError,
        InvalidResources,
        InvalidValue,
        MasterUnreachable,
        MesosPyError,
        NotFound,
        NotLeader,
        PortInUse,
        Refused,
        TooLarge,
        Unavailable,
        UnsupportedProtocol,
    )
    from mesos_py.executor.aio import ExecutorClient
    from mesos_py.executor.api import Executor
    from mesos_py.executor.driver import ExecutorDriver
    from mesos_py.executor.environment import ExecutorEnvironment
    from mesos_py.matching import Room, match_offers, resources_of
    from mesos_py.plain_containers import plain_container
    from mesos_py.reservations import reserve, reserved_for, reserved_in, unreserve
    from mesos_py.resources import Resources
    from mesos_py.scheduler.aio import SchedulerClient
    from mesos_py.scheduler.api import Scheduler
    from mesos_py.scheduler.driver import SchedulerDriver
    from mesos_py.scheduler.needs import AskedBack, Need, asked_back
    from mesos_py.states import (
        TASK_DROPPED,
        TASK_ERROR,
        TASK_FAILED,
        TASK_FINISHED,
        TASK_GONE,
        TASK_GONE_BY_OPERATOR,
        TASK_KILLED,
        TASK_KILLING,
        TASK_LOST,
        TASK_RUNNING,
        TASK_STAGING,
        TASK_STARTING,
        TASK_UNKNOWN,
        TASK_UNREACHABLE,
        TaskState,
        is_preempted,
        is_terminal,
        short_name,
    )
    from mesos_py.tasks import (
        command_info,
        command_task,
        custom_executor,
        default_executor,
        executor_task,
        health_command,
        health_http,
        health_tcp,
        launch,
        task_status,
        uri,
    )
    from mesos_py.v1.types_pb2 import (
        AgentID,
        AgentInfo,
        Attribute,
        CheckInfo,
        CommandInfo,
        ContainerInfo,
        Environment,
        ExecutorID,
        ExecutorInfo,
        Filters,
        FrameworkID,
        FrameworkInfo,
        HealthCheck,
        InverseOffer,
        KillPolicy,
        Label,
        Labels,
        MasterInfo,
        Offer,
        OfferID,
        OperationStatus,
        Resource,
        TaskID,
        TaskInfo,
        TaskStatus,
    )
    from mesos_py.volumes import (
        create_volume,
        destroy_volume,
        disk_of_volume,
        grow_volume,
        resized_volume,
        shrink_volume,
        volume_at,
        volume_on,
        volumes_in,
    )

__version__ = version.VERSION

# Before anything of ours loads gRPC, which reads it once.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

_HOMES = {
    "containers": "docker_container",
    "errors": (
        "AlreadyExists Conflict InsufficientResources InternalError InvalidResources "
        "InvalidValue MasterUnreachable MesosPyError NotFound NotLeader PortInUse Refused "
        "TooLarge Unavailable UnsupportedProtocol"
    ),
    "executor.aio": "ExecutorClient",
    "executor.api": "Executor",
    "executor.driver": "ExecutorDriver",
    "executor.environment": "ExecutorEnvironment",
    "matching": "Room match_offers resources_of",
    "plain_containers": "plain_container",
    "reservations": "reserve reserved_for reserved_in unreserve",
    "resources": "Resources",
    "scheduler.aio": "SchedulerClient",
    "scheduler.api": "Scheduler",
    "scheduler.driver": "SchedulerDriver",
    "scheduler.needs": "AskedBack Need asked_back",
    "states": (
        "TASK_DROPPED TASK_ERROR TASK_FAILED TASK_FINISHED TASK_GONE TASK_GONE_BY_OPERATOR "
        "TASK_KILLED TASK_KILLING TASK_LOST TASK_RUNNING TASK_STAGING TASK_STARTING "
        "TASK_UNKNOWN TASK_UNREACHABLE TaskState is_preempted is_terminal short_name"
    ),
    "tasks": (
        "command_info command_task custom_executor default_executor executor_task "
        "health_command health_http health_tcp launch task_status uri"
    ),
    "volumes": (
        "create_volume destroy_volume disk_of_volume grow_volume resized_volume shrink_volume "
        "volume_at volume_on volumes_in"
    ),
    "v1.types_pb2": (
        "AgentID AgentInfo Attribute CheckInfo CommandInfo ContainerInfo Environment ExecutorID "
        "ExecutorInfo Filters FrameworkID FrameworkInfo HealthCheck InverseOffer KillPolicy Label "
        "Labels MasterInfo Offer OfferID OperationStatus Resource TaskID TaskInfo TaskStatus"
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mesos_py' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"mesos_py.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "TASK_DROPPED",
    "TASK_ERROR",
    "TASK_FAILED",
    "TASK_FINISHED",
    "TASK_GONE",
    "TASK_GONE_BY_OPERATOR",
    "TASK_KILLED",
    "TASK_KILLING",
    "TASK_LOST",
    "TASK_RUNNING",
    "TASK_STAGING",
    "TASK_STARTING",
    "TASK_UNKNOWN",
    "TASK_UNREACHABLE",
    "AgentID",
    "AgentInfo",
    "AlreadyExists",
    "AskedBack",
    "Attribute",
    "CheckInfo",
    "CommandInfo",
    "Conflict",
    "ContainerInfo",
    "Environment",
    "Executor",
    "ExecutorClient",
    "ExecutorDriver",
    "ExecutorEnvironment",
    "ExecutorID",
    "ExecutorInfo",
    "Filters",
    "FrameworkID",
    "FrameworkInfo",
    "HealthCheck",
    "InsufficientResources",
    "InternalError",
    "InvalidResources",
    "InvalidValue",
    "InverseOffer",
    "KillPolicy",
    "Label",
    "Labels",
    "MasterInfo",
    "MasterUnreachable",
    "MesosPyError",
    "Need",
    "NotFound",
    "NotLeader",
    "Offer",
    "OfferID",
    "OperationStatus",
    "PortInUse",
    "Refused",
    "Resource",
    "Resources",
    "Room",
    "Scheduler",
    "SchedulerClient",
    "SchedulerDriver",
    "TaskID",
    "TaskInfo",
    "TaskState",
    "TaskStatus",
    "TooLarge",
    "Unavailable",
    "UnsupportedProtocol",
    "__version__",
    "asked_back",
    "command_info",
    "command_task",
    "create_volume",
    "custom_executor",
    "default_executor",
    "destroy_volume",
    "disk_of_volume",
    "docker_container",
    "executor_task",
    "grow_volume",
    "health_command",
    "health_http",
    "health_tcp",
    "is_preempted",
    "is_terminal",
    "launch",
    "match_offers",
    "plain_container",
    "reserve",
    "reserved_for",
    "reserved_in",
    "resized_volume",
    "resources_of",
    "short_name",
    "shrink_volume",
    "task_status",
    "unreserve",
    "uri",
    "volume_at",
    "volume_on",
    "volumes_in",
]
