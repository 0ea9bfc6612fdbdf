"""Records that go from all parts to all parts: by key, summed by key, in the order of keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.processes import BenchFailed
from bench.rdd.contenders import DASK, PLAIN, Contender, Runs, Stage, python, rdd, run
from bench.report import Row

PARTITION, REDUCE, SORT = "partitionBy", "reduceByKey", "sortByKey"
# What a record takes in memory and files, roughly: its value and its key.
RECORD_BYTES: Final = 108
_PAIRS_PER_KEY: Final = 10
# What a bag can do of it: there is none that sorts.
_BAG: Final = {PARTITION: "groupby", REDUCE: "foldby"}

# By what is done, and contender.
Found = dict[str, dict[str, Runs]]
Compete = dict[str, list[Contender]]


@dataclass(frozen=True)
class Load:
    records: int
    parts: int

    @property
    def keys(self) -> int:
        """Different ones, of the pairs that are summed."""
        return max(1, self.records // _PAIRS_PER_KEY)


def contenders(stage: Stage, load: Load) -> Compete:
    """The floor comes first."""
    made: Compete = {}
    for what in (REDUCE,) if stage.quick else (PARTITION, REDUCE, SORT):
        words = ["--what", what, "--records", load.records, "--keys", load.keys]
        words += ["--parts", load.parts]
        wide = [*words, "--width", stage.width]
        each = [Contender(PLAIN, python("shuffle_plain", *wide), floor=True)]
        each += [
            Contender(engine, rdd(stage, engine, "shuffle_rdd", words)) for engine in stage.engines
        ]
        if what in _BAG and not stage.quick:
            name = f"{DASK} bag, {_BAG[what]}"
            each.append(Contender(name, python("shuffle_dask", *wide), once=True))
        made[what] = each
    return made


def measure(stage: Stage, compete: Compete, runs: int) -> Found:
    """Raises BenchFailed if anybody has other records in the end than the first one."""
    found: Found = {what: {one.name: Runs() for one in each} for what, each in compete.items()}
    for what, each in compete.items():
        wanted: Mapping[str, Any] = {}
        for number in range(runs):
            for contender in each:
                if number and contender.once:
                    continue
                summary = run(stage, contender, found[what][contender.name])["summary"]
                wanted = wanted or summary
                check(what, contender, summary, wanted)
    return found


def check(
    what: str, contender: Contender, summary: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    """Raises BenchFailed."""
    names = ("count", "keys", "ordered") if what == SORT else ("count", "keys")
    if any(summary[name] != wanted[name] for name in names):
        raise BenchFailed(f"{what}: {contender.name} has {summary}; others {wanted}")


def rows(found: Found, compete: Compete) -> list[Row]:
    made = []
    for what, each in compete.items():
        floor = found[what][each[0].name].after(1).median
        for contender in each:
            runs = found[what][contender.name]
            took = runs.after(1)
            note = f"whole process {runs.whole().text()} s, CPU {runs.cpu().text()} s"
            if not contender.floor:
                note = f"{took.median / floor:.2f} times the floor; {note}"
            name = f"shuffle, {what}: {contender.name}"
            made.append(Row(name, took, "s", contender.floor, note, digits=2))
    return made
