"""Logs of failed attempts in the directories in which programs look for YARN's.

mrjob, for one, tells its user the cause from `userlogs/<application>/<attempt>/stderr`, if
there is a `syslog` beside it that tells of a failure as Java would.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from frameworks.mapreduce.core.views import AttemptView, TaskView
from mesos_py import logs

_SPLIT: Final = re.compile(r"(\S+) bytes (\d+) to (\d+)")
_log = logs.get("mapreduce.hadoop")


class TaskLogs:
    """Below `directory`, which is made when there is something to write."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, application: str, task: TaskView, attempt: AttemptView) -> None:
        """Of an attempt that has failed; what cannot be written is only warned of."""
        failure = attempt.failure
        if failure is None:
            return
        where = self._directory / "userlogs" / application / attempt.attempt
        try:
            where.mkdir(parents=True, exist_ok=True)
            text = commands_first(failure.details.rstrip() or failure.message)
            (where / "stderr").write_text(f"{text}\n", encoding="utf-8", errors="surrogateescape")
            (where / "syslog").write_text(
                _syslog(failure.message, failure.where or task.where, attempt),
                encoding="utf-8",
                errors="surrogateescape",
            )
        except OSError as error:
            _log.warning("log of a task not kept", path=str(where), error=str(error))


def commands_first(text: str) -> str:
    """Lines of `sh -x` before the others: mrjob shows what comes after the last of these."""
    lines = text.split("\n")
    traced = [line for line in lines if line.startswith("+ ")]
    return "\n".join([*traced, *(line for line in lines if not line.startswith("+ "))])


def _syslog(message: str, where: str, attempt: AttemptView) -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(attempt.ended_s or time.time())) + ",000"
    lines = []
    if found := _SPLIT.fullmatch(where):
        url, start, end = found[1], int(found[2]), int(found[3])
        lines.append(f"{at} INFO mapred.MapTask: Processing split: {url}:{start}+{end - start}")
    lines.append(f"{at} ERROR mapred.YarnChild: {' '.join(message.split())}")
    # Only a message with a line of this form counts as a failure.
    lines.append(f"\tat {attempt.attempt} on {attempt.hostname or 'this machine'}(Native Method)")
    return "\n".join(lines) + "\n"
