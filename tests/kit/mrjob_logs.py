"""How mrjob reads what a `hadoop` command leaves: its own functions."""

import warnings

with warnings.catch_warnings():
    # It imports `pipes`, which Python 3.11 warns of.
    warnings.simplefilter("ignore", DeprecationWarning)
    from mrjob.hadoop import _HADOOP_STREAMING_JAR_RE as STREAMING_JAR
    from mrjob.logs.errors import _pick_error as pick_error
    from mrjob.logs.step import _interpret_hadoop_jar_command_stderr as read_step
    from mrjob.logs.task import _parse_task_stderr as read_task_stderr
    from mrjob.logs.task import _parse_task_syslog as read_task_syslog

__all__ = ["STREAMING_JAR", "pick_error", "read_step", "read_task_stderr", "read_task_syslog"]
