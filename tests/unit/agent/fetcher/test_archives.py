"""Archives that nobody vouches for: what is in them stays beneath the sandbox."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from agent.fetcher.archives import BadArchive, format_of, unpack
from agent.fetcher.tree import Full, Tree, Unsafe

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


class Sandbox:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        # What must not change.
        self.canary = path.parent / "canary"
        self.canary.write_text("unharmed")

    def unpack(self, data: bytes, name: str, max_bytes: int = 1 << 20) -> int:
        form = format_of(name)
        assert form is not None
        tree = Tree(self.fd, max_bytes)
        return unpack(io.BytesIO(data), form, [name], tree, lambda *_: None)

    def refused(self, data: bytes, name: str, why: str, max_bytes: int = 1 << 20) -> None:
        with pytest.raises((Unsafe, Full, BadArchive), match=why):
            self.unpack(data, name, max_bytes)
        self.check()

    def check(self) -> None:
        assert self.canary.read_text() == "unharmed"
        assert {each.name for each in self.path.parent.iterdir()} == {"canary", "sandbox"}


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path / "sandbox")
    yield made
    os.close(made.fd)


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in more.items():
        setattr(info, key, value)
    return info


def tar(*members: tarfile.TarInfo, content: bytes = b"evil") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for info in members:
            if info.type == tarfile.REGTYPE:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                archive.addfile(info)
    return out.getvalue()


def zipped(name: str, content: bytes = b"evil", mode: int = 0) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.create_system = 3 if mode else 0
        info.external_attr = mode << 16
        archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_a_tar_is_unpacked_with_its_modes_and_links(sandbox, compression):
    data = tar(
        member("./", tarfile.DIRTYPE, mode=0o755),
        member("./dir", tarfile.DIRTYPE, mode=0o500),
        member("./dir/tool", mode=0o755),
        member("plain", mode=0o400),
        member("link", tarfile.SYMTYPE, linkname="dir/tool"),
        member("dir/up", tarfile.SYMTYPE, linkname="../plain"),
        member("same", tarfile.LNKTYPE, linkname="./plain"),
        content=b"x",
    )
    suffix = f".{compression}" if compression else ""
    assert sandbox.unpack(COMPRESSORS[compression](data), f"a.tar{suffix}") == 7
    root = sandbox.path
    assert (root / "link").read_bytes() == (root / "dir/up").read_bytes() == b"x"
    assert stat.S_IMODE((root / "dir/tool").stat().st_mode) == 0o755
    # Its owner can always read, write and remove what was fetched for him.
    assert stat.S_IMODE((root / "plain").stat().st_mode) == 0o600
    assert stat.S_IMODE((root / "dir").stat().st_mode) == 0o700
    assert (root / "same").stat().st_ino == (root / "plain").stat().st_ino


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", "zst"])
def test_a_single_file_is_unpacked_beside_it(sandbox, compression):
    data = COMPRESSORS[compression](b"one") + COMPRESSORS[compression](b"two")
    assert sandbox.unpack(data, f"text.{compression}") == 1
    assert (sandbox.path / "text").read_bytes() == b"onetwo"


def test_a_zip_is_unpacked_with_modes_if_it_has_them(sandbox):
    sandbox.unpack(zipped("dir/tool", b"x", stat.S_IFREG | 0o755), "a.zip")
    assert stat.S_IMODE((sandbox.path / "dir/tool").stat().st_mode) == 0o755
    sandbox.unpack(zipped("plain", b"x"), "a.zip")
    assert stat.S_IMODE((sandbox.path / "plain").stat().st_mode) == 0o644
    sandbox.unpack(zipped("link", b"dir/tool", stat.S_IFLNK | 0o777), "a.zip")
    assert (sandbox.path / "link").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.tar", "TAR"),
        ("a.tar.gz", "TAR"),
        ("a.tgz", "TAR"),
        ("a.tbz2", "TAR"),
        ("a.txz", "TAR"),
        ("a.tzst", "TAR"),
        ("a.zip", "ZIP"),
        ("a.gz", "SINGLE"),
        ("a.xz", "SINGLE"),
        ("a.txt", None),
        (".gz", None),
        ("tar", None),
        ("a.tar.gz?x", None),
        ("a.TAR", None),
    ],
)
def test_what_a_file_is_is_told_by_its_name(name, kind):
    found = format_of(name)
    assert (found.kind.name if found else None) == kind


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/etc/passwd", "absolute name"),
        ("//x", "absolute name"),
        ("../canary", "leads upwards"),
        ("a/../../canary", "leads upwards"),
        ("a/..", "leads upwards"),
        ("/".join(["d"] * 70), "directories deep"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(sandbox, name, why):
    sandbox.refused(tar(member(name)), "a.tar", why)
    sandbox.refused(zipped(name), "a.zip", why)
    sandbox.refused(tar(member(name, tarfile.DIRTYPE)), "a.tar", why)


@pytest.mark.parametrize("target", ["/etc", "..", "../canary", "x/../../canary", "x/..", ""])
def test_links_that_lead_out_are_refused(sandbox, target):
    links = (tarfile.SYMTYPE, tarfile.LNKTYPE)
    for kind in links:
        info = member("link", kind, linkname=target)
        sandbox.refused(tar(info, member("link/x")), "a.tar", "link|absolute|upwards")
    sandbox.refused(zipped("link", target.encode(), stat.S_IFLNK), "a.zip", "leads out")


def test_what_passes_through_a_link_is_refused_wherever_it_leads(sandbox):
    inside = tar(
        member("dir", tarfile.DIRTYPE, mode=0o755),
        member("link", tarfile.SYMTYPE, linkname="dir"),
        member("link/x"),
    )
    sandbox.refused(inside, "a.tar", "'link' is a link or a file, not a directory")
    # A link that was there before, as an archive fetched first may leave it.
    (sandbox.path / "out").symlink_to(sandbox.path.parent)
    sandbox.refused(tar(member("out/canary")), "a.tar", "'out' is a link")
    sandbox.refused(zipped("out/canary"), "a.zip", "'out' is a link")
    sandbox.refused(
        tar(member("x", tarfile.LNKTYPE, linkname="out/canary")), "a.tar", "'out' is a link"
    )


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(sandbox):
    (sandbox.path / "planted").symlink_to(sandbox.canary)
    sandbox.unpack(tar(member("planted")), "a.tar")
    assert (sandbox.path / "planted").read_bytes() == b"evil"
    assert not (sandbox.path / "planted").is_symlink()
    sandbox.check()


def test_a_hard_link_is_made_to_regular_files_only(sandbox):
    (sandbox.path / "planted").symlink_to(sandbox.canary)
    data = tar(member("x", tarfile.LNKTYPE, linkname="planted"), member("x"))
    sandbox.refused(data, "a.tar", "no regular file")


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_special_files_are_refused(sandbox, kind):
    sandbox.refused(tar(member("dev", kind, devmajor=1, devminor=3)), "a.tar", "special file")
    assert not list(sandbox.path.iterdir())
    sandbox.refused(zipped("dev", mode=stat.S_IFCHR | 0o666), "a.zip", "special file")


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_setuid_programs_are_refused(sandbox, mode):
    sandbox.refused(tar(member("su", mode=mode)), "a.tar", "setuid or setgid")
    sandbox.refused(zipped("su", mode=stat.S_IFREG | mode), "a.zip", "setuid or setgid")
    assert not list(sandbox.path.iterdir())


def test_bombs_are_stopped_at_the_limit(sandbox):
    zeros = bytes(10 << 20)
    for compression in ("gz", "bz2", "xz", "zst"):
        data = COMPRESSORS[compression](tar(member("zeros"), content=zeros))
        sandbox.refused(data, f"a.tar.{compression}", "more than the 100000 bytes", 100_000)
        data = COMPRESSORS[compression](zeros)
        sandbox.refused(data, f"a.{compression}", "more than the 100000 bytes", 100_000)
    sandbox.refused(zipped("zeros", zeros), "a.zip", "more than the 100000 bytes", 100_000)
    assert sum(f.stat().st_size for f in sandbox.path.iterdir()) < 1_000_000
    # Zeros behind the archive's end count as well: to read them takes time.
    data = COMPRESSORS["xz"](tar(member("a")) + zeros)
    sandbox.refused(data, "a.tar.xz", "more than the 100000 bytes", 100_000)


@pytest.mark.parametrize(
    "suffix", ["tar", "tar.gz", "tar.xz", "tar.bz2", "tar.zst", "zip", "gz", "zst"]
)
def test_what_is_no_archive_is_called_that(sandbox, suffix):
    sandbox.refused(b"<html>not found</html>" * 50, f"a.{suffix}", "is damaged or no ")


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", "zst"])
def test_a_part_of_an_archive_is_called_damaged(sandbox, compression):
    content = os.urandom(100_000)
    data = COMPRESSORS[compression](tar(member("a"), content=content))
    for part in (data[: len(data) // 2], data[:-5]):
        sandbox.refused(part, f"a.tar.{compression}", "is damaged or no ")


def test_names_that_are_no_text_are_kept(sandbox):
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", errors="surrogateescape") as archive:
        archive.addfile(member(name))
    sandbox.unpack(out.getvalue(), "a.tar")
    assert [os.fsencode(each.name) for each in sandbox.path.iterdir()] == [b"caf\xe9"]
