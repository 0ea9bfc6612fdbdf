"""A scheduler of mesoshttp: nothing of ours.  As scheduler.py beside it, for what that library has.

`python mesoshttp_scheduler.py '{"master": "URL", "id": ""}'`: with an id it comes back as that
framework.  On stdin: {"launch": ["name", "text"]}, {"kill": "name"}, {"reconcile": null},
{"stop": null}.  At the end of stdin it leaves as one that will come back.
"""

import json
import sys
import threading
from typing import Any

from mesoshttp.client import MesosClient

ASKED = json.loads(sys.argv[1])
SIZE = {"cpus": 0.1, "mem": 32}
# It asks for the next master at once: ten seconds are what it waits otherwise.
MesosClient.WAIT_TIME = 0.5


def say(what, value):
    sys.stdout.write(json.dumps([what, value]) + "\n")
    sys.stdout.flush()


def resources():
    return [{"name": n, "type": "SCALAR", "scalar": {"value": v}} for n, v in SIZE.items()]


class Told:
    """Launches what it was told to with the next offer."""

    def __init__(self):
        self.lock = threading.Lock()
        self.waiting = []
        self.agent_of = {}
        self.driver: Any = None
        client = self.client = MesosClient(
            [ASKED["master"]], frameworkId=ASKED["id"] or None, max_reconnect=1000
        )
        client.set_failover_timeout(3600)
        client.add_capability("PARTITION_AWARE")
        client.on(MesosClient.SUBSCRIBED, self.subscribed)
        client.on(MesosClient.OFFERS, self.offers)
        client.on(MesosClient.UPDATE, self.update)
        client.on(MesosClient.ERROR, lambda message: say("error", message))
        client.on(MesosClient.DISCONNECTED, lambda _: say("disconnected", None))

    def subscribed(self, driver):
        self.driver = driver
        say("registered", self.client.frameworkId)

    def offers(self, offers):
        for offer in offers:
            agent_id = offer.get_offer()["agent_id"]
            with self.lock:
                tasks = [self.task(agent_id, *each) for each in self.waiting]
                self.waiting = []
            if tasks:
                offer.accept(tasks, {"filters": {"refuse_seconds": 0.1}})
            else:
                offer.decline({"filters": {"refuse_seconds": 0.1}})

    def update(self, update):
        status = update["status"]
        self.agent_of[status["task_id"]["value"]] = status["agent_id"]["value"]
        say(status["state"], status["task_id"]["value"])

    def task(self, agent_id, name, text):
        return {
            "name": name,
            "task_id": {"value": name},
            "agent_id": agent_id,
            "resources": resources(),
            "command": {"value": text},
        }

    # What comes on stdin.

    def launch(self, what):
        with self.lock:
            self.waiting.append(what)

    def kill(self, name):
        self.driver.kill(self.agent_of[name], name)

    def reconcile(self, names):
        self.driver.reconcile([{"task_id": {"value": name}} for name in names])


def main():
    told = Told()
    loop = threading.Thread(target=told.client.register, daemon=True)
    loop.start()
    for line in sys.stdin:
        [(what, value)] = json.loads(line).items()
        if what == "stop":
            # Nobody is to come back when the stream ends.
            told.client.tearDown()
            told.driver.tearDown()
            loop.join()
            break
        getattr(told, what)(value)


main()
