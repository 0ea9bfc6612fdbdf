"""A program with its properties: what `mesos-py rdd submit` starts, and how a SparkConf in it
learns of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from frameworks.rdd import properties
from mesos_py.errors import InvalidValue

# A JSON object of texts: the defaults of every SparkConf in a program.
CONF_VARIABLE: Final = "MESOS_PY_RDD_CONF"
# Lists, separated by commas: what a context adds (addPyFile, addFile) as it starts.
PY_FILES: Final = "spark.submit.pyFiles"
FILES: Final = "spark.files"


def defaults(environ: Mapping[str, str]) -> dict[str, str]:
    """The properties that whoever started this program has set.  Raises InvalidValue."""
    text = environ.get(CONF_VARIABLE, "")
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidValue(CONF_VARIABLE, text, f"is no JSON: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise InvalidValue(CONF_VARIABLE, text, "must be an object of texts")
    return found


def read_properties(path: Path) -> dict[str, str]:
    """A file as spark-defaults.conf: a name and a value on a line, between them a space, "=" or
    ":"; lines that begin with # are comments.  Raises InvalidValue, OSError."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        words = text.split(None, 1)
        for separator in "=:":
            head, found_it, tail = text.partition(separator)
            if found_it and len(head) < len(words[0]):
                words = [head.strip(), tail.strip()]
        if len(words) == 1:
            words = [*words[0].rstrip("=:").split(None, 1), ""]
        if not words[0]:
            raise InvalidValue(f"{path}:{number}", line, "has no name before its value")
        found[words[0]] = words[1].lstrip("=: \t")
    return found


def checked(conf: Mapping[str, str]) -> None:
    """Raises InvalidValue for a property of ours that has no value of its kind."""
    for each in properties.ALL:
        each.of(conf)


def environment(
    environ: Mapping[str, str], conf: Mapping[str, str], py_files: Sequence[str] = ()
) -> dict[str, str]:
    """What the program's process gets: the properties, and its Python files in the path."""
    path = [*(str(Path(each).absolute()) for each in py_files), environ.get("PYTHONPATH", "")]
    made = {**environ, CONF_VARIABLE: json.dumps(dict(conf), sort_keys=True)}
    if py_files:
        # What is no package is imported from its directory.
        names = [each if not each.endswith(".py") else str(Path(each).parent) for each in path]
        made["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys(names)))
    return made
