"""What a job reads: from names, globs and directories to files, in order.

A name that exists as it is written means just that.  Else it may be a list (`a,b`), have
alternatives (`{a,b}`), and be a glob (`*`, `?`, `[a-z]`, and `**` for any directories); `\\`
takes the next character as it is.  Names beginning with `_` or `.` are hidden: globs and
directories do not lead to them, unless the glob begins so, too.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import codecs, files
from frameworks.mapreduce.data.files import Entry, FileSystem
from mesos_py.errors import InvalidValue, MesosPyError, NotFound

T = TypeVar("T")

FIELD: Final = "input"
_MAX_ALTERNATIVES: Final = 10_000
_MAX_DEPTH: Final = 100
_MAGIC = re.compile(r"[*?\[]")


class InputFile(NamedTuple):
    """url: absolute.  size: in bytes, -1 if not known.  parted: whether a piece of it can be
    read without the rest."""

    url: str
    size: int
    parted: bool


def find(names: Sequence[str], conf: Mapping[str, str]) -> list[InputFile]:
    """All files of a job, in the order of `names`, and of names in each directory.

    A file that two names lead to is there twice.  Each directory is listed once.  Raises
    NotFound for a name that leads to nothing, and InvalidValue for what is no file, has
    directories where none are expected, or cannot be looked at.
    """
    finder = _Finder(conf)
    found: list[InputFile] = []
    for name in names:
        found += finder.named(name)
    return found


def is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


class _Finder:
    def __init__(self, conf: Mapping[str, str]) -> None:
        self._conf = conf
        self._recursive = properties.RECURSIVE.of(conf)
        self._listed: dict[tuple[int, str], list[Entry]] = {}

    def named(self, name: str) -> list[InputFile]:
        special = any(sign in name for sign in ",{*?[\\")
        if special:
            found = self._there(name)
            if found is not None:
                return found
        return [file for part in split_list(name) for file in self._part(name, part)]

    def _part(self, name: str, part: str) -> list[InputFile]:
        patterns = alternatives(part)
        # What several alternatives lead to is there once: they are one glob.
        found = {
            files.url_of(url, match.path, fs): (url, fs, match)
            for pattern in patterns
            for url, fs, match in self._matching(name, pattern)
        }
        if not found:
            globs = len(patterns) > 1 or _MAGIC.search(part)
            why = "matches nothing" if globs else "is not there"
            raise NotFound(FIELD, part if globs else _unescaped(part), why)
        return [file for url, fs, match in found.values() for file in self._files(url, fs, match)]

    def _there(self, name: str) -> list[InputFile] | None:
        """None if there is nothing of exactly this name, as far as can be told: a list or a
        glob may be no name at all where it points to."""
        try:
            fs, path = files.resolve(name, self._conf, FIELD)
            found = _looked(name, lambda: files.entry(fs, path))
        except InvalidValue:
            return None
        return self._files(self._url(name), fs, found) if found is not None else None

    def _matching(self, name: str, pattern: str) -> Iterator[tuple[str, FileSystem, Entry]]:
        fs, path = files.resolve(pattern, self._conf, FIELD)
        if files.is_http(fs) or not _MAGIC.search(path):
            plain = path if files.is_http(fs) else _unescaped(path)
            found = _looked(name, lambda: files.entry(fs, plain))
            if found is not None:
                yield self._url(pattern), fs, found
            return
        parts = path.split("/")
        first = next(i for i, part in enumerate(parts) if _MAGIC.search(part))
        base = "/".join(map(_unescaped, parts[:first])) or fs.root_marker
        url = self._url(pattern)
        for match in self._glob(name, fs, base, parts[first:]):
            # What ** goes through would be there twice.
            if match.kind != "directory" or "**" not in parts:
                yield url, fs, match

    def _glob(self, name: str, fs: FileSystem, base: str, parts: list[str]) -> Iterator[Entry]:
        part, rest = parts[0], parts[1:]
        if part == "**":
            # It stands for no directory, too.
            yield from self._glob(name, fs, base, rest or ["*"])
            for found in self._listing(name, fs, base):
                if found.kind == "directory" and not is_hidden(found.name):
                    yield from self._glob(name, fs, found.path, parts)
            return
        if not _MAGIC.search(part):
            path = f"{base.rstrip('/')}/{_unescaped(part)}"
            there = _looked(name, lambda: files.entry(fs, path))
            if there is not None:
                yield from self._glob(name, fs, path, rest) if rest else (there,)
            return
        matches = _matcher(part)
        for found in self._listing(name, fs, base):
            if matches(found.name):
                if not rest:
                    yield found
                elif found.kind == "directory":
                    yield from self._glob(name, fs, found.path, rest)

    def _url(self, name: str) -> str:
        return files.absolute(name, self._conf, FIELD)

    def _files(self, url: str, fs: FileSystem, found: Entry, depth: int = 0) -> list[InputFile]:
        """A file, or the files of a directory.  url: of anything on that file system."""
        if found.kind == "file" and not (files.is_http(fs) and found.path.endswith("/")):
            return [_file(files.url_of(url, found.path, fs), found.size)]
        if found.kind == "other":
            raise InvalidValue(FIELD, found.path, "is neither a file nor a directory")
        result: list[InputFile] = []
        for one in self._listing(url, fs, found.path):
            if is_hidden(one.name):
                continue
            if one.kind == "file":
                result.append(_file(files.url_of(url, one.path, fs), one.size))
                continue
            if one.kind == "directory" and not self._recursive:
                wanted = f"{properties.RECURSIVE.name}=true reads them, too"
                raise InvalidValue(FIELD, found.path, f"has directories in it ({wanted})")
            if depth == _MAX_DEPTH:
                raise InvalidValue(FIELD, found.path, "is too deep; do links lead in a circle?")
            result += self._files(url, fs, one, depth + 1)
        return result

    def _listing(self, name: str, fs: FileSystem, path: str) -> list[Entry]:
        key = (id(fs), path)
        if key not in self._listed:
            found = _looked(name, lambda: files.listing(fs, path))
            self._listed[key] = found or []
        return self._listed[key]


def _looked(name: str, look: Callable[[], T]) -> T | None:
    """None if it is not there."""
    try:
        return look()
    except MesosPyError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Exception as error:
        # Each kind of file system raises what it likes.
        raise InvalidValue(FIELD, name, f"cannot be read: {files.why(error)}") from error


def _file(url: str, size: int) -> InputFile:
    try:
        url.encode()
    except UnicodeEncodeError:
        raise InvalidValue(FIELD, url, "has a name that is no UTF-8") from None
    return InputFile(url, size, size >= 0 and codecs.by_extension(url) is None)


def _matcher(part: str) -> Callable[[str], bool]:
    # fnmatch has [!a] for [^a], and no backslash but as a letter.
    text = re.sub(
        r"\\(.)",
        lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1],
        part.replace("[^", "[!"),
    )
    pattern = re.compile(fnmatch.translate(text))
    hidden = is_hidden(part)
    return lambda entry: bool(pattern.match(entry)) and (hidden or not is_hidden(entry))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def split_list(text: str) -> list[str]:
    """Parts between commas that are not in braces nor after a backslash.  Raises InvalidValue
    for an empty part."""
    parts = _split(text)
    if not all(parts):
        raise InvalidValue(FIELD, text, "has an empty name in its list")
    return parts


def _split(text: str) -> list[str]:
    parts = [""]
    depth = 0
    escaped = False
    for sign in text:
        if sign == "," and not depth and not escaped:
            parts.append("")
            continue
        if not escaped:
            depth += (sign == "{") - (sign == "}" and depth > 0)
        escaped = sign == "\\" and not escaped
        parts[-1] += sign
    return parts


def alternatives(text: str) -> list[str]:
    """`a{b,c}` is `ab` and `ac`.  Raises InvalidValue: more than ten thousand."""
    found: list[str] = []
    waiting = [text]
    while waiting:
        one = waiting.pop()
        group = _group(one)
        if group is None:
            found.append(one)
        else:
            start, end = group
            before, inner, after = one[:start], one[start + 1 : end], one[end + 1 :]
            waiting += [before + each + after for each in reversed(_split(inner))]
        if len(found) + len(waiting) > _MAX_ALTERNATIVES:
            raise InvalidValue(FIELD, text, f"has more than {_MAX_ALTERNATIVES} alternatives")
    return found


def _group(text: str) -> tuple[int, int] | None:
    """Where the first braces are that belong together, the outer ones of several."""
    starts: list[int] = []
    escaped = False
    for at, sign in enumerate(text):
        if sign == "{" and not escaped:
            starts.append(at)
        elif sign == "}" and not escaped and starts:
            start = starts.pop()
            if not starts:
                return start, at
        escaped = sign == "\\" and not escaped
    return None
