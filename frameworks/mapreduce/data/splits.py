"""From the input of a job to the splits of its maps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import inputs, linesplits, locations
from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.locations import Block
from frameworks.mapreduce.job import JobSpec, Piece, Split
from mesos_py.errors import InvalidValue

# "auto" combines when there are more files than this.
MANY_FILES: Final = 1000
# Opening a file takes as long as reading so many bytes: a thousand empty ones fill a split of
# 64 MB.
OPEN_COST: Final = 64 * 1024
# A split travels to its worker in one message.
MAX_PIECES: Final = 5000
MAX_SPLITS: Final = 1_000_000


def plan(spec: JobSpec) -> list[Split]:
    """The splits, in the order of the input: each line of each file is in exactly one.

    Looks at file systems and asks a locator: it blocks, and is not to be called in an event
    loop's thread.  Raises NotFound and InvalidValue naming the input or the property.
    No splits: a directory without files.  A file without bytes has a piece, too.
    """
    found = inputs.find(spec.inputs, spec.conf)
    if spec.input_format == linesplits.NLINE:
        return list(linesplits.divide(found, spec.conf, MAX_SPLITS))
    where = locations.locator(spec.conf).hosts(found)
    return divide(found, where, spec.conf)


def divide(
    found: Sequence[InputFile], where: Sequence[Sequence[Block]], conf: Mapping[str, str]
) -> list[Split]:
    """`plan` without looking at anything.  `where`: of each file, what is known of its blocks."""
    sizes = _Sizes.of(found, conf)
    most = sizes.largest or 1
    if sum(max(0, file.size) for file in found) // most > MAX_SPLITS:
        raise InvalidValue(
            properties.SPLIT_MAX.name, str(most), f"makes more than {MAX_SPLITS} splits"
        )
    parts = [
        part
        for file, blocks in zip(found, where, strict=True)
        for part in _parts(file, blocks, sizes)
    ]
    combine = properties.COMBINE_FILES.of(conf)
    if combine == "false" or (combine == "auto" and len(found) <= MANY_FILES):
        return [_split((part,)) for part in parts]
    return [_split(group) for group in _groups(parts, _room(parts, conf))]


class _Sizes(NamedTuple):
    """In bytes: no part is smaller (if its file has so much), none larger."""

    smallest: int
    largest: int

    @classmethod
    def of(cls, found: Sequence[InputFile], conf: Mapping[str, str]) -> _Sizes:
        smallest = max(1, properties.SPLIT_MIN.of(conf))
        total = sum(max(0, file.size) for file in found)
        share = -(-total // properties.MAPS_HINT.of(conf))
        return cls(smallest, max(smallest, min(properties.SPLIT_MAX.of(conf), share)))


class _Part(NamedTuple):
    """weights: bytes that each host has of it."""

    piece: Piece
    size: int
    weights: dict[str, int]


def _split(group: Sequence[_Part]) -> Split:
    weights: defaultdict[str, int] = defaultdict(int)
    for part in group:
        for host, size in part.weights.items():
            weights[host] += size
    return Split(
        tuple(part.piece for part in group), sum(part.size for part in group), _best(weights)
    )


def _best(weights: Mapping[str, int]) -> tuple[str, ...]:
    """Hosts by how much they have.  Less than half of what the best has is not worth a wait."""
    if not weights:
        return ()
    most = max(weights.values())
    near = [host for host, size in weights.items() if size * 2 >= most]
    return tuple(sorted(near, key=lambda host: -weights[host]))


# ---- Parting a file ------------------------------------------------------------------------


def _parts(file: InputFile, blocks: Sequence[Block], sizes: _Sizes) -> Iterator[_Part]:
    size = max(0, file.size)
    whole = Piece(file.url, 0, size if file.parted else -1)
    if not blocks:
        if not file.parted or size <= sizes.largest:
            yield _Part(whole, size, {})
            return
        for cut in _even(Block(0, size, ()), sizes):
            yield _Part(Piece(file.url, cut.start, cut.length), cut.length, {})
        return
    ranges = list(_ranges(size, blocks))
    if not file.parted or size <= sizes.smallest:
        yield _Part(whole, size, _weights(ranges))
        return
    # Cut where blocks end, so that all of a part is at the same hosts.
    pieces = [cut for one in ranges for cut in _even(one, sizes)]
    for one in _merged(pieces, sizes):
        start, length = one[0].start, sum(cut.length for cut in one)
        yield _Part(Piece(file.url, start, length), length, _weights(one))


def _ranges(size: int, blocks: Sequence[Block]) -> Iterator[Block]:
    """All of the file, each byte once, whatever the locator says."""
    at = 0
    for block in sorted(blocks):
        start, end = max(at, block.start), min(size, block.start + block.length)
        if start >= end:
            continue
        if at < start:
            yield Block(at, start - at, ())
        yield Block(start, end - start, block.hosts)
        at = end
    if at < size:
        yield Block(at, size - at, ())


def _even(one: Block, sizes: _Sizes) -> Iterator[Block]:
    count = max(1, min(-(-one.length // sizes.largest), one.length // sizes.smallest))
    edges = [one.start + one.length * i // count for i in range(count + 1)]
    for start, end in pairwise(edges):
        yield Block(start, end - start, one.hosts)


def _merged(pieces: Iterable[Block], sizes: _Sizes) -> list[list[Block]]:
    """Neighbours together while they are too small, or are at the same hosts and not too
    large together."""
    groups: list[list[Block]] = []
    length = 0
    for one in pieces:
        if groups and (
            length < sizes.smallest
            or (length + one.length <= sizes.largest and set(groups[-1][-1].hosts) & set(one.hosts))
        ):
            groups[-1].append(one)
            length += one.length
        else:
            groups.append([one])
            length = one.length
    if len(groups) > 1 and length < sizes.smallest:
        last = groups.pop()
        groups[-1] += last
    return groups


def _weights(blocks: Iterable[Block]) -> dict[str, int]:
    weights: defaultdict[str, int] = defaultdict(int)
    for block in blocks:
        for host in block.hosts:
            weights[host] += block.length
    return dict(weights)


# ---- Combining files -----------------------------------------------------------------------


def _cost(part: _Part) -> int:
    return part.size + OPEN_COST


def _room(parts: Sequence[_Part], conf: Mapping[str, str]) -> int:
    """What a split may cost."""
    share = -(-sum(map(_cost, parts)) // properties.MAPS_HINT.of(conf))
    return max(properties.SPLIT_MIN.of(conf), min(properties.SPLIT_MAX.of(conf), share))


def _groups(parts: Sequence[_Part], room: int) -> list[list[_Part]]:
    """Parts that share a split.  In order of the first of each; parts that nobody has at hand
    stay neighbours, others are with those of the same host."""
    groups: list[list[_Part]] = []
    # By host ("" for those without): the group that is being filled, and what it costs.
    open_groups: dict[str, tuple[list[_Part], int]] = {}
    loads: defaultdict[str, int] = defaultdict(int)
    for part in parts:
        cost = _cost(part)
        # The host that has got least: else the first in each list would have all.
        host = min(_best(part.weights), key=lambda one: loads[one], default="")
        loads[host] += cost
        group, spent = open_groups.get(host, ([], 0))
        if not group or spent + cost > room or len(group) == MAX_PIECES:
            group, spent = [], 0
            groups.append(group)
        group.append(part)
        open_groups[host] = group, spent + cost
    return groups
