"""What all programs have: their arguments, their engine, and where the result goes."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any


def parser(**arguments: type) -> argparse.ArgumentParser:
    """`--out` and these, by their types; all of them have to be given."""
    made = argparse.ArgumentParser(allow_abbrev=False)
    for name, kind in {"out": Path, **arguments}.items():
        made.add_argument(f"--{name}", type=kind, required=True)
    return made


def engine_parser(**arguments: type) -> argparse.ArgumentParser:
    """For programs of an RDD engine."""
    made = parser(engine=str, master=str, **arguments)
    made.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    return made


def context(given: argparse.Namespace) -> Any:
    """A SparkContext of `--engine`, which is the module that has it."""
    engine = importlib.import_module(given.engine)
    conf = engine.SparkConf().setMaster(given.master).setAppName("bench")
    for each in given.set:
        name, _, value = each.partition("=")
        conf.set(name, value)
    return engine.SparkContext(conf=conf)


class Watch:
    """laps_s: seconds from the beginning to each lap."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.laps_s: list[float] = []

    def lap(self) -> None:
        self.laps_s.append(time.perf_counter() - self._began)


def write(out: Path, **found: object) -> None:
    out.write_text(json.dumps(found))
