from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from frameworks.mapreduce.worker.failures import AttemptFailed
from frameworks.mapreduce.worker.jobfiles import unpack


def test_zips_keep_what_may_be_run(tmp_path):
    packed = tmp_path / "a.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        run = zipfile.ZipInfo("bin/run")
        run.external_attr = 0o100755 << 16
        archive.writestr(run, "#!/bin/sh\n")
        archive.writestr("data", "x")
    unpack(packed, tmp_path / "to")
    assert (tmp_path / "to/bin/run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "to/data").read_text() == "x"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tars_of_all_kinds(tmp_path, mode):
    packed = tmp_path / "a.tar"
    with tarfile.open(packed, mode) as archive:
        info = tarfile.TarInfo("deep/file")
        info.size = 1
        archive.addfile(info, io.BytesIO(b"x"))
    unpack(packed, tmp_path / "to")
    assert (tmp_path / "to/deep/file").read_text() == "x"


def test_a_tar_with_a_zip_in_it_is_a_tar(tmp_path):
    with zipfile.ZipFile(tmp_path / "last.whl", "w") as archive:
        archive.writestr("of-the-zip.txt", "")
    (tmp_path / "first.txt").write_text("")
    packed = tmp_path / "packed.tar"
    with tarfile.open(packed, "w") as archive:
        for name in ("first.txt", "last.whl"):
            archive.add(tmp_path / name, name)
    unpack(packed, tmp_path / "to")
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == ["first.txt", "last.whl"]


def test_nothing_is_written_outside(tmp_path):
    zipped = tmp_path / "a.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("../outside", "x")
    unpack(zipped, tmp_path / "zipped")
    assert not (tmp_path / "outside").exists()
    packed = tmp_path / "a.tar"
    with tarfile.open(packed, "w") as archive:
        archive.addfile(tarfile.TarInfo("../outside"))
    with pytest.raises(tarfile.OutsideDestinationError):
        unpack(packed, tmp_path / "packed")
    assert not (tmp_path / "outside").exists()


def test_what_is_no_archive_is_the_job_s_fault(tmp_path):
    packed = tmp_path / "a"
    packed.write_text("no archive")
    with pytest.raises(AttemptFailed, match="is no zip and no tar") as caught:
        unpack(packed, tmp_path / "to")
    assert caught.value.blame == "job"
