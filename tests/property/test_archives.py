"""Whatever an archive's members are called: nothing changes outside the sandbox."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import warnings
import zipfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from agent.fetcher.archives import BadArchive, checked_name, format_of, unpack
from agent.fetcher.tree import Full, Tree, Unsafe

PARTS = st.sampled_from(["..", ".", "", "a", "b", "x" * 300, "é", "\\", "%2e%2e", " "])
NAMES = st.builds(
    lambda start, parts: start + "/".join(parts),
    st.sampled_from(["", "/", "//"]),
    st.lists(PARTS, min_size=1, max_size=5),
)
KINDS = st.sampled_from(
    [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]
)
MEMBERS = st.lists(st.tuples(NAMES, KINDS, NAMES), min_size=1, max_size=8)


def unpacked(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as above:
        root = Path(above, "sandbox")
        root.mkdir()
        (Path(above) / "a").write_text("canary")
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        form = format_of(name)
        assert form is not None
        try:
            unpack(io.BytesIO(data), form, [name], Tree(fd, 1 << 20), lambda *_: None)
        except (Unsafe, Full, BadArchive, OSError):
            pass
        finally:
            os.close(fd)
        assert {each.name for each in Path(above).iterdir()} == {"a", "sandbox"}
        assert (Path(above) / "a").read_text() == "canary"
        for directory, folders, files in os.walk(root):
            for entry in (*folders, *files):
                # A link leads nowhere but into the sandbox.  (Path.resolve raises for one that
                # leads to itself.)
                path = Path(os.path.realpath(Path(directory, entry)))
                assert path.is_relative_to(root.resolve())


@given(MEMBERS)
def test_tar_members_stay_beneath_the_sandbox(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    unpacked(out.getvalue(), "a.tar")


@given(MEMBERS)
@example([("a", tarfile.SYMTYPE, "a")])
def test_zip_members_stay_beneath_the_sandbox(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, kind, target in members:
            info = zipfile.ZipInfo(name or "x")
            info.create_system = 3
            info.external_attr = (0o120777 if kind == tarfile.SYMTYPE else 0o644) << 16
            with warnings.catch_warnings(action="ignore"):  # of names that come twice
                archive.writestr(info, target)
    unpacked(out.getvalue(), "a.zip")


@given(st.binary(max_size=2000), st.sampled_from([".tar", ".tar.gz", ".zip", ".xz", ".zst"]))
def test_bytes_that_are_no_archive_are_refused_or_harmless(data, suffix):
    unpacked(data, "a" + suffix)


@given(st.text(max_size=50))
def test_a_name_is_taken_apart_or_refused(name):
    try:
        parts = checked_name(name)
    except Unsafe:
        return
    assert not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\0" in part for part in parts)
