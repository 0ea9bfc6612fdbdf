"""An executor of pymesos: its tasks run until they are killed, and messages come back.

A task says with its data how it ends: "finish" at once, "hold" not by itself.
"""

import sys

from addict import Dict
from pymesos import Executor, MesosExecutorDriver, decode_data, encode_data


def report(driver, task_id, state):
    status = Dict()
    status.task_id = task_id
    status.state = state
    driver.sendStatusUpdate(status)


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Echo(Executor):
    """What it says goes into its sandbox."""

    def registered(self, driver, executor_info, framework_info, agent_info):
        say("registered")

    def reregistered(self, driver, agent_info):
        say("reregistered")

    def disconnected(self, driver):
        say("disconnected")

    def launchTask(self, driver, task):
        report(driver, task.task_id, "TASK_RUNNING")
        if decode_data(task.data) == b"finish":
            report(driver, task.task_id, "TASK_FINISHED")

    def killTask(self, driver, task_id):
        report(driver, task_id, "TASK_KILLED")

    def frameworkMessage(self, driver, message):
        driver.sendFrameworkMessage(encode_data(decode_data(message).upper()))

    def shutdown(self, driver):
        say("shutdown")


driver = MesosExecutorDriver(Echo(), use_addict=True)
driver.run()
