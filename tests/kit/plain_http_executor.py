"""An executor for Apache Mesos in plain Python: nothing of ours, found by its environment.

It runs as a process of its own: `python -S plain_http_executor.py`.  What it does with a
task is in the task's data: "finish", "hold" (RUNNING until killed).  A message comes
back the other way round.  It waits for an
agent that has gone, as MESOS_CHECKPOINT says, and tells it what was not acknowledged.
"""

import base64
import contextlib
import http.client
import json
import os
import sys
import time
import uuid
from pathlib import Path

ENDPOINT = os.environ["MESOS_AGENT_ENDPOINT"]
IDS = {
    "framework_id": {"value": os.environ["MESOS_FRAMEWORK_ID"]},
    "executor_id": {"value": os.environ["MESOS_EXECUTOR_ID"]},
}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
# What no acknowledgement has come for.
tasks: dict = {}
updates: dict = {}


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def post(call):
    connection = http.client.HTTPConnection(ENDPOINT, timeout=120)
    connection.request("POST", "/api/v1/executor", json.dumps({**IDS, **call}), HEADERS)
    return connection, connection.getresponse()


def report(task_id, state):
    status = {"task_id": task_id, "state": state, "source": "SOURCE_EXECUTOR"}
    status["uuid"] = base64.b64encode(uuid.uuid4().bytes).decode()
    updates[status["uuid"]] = {"status": status}
    send(status)


def send(status):
    # What does not arrive is said again when the agent is back.
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection, answer = post({"type": "UPDATE", "update": {"status": status}})
        answer.read()
        connection.close()


def handle(event):
    say(event["type"])
    if event["type"] == "LAUNCH":
        task = event["launch"]["task"]
        tasks[task["task_id"]["value"]] = task
        report(task["task_id"], "TASK_RUNNING")
        if base64.b64decode(task.get("data", "")) == b"finish":
            report(task["task_id"], "TASK_FINISHED")
    elif event["type"] == "KILL":
        report(event["kill"]["task_id"], "TASK_KILLED")
    elif event["type"] == "ACKNOWLEDGED":
        updates.pop(event["acknowledged"]["uuid"], None)
        tasks.pop(event["acknowledged"]["task_id"]["value"], None)
    elif event["type"] == "MESSAGE":
        data = base64.b64decode(event["message"]["data"])[::-1]
        connection, answer = post(
            {"type": "MESSAGE", "message": {"data": base64.b64encode(data).decode()}}
        )
        answer.read()
        connection.close()
    elif event["type"] == "SHUTDOWN":
        sys.exit(0)


def records(answer):
    while line := answer.readline():
        yield json.loads(answer.read(int(line)))


def converse():
    subscribe = {
        "unacknowledged_tasks": list(tasks.values()),
        "unacknowledged_updates": list(updates.values()),
    }
    connection, answer = post({"type": "SUBSCRIBE", "subscribe": subscribe})
    if answer.status == 200:
        for event in records(answer):
            handle(event)
    connection.close()


def main():
    say(json.dumps(dict(os.environ)))
    say(f"{Path.cwd()} {os.getpgrp() == os.getpid()} {os.getsid(0) == os.getpid()}")
    while True:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            converse()
        if os.environ["MESOS_CHECKPOINT"] != "1":
            sys.exit(1)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
