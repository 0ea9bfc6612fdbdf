"""The `mesos` command of avmesos-cli, given one name that a module of it forgets to import."""

import runpy

import avmesos
import avmesos.cli.mesos
import avmesos.http

# Else `task exec` and `task attach` end with a NameError.
avmesos.cli.mesos.mesos = avmesos
runpy.run_module("avmesos.cli.mesos-cli", run_name="__main__", alter_sys=True)
