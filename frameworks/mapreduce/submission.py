"""A job made of what was asked for: its record, and what is shipped with it.

What tasks need is copied to the job's `staging` directory before the job is submitted, so a
file that is changed afterwards changes nothing.  Files that are on a file system of the
cluster already (they have a scheme, as `hdfs:///a`) stay where they are.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce import names
from frameworks.mapreduce.data import files
from frameworks.mapreduce.data.keys import separator
from frameworks.mapreduce.data.partitions import Partitioner
from frameworks.mapreduce.data.parts import output_codec
from frameworks.mapreduce.data.segments import codec_of
from frameworks.mapreduce.job import JobSpec, Program, Shipped
from frameworks.mapreduce.streaming import Given, Options
from mesos_py.errors import InvalidValue, MesosPyError, NotFound

_CHUNK: Final = 1 << 20
_FILES: Final = "files"


@dataclass(frozen=True, slots=True)
class Programs:
    """What maps, combines and reduces; `None`: nothing."""

    mapper: Program
    combiner: Program | None
    reducer: Program | None


def commands(options: Options) -> Programs:
    """The programs as commands (see `command`)."""
    shipped = {each.name for each in options.shipped}
    combiner, reducer = options.combiner, options.reducer
    return Programs(
        command("-mapper", options.mapper, shipped),
        command("-combiner", combiner, shipped) if combiner is not None else None,
        command("-reducer", reducer, shipped) if reducer is not None else None,
    )


def command(option: str, text: str, shipped: Set[str]) -> Program:
    """Raises InvalidValue for what cannot be parted into words, and for a file of this
    directory that tasks will not have (`shipped`: the names that they will)."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidValue(option, text, f"cannot be parted into words: {error}") from None
    if not words:
        raise InvalidValue(option, text, "must not be empty")
    path = PurePosixPath(words[0])
    here = "/" in words[0] or shutil.which(words[0]) is None
    if here and not path.is_absolute() and path.parts[0] not in shipped and Path(path).is_file():
        raise InvalidValue(
            option,
            text,
            f"is a file of this directory, which tasks do not have: "
            f"ship it (-file {shlex.quote(words[0])}) and call it {path.name}",
        )
    return Program(command=text)


def new_job_id(now_s: float | None = None) -> str:
    """One that no other client makes: by the time, and by chance."""
    at = time.gmtime(time.time() if now_s is None else now_s)
    return names.job_id(f"{time.strftime('%Y%m%d%H%M%S', at)}{secrets.randbelow(10**6):06}", 1)


def job_of(
    options: Options,
    programs: Programs,
    *,
    job_id: str,
    user: str,
    staging: str,
    now_s: float,
) -> JobSpec:
    """The job's record; nothing is written.

    staging: URL of a directory for the job's own.
    Raises InvalidValue for paths that mean nothing, for a file system that cannot be used, and
    for properties that contradict each other.
    """
    conf = dict(options.conf)
    inputs = tuple(files.absolute(each, conf, "-input") for each in options.inputs)
    output = files.absolute(options.output, conf, "-output").rstrip("/")
    for field, url in [*(("-input", each) for each in inputs), ("-output", output)]:
        files.resolve(url, conf, field)
    name = properties.JOB_NAME.of(conf) or _default_name(options, programs)
    spec = JobSpec(
        job_id=job_id,
        name=name,
        user=user,
        inputs=inputs,
        output=output,
        mapper=programs.mapper,
        combiner=programs.combiner,
        reducer=programs.reducer,
        reduces=options.reduces,
        partitioner=options.partitioner,
        input_format=options.input_format,
        output_format=options.output_format,
        lazy_output=options.lazy_output,
        env=dict(options.env),
        conf=conf,
        staging=files.absolute(staging, conf, "staging"),
        submitted_s=now_s,
    )
    # What only tasks look at would else be told by each of them.
    Partitioner.of(spec)
    separator(properties.REDUCE_INPUT_SEPARATOR, conf)
    output_codec(conf)
    codec_of(spec)
    return spec


