"""What all attempts of a job share on a worker: its record and the files that go with it."""

from __future__ import annotations

import fcntl
import os
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from frameworks.mapreduce import records
from frameworks.mapreduce.data import files
from frameworks.mapreduce.job import JobSpec, Shipped
from frameworks.mapreduce.worker import failures
from frameworks.mapreduce.worker.failures import AttemptFailed, Blame
from frameworks.mapreduce.worker.place import Place, removed
from frameworks.runtime import exits
from frameworks.runtime.processes import forked

_SPEC: Final = "job.json"
_FILES: Final = "files"


class _Trouble(msgspec.Struct):
    blame: Blame
    message: str


def had(place: Place, job_id: str, job_url: str, log: int) -> JobSpec:
    """The job's record; its files are there, too.  Raises AttemptFailed.

    Whoever of a job's attempts comes first fetches all, others wait for it.  It is done in a
    process of its own, since file systems may start threads, after which this one could not be
    forked.
    """
    directory = place.job(job_id)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with place.job_lock(job_id).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            spec = directory / _SPEC
            if not spec.exists():
                _fetched_elsewhere(directory, job_url, log)
            return records.decode(JobSpec, spec.read_bytes(), "job.json")
    except OSError as error:
        raise failures.of(error, "place", f"having the files of {job_id}") from error


def linked(place: Place, spec: JobSpec, cwd: Path) -> None:
    """Each shipped file under its name in `cwd`.  Raises AttemptFailed."""
    shared = place.job(spec.job_id) / _FILES
    for one in spec.shipped:
        target = cwd / one.name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(shared / one.name)
        except FileExistsError:
            raise AttemptFailed("job", f"shipped file: {one.name}: is there twice") from None
        except OSError as error:
            raise failures.of(error, "place", f"linking {one.name}") from error


def _fetched_elsewhere(directory: Path, job_url: str, log: int) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as report:
        try:
            child = forked(
                lambda: _fetch(directory, job_url, write), fds=(write,), std=(log, log, log)
            )
        finally:
            os.close(write)
        try:
            said = report.read()
            code = child.ended(wait=True) or 0
        finally:
            child.kill()
    if said:
        trouble = msgspec.json.decode(said, type=_Trouble)
        raise AttemptFailed(trouble.blame, trouble.message)
    if code:
        raise AttemptFailed("place", f"fetching the job's files {exits.exit_worded(code)}")


def _fetch(directory: Path, job_url: str, report: int) -> int:
    try:
        _fetch_all(directory, job_url)
    except Exception as error:
        failed = failures.of(error, "place", f"reading {job_url}")
        os.write(report, msgspec.json.encode(_Trouble(failed.blame, failed.message)))
        return 1
    return 0


def _fetch_all(directory: Path, job_url: str) -> None:
    fs, path = files.resolve(job_url, {})
    data = fs.cat_file(path)
    spec = records.decode(JobSpec, data, "job.json")
    removed(directory)
    shared = directory / _FILES
    shared.mkdir(parents=True)
    for one in spec.shipped:
        try:
            _fetch_one(one, shared, spec.conf)
        except Exception as error:
            blame: Blame = "place" if isinstance(error, OSError) else "job"
            if isinstance(error, FileNotFoundError):
                # What was shipped is not where it was put: it will be nowhere.
                blame = "job"
            raise failures.of(error, blame, f"shipping {one.url} as {one.name}") from error
    # Last, and in one step: it says that all is there.
    interim = directory / f"{_SPEC}.part"
    interim.write_bytes(data)
    interim.rename(directory / _SPEC)


def _fetch_one(shipped: Shipped, shared: Path, conf: Mapping[str, str]) -> None:
    target = shared / shipped.name
    if not target.resolve().is_relative_to(shared.resolve()):
        raise AttemptFailed("job", f"shipped file: {shipped.name}: leads out of the directory")
    target.parent.mkdir(parents=True, exist_ok=True)
    fs, path = files.resolve(shipped.url, conf)
    if not shipped.archive:
        fs.get_file(path, str(target))
        with target.open("rb") as opened:
            is_script = opened.read(2) == b"#!"
        target.chmod(0o755 if shipped.executable or is_script else 0o644)
        return
    packed = target.with_name(f"{target.name}.packed")
    fs.get_file(path, str(packed))
    unpack(packed, target)
    packed.unlink()


def unpack(packed: Path, target: Path) -> None:
    """A zip or tar file of any usual compression, into the directory `target`, which is made.
    Nothing is written outside.  Raises AttemptFailed for what is no archive."""
    target.mkdir()
    # tar first: one that has a zip near its end looks like a zip, too, not the other way round.
    if tarfile.is_tarfile(packed):
        with tarfile.open(packed) as archive:
            archive.extractall(target, filter="data")
    elif zipfile.is_zipfile(packed):
        with zipfile.ZipFile(packed) as archive:
            for info in archive.infolist():
                path = Path(archive.extract(info, target))
                mode = stat.S_IMODE(info.external_attr >> 16)
                if mode and path.is_file():
                    path.chmod(mode | 0o400)
    else:
        raise AttemptFailed("job", f"{target.name}: is no zip and no tar archive")


__all__ = ["had", "linked", "unpack"]
