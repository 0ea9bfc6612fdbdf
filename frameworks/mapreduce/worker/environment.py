"""The environment of programs, as Hadoop Streaming gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from frameworks.mapreduce import conf
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.names import AttemptName
from frameworks.mapreduce.work import Work

# The kernel takes no string of 128 KB and, by default, 2 MB in all (MAX_ARG_STRLEN, ARG_MAX).
MAX_VALUE: Final = 64 * 1024
MAX_ALL: Final = 1024 * 1024

_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_]")

# Older names of what describes a task; those of properties are in `conf`.
_OLD: Final = {
    "mapreduce.job.id": ("mapred.job.id",),
    "mapreduce.job.user.name": ("user.name",),
    "mapreduce.job.local.dir": ("job.local.dir",),
    "mapreduce.job.maps": ("mapred.map.tasks",),
    "mapreduce.job.reduces": ("mapred.reduce.tasks",),
    "mapreduce.job.name": ("mapred.job.name",),
    "mapreduce.task.id": ("mapred.tip.id",),
    "mapreduce.task.attempt.id": ("mapred.task.id",),
    "mapreduce.task.ismap": ("mapred.task.is.map",),
    "mapreduce.task.partition": ("mapred.task.partition",),
    "mapreduce.task.output.dir": ("mapred.work.output.dir",),
    "mapreduce.map.input.file": ("map.input.file",),
    "mapreduce.map.input.start": ("map.input.start",),
    "mapreduce.map.input.length": ("map.input.length",),
    "mapreduce.input.fileinputformat.inputdir": ("mapred.input.dir",),
    "mapreduce.output.fileoutputformat.outputdir": ("mapred.output.dir",),
}


def task_properties(
    spec: JobSpec, work: Work, name: AttemptName, *, local_dir: str
) -> dict[str, str]:
    """The job's properties and those of this attempt, by present names.  Of a map whose
    split has several files, the first one is the input file."""
    found = dict(spec.conf)
    found |= {
        "mapreduce.job.id": spec.job_id,
        "mapreduce.job.name": spec.name,
        "mapreduce.job.user.name": spec.user,
        "mapreduce.job.local.dir": local_dir,
        "mapreduce.job.reduces": str(spec.reduces),
        "mapreduce.input.fileinputformat.inputdir": ",".join(spec.inputs),
        "mapreduce.output.fileoutputformat.outputdir": spec.output,
        "mapreduce.task.id": name.task_id,
        "mapreduce.task.attempt.id": str(name),
        "mapreduce.task.ismap": "true" if name.kind == "map" else "false",
        "mapreduce.task.partition": str(name.task),
        "mapreduce.task.output.dir": work.out.rpartition("/")[0] or spec.output,
    }
    if work.maps:
        found["mapreduce.job.maps"] = str(work.maps)
    if work.split is not None and work.split.pieces:
        piece = work.split.pieces[0]
        length = piece.length if piece.length >= 0 else work.split.size
        found |= {
            "mapreduce.map.input.file": piece.url,
            "mapreduce.map.input.start": str(piece.start),
            "mapreduce.map.input.length": str(length),
        }
    return found


def of_program(
    given: Mapping[str, str],
    properties: Mapping[str, str],
    env: Mapping[str, str],
    *,
    cwd: str,
    tmp: str,
) -> dict[str, str]:
    """given: the worker's own environment; env: what the job sets (-cmdenv), which wins.

    Each property is there by all its names, with `_` for what is neither letter nor digit.
    What the kernel would not take is left out.
    """
    shown: dict[str, str] = {}
    room = MAX_ALL
    for name, text in properties.items():
        for known in (name, *_older(name)):
            size = len(known) + len(text.encode("utf-8", "surrogateescape")) + 2
            if size <= MAX_VALUE and size <= room and "\0" not in text:
                shown[_NOT_IN_NAME.sub("_", known)] = text
                room -= size
    found = {**given, **shown, "TMPDIR": tmp, "PWD": cwd, **env}
    found["PATH"] = f"{cwd}:{found.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    return found


def _older(name: str) -> tuple[str, ...]:
    declared = conf.ALL.get(name)
    old = declared.old if declared is not None else ()
    return (*old, *(text for text in _OLD.get(name, ()) if text not in old))


__all__ = ["of_program", "task_properties"]
