import pytest

from frameworks.mapreduce.data import splits
from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.locations import Block
from frameworks.mapreduce.job import JobSpec, Piece, Program
from mesos_py.errors import InvalidValue, NotFound

MAX = "mapreduce.input.fileinputformat.split.maxsize"
MIN = "mapreduce.input.fileinputformat.split.minsize"


def file(size, name="f", parted=True):
    return InputFile(f"file:///in/{name}", size, parted)


def divided(files, where=None, **conf):
    given = {name.replace("_", "."): str(value) for name, value in conf.items()}
    given = {{"max": MAX, "min": MIN}.get(name, name): value for name, value in given.items()}
    return splits.divide(files, where or [[] for _ in files], given)


def cuts(made):
    return [[(piece.start, piece.length) for piece in split.pieces] for split in made]


def test_a_file_is_cut_evenly_into_no_more_than_the_largest():
    assert cuts(divided([file(1000)], max=400)) == [[(0, 333)], [(333, 333)], [(666, 334)]]
    assert cuts(divided([file(400)], max=400)) == [[(0, 400)]]
    assert [split.size for split in divided([file(1000)], max=400)] == [333, 333, 334]


def test_the_default_is_64_mb():
    assert len(divided([file(64 << 20)])) == 1
    assert len(divided([file((64 << 20) + 1)])) == 2


def test_the_smallest_wins_over_the_largest():
    assert cuts(divided([file(1000)], max=100, min=600)) == [[(0, 1000)]]
    assert cuts(divided([file(1000)], max=100, min=500)) == [[(0, 500)], [(500, 500)]]


def test_the_hint_for_maps_makes_smaller_splits():
    assert len(divided([file(1000), file(1000, "g")], mapreduce_job_maps=10)) == 10
    assert len(divided([file(3)], mapreduce_job_maps=10)) == 3


def test_what_cannot_be_parted_is_one_piece():
    made = divided([file(1000, "f.gz", parted=False)], max=100)
    assert cuts(made) == [[(0, -1)]]
    assert made[0].size == 1000


def test_a_file_of_unknown_size():
    assert cuts(divided([file(-1, parted=False)])) == [[(0, -1)]]


def test_an_empty_file_is_a_map_with_no_lines():
    assert divided([file(0)])[0].pieces == (Piece("file:///in/f", 0, 0),)


def test_a_number_of_splits_that_cannot_be_meant():
    with pytest.raises(InvalidValue, match=r"split.maxsize.*more than 1000000 splits"):
        divided([file(1 << 40)], max=1)


def test_pieces_end_where_blocks_end_and_say_who_has_them():
    blocks = [Block(0, 600, ("a", "b")), Block(600, 400, ("c",))]
    made = divided([file(1000)], [blocks], max=400)
    assert cuts(made) == [[(0, 300)], [(300, 300)], [(600, 400)]]
    assert [split.hosts for split in made] == [("a", "b"), ("a", "b"), ("c",)]


def test_small_blocks_at_the_same_host_are_one_piece():
    blocks = [Block(at, 100, ("a", f"other{at}")) for at in range(0, 400, 100)]
    made = divided([file(400)], [blocks], max=300)
    assert cuts(made) == [[(0, 300)], [(300, 100)]]
    assert made[0].hosts == ("a",)


def test_small_blocks_of_different_hosts_are_together_only_to_reach_the_smallest():
    blocks = [Block(at, 100, (f"h{at}",)) for at in range(0, 500, 100)]
    assert len(divided([file(500)], [blocks])) == 5
    # The last would be too small alone.
    assert cuts(divided([file(500)], [blocks], min=200)) == [[(0, 200)], [(200, 300)]]


def test_blocks_that_overlap_lack_or_lie():
    blocks = [Block(500, 9999, ("c",)), Block(-50, 150, ("a",)), Block(50, 100, ("b",))]
    made = divided([file(600)], [blocks])
    assert cuts(made) == [[(0, 100)], [(100, 50)], [(150, 350)], [(500, 100)]]
    assert [split.hosts for split in made] == [("a",), ("b",), (), ("c",)]


def test_a_host_with_little_of_a_split_is_not_named():
    blocks = [Block(0, 100, ("a",)), Block(100, 900, ("b",)), Block(1000, 500, ("c",))]
    assert divided([file(1500)], [blocks], min=1500)[0].hosts == ("b", "c")


def test_many_small_files_share_splits_in_order():
    files = [file(10, f"f{i:05}") for i in range(1001)]
    made = divided(files)
    assert [piece.url for split in made for piece in split.pieces] == [one.url for one in files]
    assert [len(split.pieces) for split in made] == [1001]
    # A thousand are the last to have maps of their own.
    assert len(divided(files[:1000])) == 1000
    assert len(divided(files, mesos_input_combine="false")) == 1001


def test_opening_files_counts():
    made = divided([file(0, f"f{i}") for i in range(5000)])
    assert [len(split.pieces) for split in made] == [1024, 1024, 1024, 1024, 904]


def test_a_split_has_a_limited_number_of_files():
    made = divided([file(0, f"f{i}") for i in range(12_000)], max=1 << 40)
    assert [len(split.pieces) for split in made] == [5000, 5000, 2000]


def test_combined_files_are_in_as_many_splits_as_there_are_maps_to_be():
    made = divided([file(10, f"f{i:05}") for i in range(1200)], mapreduce_job_maps=4)
    assert [len(split.pieces) for split in made] == [300] * 4


def test_large_files_stay_among_small_ones():
    files = [file(10, "a"), file(200_000, "b"), file(10, "c")]
    made = divided(files, max=100_000, min=100_000, mesos_input_combine="true")
    assert [[piece.url[-1] for piece in split.pieces] for split in made] == [
        ["a"],
        ["b"],
        ["b"],
        ["c"],
    ]


def test_small_files_are_together_with_those_of_their_host():
    files = [file(10, f"f{i}") for i in range(8)]
    where = [[Block(0, 10, ("a",) if i % 2 else ("b", "a"))] for i in range(8)]
    made = divided(files, where, mesos_input_combine="true")
    assert [split.hosts[0] for split in made] == ["b", "a"]
    assert sorted(len(split.pieces) for split in made) == [4, 4]


def test_files_that_all_hosts_have_are_shared_out_among_them():
    files = [file(10, f"f{i}") for i in range(9)]
    where = [[Block(0, 10, ("a", "b", "c"))] for _ in files]
    made = divided(files, where, mesos_input_combine="true")
    assert [len(split.pieces) for split in made] == [3, 3, 3]
    assert {split.hosts for split in made} == {("a", "b", "c")}


def job(*inputs, **conf):
    return JobSpec(
        job_id="job_1_0001",
        name="",
        user="",
        inputs=inputs,
        output="out",
        mapper=Program(),
        conf=conf,
    )


def test_a_plan(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * 1000)
    (tmp_path / "b.gz").write_bytes(b"whatever")
    made = splits.plan(job(str(tmp_path), **{MAX: "600"}))
    assert [split.pieces for split in made] == [
        (Piece(f"file://{tmp_path}/a.txt", 0, 500),),
        (Piece(f"file://{tmp_path}/a.txt", 500, 500),),
        (Piece(f"file://{tmp_path}/b.gz", 0, -1),),
    ]


def test_a_plan_of_nothing(tmp_path):
    assert splits.plan(job(str(tmp_path))) == []
    with pytest.raises(NotFound, match=r"input .*/gone'"):
        splits.plan(job(f"{tmp_path}/gone"))
