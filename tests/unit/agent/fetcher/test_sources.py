"""What URIs lead to, and what is said when they do not."""

from __future__ import annotations

import errno
import os

import pytest

from agent.fetcher import sources
from agent.fetcher.sources import SourceError, open_uri, prepare, why


def read(uri: str) -> tuple[bytes, int | None]:
    stream, total = open_uri(uri)
    parts = []
    while data := stream.read(100):
        parts.append(data)
    stream.close()
    return b"".join(parts), total


def test_a_local_file(tmp_path):
    path = tmp_path / "a b%#"
    path.write_bytes(b"x" * 250)
    assert read(f"file://{tmp_path}/a%20b%25%23") == (b"x" * 250, 250)


@pytest.mark.parametrize("what", ["missing", "directory", "pipe"])
def test_what_is_no_file_is_said(tmp_path, what):
    path = tmp_path / what
    if what == "directory":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    with pytest.raises((OSError, SourceError)) as caught:
        open_uri(f"file://{path}")
    said = {"missing": "is not there", "directory": "is a directory", "pipe": "is no regular file"}
    assert why(caught.value) == said[what]


def test_a_store_of_fsspec():
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/key", b"y" * 250)
    try:
        prepare(["memory://bucket/key"])
        assert read("memory://bucket/key") == (b"y" * 250, 250)
        with pytest.raises(SourceError, match="is a directory"):
            open_uri("memory://bucket")
        with pytest.raises(FileNotFoundError):
            open_uri("memory://bucket/other")
    finally:
        memory.rm("/bucket", recursive=True)


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch):
    import fsspec

    def missing(scheme: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(SourceError, match=r"reads no s3a: URIs: Install s3fs.*mesos-py\[s3\]"):
        prepare(["s3a://bucket/key", "file:///etc/hosts"])


def test_every_scheme_is_one_of_fsspec():
    import fsspec

    assert set(sources.SCHEMES) <= set(fsspec.available_protocols())


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PermissionError(), "may not be read (permission denied)"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (RuntimeError("two\nlines"), "RuntimeError: two lines"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_errors_in_words(error, text):
    assert why(error) == text
