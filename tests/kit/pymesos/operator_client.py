"""The operator client of pymesos, of a master or an agent: nothing of ours.

`python operator_client.py master|agent HOST:PORT`.  It says on stdout, as lines of JSON, what
happens, and what is answered to what comes on stdin: ["getTasks"], ["getMetrics", 1000000000].
"""

import json
import sys

from pymesos import MesosOperatorAgentDriver, MesosOperatorMasterDriver, OperatorMaster


def say(what, value):
    sys.stdout.write(json.dumps([what, value]) + "\n")
    sys.stdout.flush()


class Seen(OperatorMaster):
    """Says each event."""

    def taskAdded(self, task_info):
        say("taskAdded", task_info["task_id"]["value"])

    def taskUpdated(self, task_info):
        say(task_info["state"], task_info["status"]["task_id"]["value"])

    def frameworkAdded(self, framework_info):
        say("frameworkAdded", framework_info["framework_info"]["name"])

    def frameworkRemoved(self, framework_info):
        say("frameworkRemoved", framework_info["name"])

    def agentAdded(self, agent_info):
        say("agentAdded", agent_info["agent_info"]["hostname"])

    def agentRemoved(self, agent_info):
        say("agentRemoved", agent_info)


class Driver(MesosOperatorMasterDriver):
    """Says when it hears what happens."""

    def on_subscribed(self, info):
        super().on_subscribed(info)
        say("subscribed", None)


def main():
    kind, address = sys.argv[1:]
    if kind == "master":
        driver = Driver(address, Seen())
        driver.start()
    else:
        driver = MesosOperatorAgentDriver(address)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        say(method, getattr(driver, method)(*arguments))
    if kind == "master":
        driver.stop()
        driver.join()


main()
