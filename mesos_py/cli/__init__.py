"""The `mesos-py` command: one module per sub-command or noun."""
