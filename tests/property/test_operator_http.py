"""Whatever is sent to the operators' endpoints: an answer that is no fault of ours, with a
reason, and a cluster whose account is in order."""

import asyncio
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from mesos_py.v1 import operator_pb2 as op
from tests.kit.master_http import JSON, http_master

KINDS = sorted(set(op.Call.Type.keys()) - {"SUBSCRIBE"})
NAMES = [
    *sorted(field.name for field in op.Call.DESCRIPTOR.fields),
    *("agent_id", "framework_id", "value", "schedule", "windows", "machine_ids", "hostname"),
    *("unavailability", "start", "duration", "nanoseconds", "machines", "weight_infos", "role"),
    *("weight", "quota_configs", "limits", "guarantees", "cpus", "level", "max_grace_period"),
    *("seconds", "changes", "policy", "agents", "task_id", "timeout_seconds", "force"),
]
PATHS = [
    *("/state", "/state-summary", "/slaves", "/frameworks", "/tasks", "/roles", "/flags"),
    *("/metrics/snapshot", "/metrics", "/weights", "/quota", "/quota/a", "/teardown"),
    *("/maintenance/schedule", "/maintenance/status", "/machine/down", "/machine/up", "/api/v1"),
]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from(["host1", "a/b", "*", "1e400", "Infinity", "-1", ""]),
)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


async def _ask(method, path, headers, body):
    async with http_master() as master:
        master.world.agent("host1")
        master.world.framework("it").start("t1")
        head, answer = await master.ask(path, body, headers, method)
        assert 200 <= head.status < 500 or head.status == 501, answer
        if head.status >= 400:
            assert answer
        assert master.server.failures == 0


@settings(max_examples=settings().max_examples * 3 // 2)
@given(kind=st.sampled_from(KINDS), members=st.dictionaries(st.sampled_from(NAMES), trees))
def test_any_call_as_json(kind, members):
    members = {kind.lower(): members, **members, "type": kind}
    asyncio.run(_ask("POST", "/api/v1", JSON, json.dumps(members).encode()))


@given(st.one_of(st.binary(max_size=60), trees.map(lambda tree: json.dumps(tree).encode())))
def test_any_body_in_any_form(body):
    for media in ("application/json", "application/x-protobuf"):
        asyncio.run(_ask("POST", "/api/v1", {"Content-Type": media}, body))


@settings(max_examples=settings().max_examples * 3 // 2)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    path=st.sampled_from(PATHS),
    query=st.dictionaries(
        st.sampled_from(["jsonp", "limit", "offset", "order", "slave_id", "timeout"]),
        st.sampled_from(["", "-1", "1", "abc", "%00", "%ff", "99999999999999999999", "asc"]),
        max_size=3,
    ),
    body=st.one_of(st.just(b""), trees.map(lambda tree: json.dumps(tree).encode())),
)
def test_any_question_to_the_older_endpoints(method, path, query, body):
    text = "&".join(f"{name}={value}" for name, value in query.items())
    asyncio.run(_ask(method, f"{path}?{text}", {}, body))
