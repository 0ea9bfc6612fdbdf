"""A URI as frameworks give it: what it leads to, where it goes, what it must be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from agent.fetcher.job import Item
from agent.fetcher.sources import SCHEMES
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

# Hexadecimal digits of each kind of checksum.
CHECKSUMS: Final = {"sha256": 64, "sha512": 128}
_MAX_URI: Final = 8192
_FORBIDDEN: Final = re.compile(r"[\x00-\x20'\\\x7f]")
_CHECKSUM: Final = re.compile(r"#([a-z0-9]+)=([0-9A-Fa-f]*)$")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def item_of(uri: pb.CommandInfo.URI, frameworks_home: str | None = None) -> Item:
    """What is to be fetched for `uri`, as Mesos understands it.

    Ours: a checksum as a fragment, "#sha256=..." or "#sha512=...".  Raises
    InvalidValue, in which no password is shown.
    """
    where, checksum = _split_checksum(uri.value)
    where = _located(where, frameworks_home)
    if uri.HasField("output_file"):
        target = _names("uris.output_file", uri.output_file)
    else:
        # Mesos: what stands after the last slash, a query included.
        target = _names("uris.value", where.rpartition("/")[2] or "/", shown(where))
    return Item(
        uri=where,
        shown=shown(where),
        target=target,
        executable=uri.executable,
        # Mesos: what is to be executed is not unpacked.
        extract=not uri.executable and (uri.extract or not uri.HasField("extract")),
        checksum=checksum,
        source=None,
    )


def shown(uri: str) -> str:
    """`uri` for people: without user, password, query and fragment, where secrets stand."""
    try:
        parts = urlsplit(uri)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return uri.partition(":")[0] + ":..."
    text = f"{parts.scheme}://{host}{parts.path}" if parts.scheme else parts.path
    return text + ("?..." if parts.query else "")


def path_of(uri: str) -> str:
    """The path of a file URI, as a name in the file system."""
    return unquote(urlsplit(uri).path, errors="surrogateescape")


def _split_checksum(value: str) -> tuple[str, tuple[str, str] | None]:
    if not value or len(value) > _MAX_URI:
        raise InvalidValue(
            "uris.value", shown(value[:200]), f"must have from 1 to {_MAX_URI} characters"
        )
    if _FORBIDDEN.search(value):
        # Mesos refuses quotes, backslashes and null characters.
        why = "must not have spaces, control characters, quotes or backslashes"
        raise InvalidValue("uris.value", shown(value), why)
    found = _CHECKSUM.search(value)
    if found is None:
        return value, None
    kind, digits = found[1], found[2].lower()
    if kind not in CHECKSUMS:
        known = ", ".join(CHECKSUMS)
        raise InvalidValue("uris.value", f"#{kind}=", f"is no known checksum (known: {known})")
    if len(digits) != CHECKSUMS[kind]:
        why = f"has {len(digits)} hexadecimal digits, not {CHECKSUMS[kind]}"
        raise InvalidValue("uris.value", f"#{kind}={digits}", why)
    return value[: found.start()], (kind, digits)


def _located(where: str, frameworks_home: str | None) -> str:
    """`where` as a URI with a scheme that we know.  Local files: an absolute path."""
    found = _SCHEME.match(where)
    if found is None:
        path = Path(where)
        if not path.is_absolute():
            if not frameworks_home:
                why = "is relative, and this agent has no --frameworks-home"
                raise InvalidValue("uris.value", shown(where), why)
            path = Path(frameworks_home, where)
        # A plain path has no escapes, query or fragment: in a URI it must not seem to.
        text = re.sub(r"[%?#]", lambda each: f"%{ord(each[0]):02X}", str(path))
        return f"file://{text}"
    scheme = found[1].lower()
    if scheme not in SCHEMES:
        known = ", ".join(SCHEMES)
        raise InvalidValue("uris.value", shown(where), f"has no known scheme (known: {known})")
    try:
        parts = urlsplit(where)
    except ValueError as error:
        raise InvalidValue("uris.value", shown(where), str(error)) from None
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            why = "names a file on another host: write file:///path"
            raise InvalidValue("uris.value", shown(where), why)
        if "\0" in path_of(where):
            raise InvalidValue("uris.value", shown(where), "has a null character")
    elif not parts.netloc and scheme != "hdfs":
        raise InvalidValue("uris.value", shown(where), "names no host")
    if parts.path in ("", "/"):
        raise InvalidValue("uris.value", shown(where), "names no file")
    return where


def _names(field: str, text: str, value: str | None = None) -> list[str]:
    """The names of a path that leads downwards."""
    parts = [part for part in text.split("/") if part != "."]
    if text.startswith("/") or text.endswith("/") or not parts:
        raise InvalidValue(field, value or text, "must name a file, relative to the sandbox")
    for part in parts:
        if not part or part == ".." or "\0" in part or len(part.encode()) > 255:
            raise InvalidValue(field, value or text, "must be a usable path beneath the sandbox")
    return parts