def _default_name(options: Options, programs: Programs) -> str:
    if not programs.mapper.command:
        return "mapreduce"
    words = shlex.split(programs.mapper.command)
    shipped = {each.name for each in options.shipped}
    # `python3 wc.py --mapper` is known as wc.py.
    named = next((word for word in words if word in shipped), words[0])
    return PurePosixPath(named).name or "mapreduce"


# ---- Shipping ------------------------------------------------------------------------------


def ship(spec: JobSpec, given: Sequence[Given]) -> JobSpec:
    """Copy files to `spec.staging`; the record that says where they are.

    May be done again after it has failed.  Raises NotFound, InvalidValue and, for what the
    file systems say, MesosPyError; each names the option and the file.
    """
    if not given:
        return spec
    shipped = tuple(_shipped(each, spec, number) for number, each in enumerate(given))
    return msgspec.structs.replace(spec, shipped=shipped)


def unship(spec: JobSpec) -> None:
    """Remove what `ship` has left of a job that was not accepted, or has ended."""
    fs, path = files.resolve(spec.staging, spec.conf, "staging")
    if fs.exists(path):
        fs.rm(path, recursive=True)


def _shipped(each: Given, spec: JobSpec, number: int) -> Shipped:
    source, kind = _found(each, spec.conf)
    directory = kind == "directory"
    if directory and each.archive:
        raise InvalidValue(each.option, each.source, "is a directory, not an archive")
    # Whatever is shipped may be run: as Hadoop has it, and programs count on that.
    archive = each.archive or directory
    if _is_shared(each.source) and not directory:
        url = files.absolute(each.source, spec.conf, each.option)
    else:
        # The number keeps two files apart that have one name at their sources; the name
        # keeps the extension, which says how an archive is packed.
        base = PurePosixPath(each.source.rstrip("/")).name + (".tar" if directory else "")
        url = f"{spec.staging}/{_FILES}/{number}/{base}"
        try:
            _copy(source, url, spec.conf, directory=directory)
        except MesosPyError:
            raise
        except Exception as error:
            raise MesosPyError(
                f"{each.option}: {each.source}: cannot be shipped to {url}: {files.why(error)}"
            ) from error
    return Shipped(url=url, name=each.name, archive=archive, executable=not archive)


def _found(each: Given, conf: Mapping[str, str]) -> tuple[tuple[Any, str], str]:
    fs, path = files.resolve(each.source, conf, each.option)
    try:
        entry = files.entry(fs, path)
    except Exception as error:
        raise MesosPyError(
            f"{each.option}: {each.source}: cannot be read: {files.why(error)}"
        ) from error
    if entry is None:
        raise NotFound(f"file of {each.option}", each.source, "is not there")
    if entry.kind == "other":
        raise InvalidValue(each.option, each.source, "is neither a file nor a directory")
    return (fs, path), entry.kind


def _is_shared(source: str) -> bool:
    """Whether it is on a file system of the cluster by what it is called."""
    return files.scheme_of(source) != "file"


def _copy(source: tuple[Any, str], url: str, conf: Mapping[str, str], *, directory: bool) -> None:
    fs, path = files.resolve(url, conf, "staging")
    fs.makedirs(fs._parent(path), exist_ok=True)
    with fs.open(path, "wb") as target:
        if directory:
            _pack(*source, target)
            return
        with source[0].open(source[1], "rb") as file:
            for chunk in _chunks(file):
                target.write(chunk)


def _chunks(file: Any) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _pack(fs: Any, path: str, target: Any) -> None:
    """A directory as a tar of what is in it."""
    root = path.rstrip("/")
    with tarfile.open(fileobj=target, mode="w|") as tar:
        for name in sorted(fs.find(root)):
            info = tarfile.TarInfo(str(name)[len(root) :].lstrip("/"))
            info.size = int(fs.info(name).get("size") or 0)
            info.mode = 0o755
            with fs.open(name, "rb") as file:
                tar.addfile(info, file)
