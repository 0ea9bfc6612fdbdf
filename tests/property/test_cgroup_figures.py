"""Whatever a kernel may write, or somebody puts in its place: figures are read or left out."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from agent.isolation.cgroups.io import parse_limits, tightened
from agent.isolation.cgroups.mounts import best, mounts_of, own_groups
from agent.isolation.cgroups.numbers import blkio, cpu_list, cpu_text, io_stat, keyed, number
from mesos_py.errors import InvalidValue

words = st.sampled_from(
    [
        *("8:0", "rbytes=1", "wbytes=", "=", "Read", "Total", "max", "-1", "0-3", "1_0", "٣"),
        *("18446744073709551616", "anon", "oom_kill", "cgroup", "cgroup2", "-", "rw,memory"),
        *("/", "\\040", "\\999", "*", ";", "rbps=1"),
    ]
)
lines = st.lists(st.lists(words | st.text(max_size=8), max_size=12).map(" ".join), max_size=6)
texts = st.text() | lines.map("\n".join)


@given(texts)
@example("\x00 1\n\x85 2")
def test_any_text_gives_whole_numbers_that_are_not_negative(text):
    single = number(text)
    assert (0 if single is None else single) >= 0
    for parse in (keyed, io_stat, blkio):
        found = parse(text)
        assert all(value >= 0 for value in found.values())


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.integers(0, 2**64 - 1)))
def test_what_a_kernel_writes_is_read_as_it_is(figures):
    assert keyed("".join(f"{name} {value}\n" for name, value in figures.items())) == figures
    assert io_stat("8:0 " + " ".join(f"{n}={v}" for n, v in figures.items())) == figures


@given(st.frozensets(st.integers(0, 300)))
def test_a_list_of_processors_survives_being_written(cpus):
    assert cpu_list(cpu_text(cpus)) == cpus


@given(texts)
def test_any_text_is_a_list_of_processors_of_some_kind(text):
    assert all(cpu >= 0 for cpu in cpu_list(text))


@given(texts, texts)
def test_any_text_of_mounts_and_groups_can_be_looked_at(mountinfo, own):
    groups = own_groups(own)
    for key, mount in best(mounts_of(mountinfo), groups).items():
        where = mount.group_of(groups.get(key))
        assert where is None or not where.startswith("/")


@given(texts)
@example("* rbps=1;8:0 rbps=2")
def test_limits_are_read_or_refused_by_name(text):
    try:
        limits = parse_limits(text, "field")
    except InvalidValue as error:
        limits = {error.field: {}}
        assert "field" in limits
    assert all(value > 0 for items in limits.values() for value in items.values())
    assert tightened(limits, limits) == limits
