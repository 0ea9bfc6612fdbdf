"""A scheduler of pymesos: nothing of ours.  It says on stdout, as lines of JSON, what comes.

`python scheduler.py '{"master": "HOST:PORT", "id": "", "executor": ""}'`: with an id it comes
back as that framework, with an executor (a command) tasks go to it.  What it is to do comes on
stdin, as lines of JSON with one key: {"launch": ["name", "text"]},
{"group_launch": [["name", "text"], ...]} (for the agent's own executor), {"kill": "name"},
{"message": "text"} (to the executor), {"reconcile": null}, {"stop": null}.  At the end of
stdin it leaves as one that will come back.
"""

import json
import sys
import threading

from addict import Dict
from pymesos import MesosSchedulerDriver, Scheduler, decode_data, encode_data

ASKED = json.loads(sys.argv[1])
SIZE = {"cpus": 0.1, "mem": 32}


def say(what, value):
    sys.stdout.write(json.dumps([what, value]) + "\n")
    sys.stdout.flush()


def resources():
    return [{"name": n, "type": "SCALAR", "scalar": {"value": v}} for n, v in SIZE.items()]


def executor():
    return {
        "executor_id": {"value": "echo"},
        "name": "echo",
        "command": {"value": ASKED["executor"]},
        "resources": resources(),
    }


class Told(Scheduler):
    """Launches what it was told to with the next offer."""

    def __init__(self):
        self.lock = threading.Lock()
        self.waiting = []
        self.groups = []
        self.agent_of = {}

    def registered(self, driver, framework_id, master_info):
        say("registered", framework_id.value)

    def reregistered(self, driver, master_info):
        say("reregistered", driver.framework_id)

    def disconnected(self, driver):
        say("disconnected", None)

    def error(self, driver, message):
        say("error", message)

    def resourceOffers(self, driver, offers):
        for offer in offers:
            with self.lock:
                tasks = [self.task(offer, *each) for each in self.waiting]
                self.waiting = []
                group = self.groups.pop() if self.groups else None
            if group is not None:
                driver.acceptOffers(offer.id, [self.group(driver, offer, group)])
                continue
            # Also with no tasks: that declines it.
            driver.launchTasks(offer.id, tasks, Dict(refuse_seconds=0.1))

    def statusUpdate(self, driver, update):
        self.agent_of[update.task_id.value] = update.agent_id.value
        say(update.state, update.task_id.value)

    def frameworkMessage(self, driver, executor_id, agent_id, message):
        say("message", decode_data(message).decode())

    def task(self, offer, name, text):
        task = Dict()
        task.task_id.value = task.name = name
        task.agent_id.value = offer.agent_id.value
        task.resources = resources()
        if ASKED["executor"]:
            task.executor = executor()
            task.data = encode_data(text.encode())
        else:
            task.command.value = text
        return task

    def group(self, driver, offer, asked):
        """All for the agent's own executor."""
        operation = Dict()
        operation.type = "LAUNCH_GROUP"
        operation.launch_group.executor = {
            "type": "DEFAULT",
            "executor_id": {"value": "pod"},
            "framework_id": {"value": driver.framework_id},
            "resources": [*resources(), {"name": "disk", "type": "SCALAR", "scalar": {"value": 8}}],
        }
        tasks = [self.task(offer, *each) for each in asked]
        operation.launch_group.task_group.tasks = tasks
        return operation

    # What comes on stdin.

    def group_launch(self, driver, what):
        with self.lock:
            self.groups.append(what)

    def launch(self, driver, what):
        with self.lock:
            self.waiting.append(what)

    def kill(self, driver, name):
        driver.killTask(Dict(value=name))

    def message(self, driver, text):
        agent_id = Dict(value=next(iter(self.agent_of.values())))
        driver.sendFrameworkMessage(Dict(value="echo"), agent_id, encode_data(text.encode()))

    def reconcile(self, driver, _):
        driver.reconcileTasks([])


def main():
    framework = {
        "user": "root",
        "name": "pymesos",
        "hostname": "localhost",
        "checkpoint": True,
        "failover_timeout": 3600,
    }
    if ASKED["id"]:
        framework["id"] = {"value": ASKED["id"]}
    told = Told()
    driver = MesosSchedulerDriver(told, framework, ASKED["master"], use_addict=True)
    driver.start()
    for line in sys.stdin:
        [(what, value)] = json.loads(line).items()
        if what == "stop":
            driver.stop()
            break
        getattr(told, what)(driver, value)
    else:
        driver.stop(failover=True)
    driver.join()


main()
