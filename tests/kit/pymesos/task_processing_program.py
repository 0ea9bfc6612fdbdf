"""Task Processing of Yelp, a program that runs tasks on Apache Mesos: nothing of ours.

`python task_processing_program.py '{"master": "HOST:PORT", "pool": "batch", "retries": 1}'`: it
takes agents with this attribute only, and tries again so often what has failed (null: it is
told each state of a task as it is).  It says on stdout, as lines of JSON, what comes: events,
and what its tasks write.  On stdin: {"run": {"name": ..., "cmd": ..., ...}}, {"kill": "id"}.
At the end of stdin it goes for good.
"""

import json
import os
import sys
from threading import Lock, Thread

from task_processing.plugins.mesos import logging_executor
from task_processing.task_processor import TaskProcessor

ASKED = json.loads(sys.argv[1])
SAYING = Lock()
# Of each request for a piece of a log; five are what it gives a machine otherwise.
logging_executor.LOG_REQUEST_TIMEOUT = 60


def say(what, value):
    with SAYING:
        sys.stdout.write(json.dumps([what, value]) + "\n")
        sys.stdout.flush()


def written(task_id, line, stream):
    say(stream, line)


def tell(events):
    while True:
        event = events.get()
        if event.kind == "control":
            say("control", event.message)
        else:
            raw = event.raw
            agent = raw.offer.agent_id if event.platform_type == "staging" else raw.agent_id
            tries = event.extensions.get("RetryingExecutor/tries")
            say(event.platform_type, [event.task_id, agent.value, tries])


def main():
    processor = TaskProcessor()
    processor.load_plugin("task_processing.plugins.mesos")

    def made(provider, **config):
        return processor.executor_from_config(provider, config)

    mesos = made("mesos_task", role="*", pool=ASKED["pool"], mesos_address=ASKED["master"])
    top = mesos
    if ASKED["retries"] is not None:
        top = made("logging", downstream_executor=mesos, handler=written, format_string="{line}")
        top = made("retrying", downstream_executor=top, retries=ASKED["retries"])
    Thread(target=tell, args=[top.get_event_queue()], daemon=True).start()
    for line in sys.stdin:
        [(what, value)] = json.loads(line).items()
        if what == "run":
            top.run(mesos.TASK_CONFIG_INTERFACE(uuid="1", containerizer="MESOS", **value))
        else:
            top.kill(value)
    mesos.stop()
    # Its threads for retries and logs never end, or sleep yet; none is to be cut off in a word.
    with SAYING:
        os._exit(0)


main()
