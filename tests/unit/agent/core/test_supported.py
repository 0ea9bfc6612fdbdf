"""What an agent cannot do is refused in words, before anything is started."""

import pytest

from agent.core.supported import missing_for
from mesos_py.http import jsonpb
from mesos_py.v1 import types_pb2 as pb


def task(container: str, *, executor: bool = False) -> pb.TaskInfo:
    made = pb.TaskInfo(name="t")
    info = jsonpb.loads(pb.ContainerInfo, container.encode())
    (made.executor if executor else made).container.CopyFrom(info)
    return made


@pytest.mark.parametrize("executor", [False, True])
@pytest.mark.parametrize(
    ("container", "why"),
    [
        (
            '{"type":"MESOS","mesos":{"image":{"type":"DOCKER","docker":{"name":"b"}}}}',
            "by dockerd",
        ),
        ('{"type":"MESOS","linux_info":{"share_pid_namespace":true}}', "linux_info"),
        ('{"type":"DOCKER","docker":{"image":"b"},"tty_info":{}}', "tty_info"),
        (
            '{"type":"DOCKER","docker":{"image":"b"},"volumes":[{"container_path":"/v","mode":"RW",'
            '"source":{"type":"DOCKER_VOLUME","docker_volume":{"name":"v"}}}]}',
            "no source (asked for at '/v')",
        ),
        (
            '{"type":"MESOS","volumes":[{"container_path":"/v","mode":"RW",'
            '"image":{"type":"DOCKER","docker":{"name":"b"}}}]}',
            "container.volumes[0].image: '/v': this agent mounts nothing",
        ),
        ('{"type":"DOCKER","docker":{"image":"b","volume_driver":"rexray"}}', "'rexray'"),
        (
            '{"type":"MESOS","volumes":[{"container_path":"v","host_path":"/h","mode":"RW"}]}',
            "container.volumes[0].host_path: '/h': must be a path beneath the sandbox",
        ),
        ('{"type":"MESOS","hostname":"h"}', "host names"),
    ],
)
def test_what_is_not_there_is_named(container, why, executor):
    found = missing_for(task(container, executor=executor), {"docker"})
    assert found is not None
    assert why in found


@pytest.mark.parametrize(
    "container",
    [
        '{"type":"MESOS"}',
        '{"type":"MESOS","mesos":{}}',
        '{"type":"DOCKER","docker":{"image":"b"}}',
        '{"type":"DOCKER","docker":{"image":"b"},"volumes":'
        '[{"container_path":"/v","host_path":"/h","mode":"RO"}]}',
        '{"type":"MESOS","volumes":[{"container_path":"v","host_path":"h","mode":"RW"}]}',
    ],
)
def test_what_is_there_is_not_refused(container):
    assert missing_for(task(container), {"docker"}) is None
