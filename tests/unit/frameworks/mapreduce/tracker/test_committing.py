"""The output directory of a job, also when the tracker dies at any step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.tracker.committing import Output, Owner
from mesos_py.errors import AlreadyExists, NotFound

JOB = "job_20261128141500_0001"
OTHER = "job_20261128141500_0002"


def spec(output: str, job_id: str = JOB) -> JobSpec:
    return JobSpec(
        job_id=job_id, name="", user="u", inputs=("i",), output=output, mapper=Program(command="m")
    )


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "above" / "out"


@pytest.fixture
def output(there: Path) -> Output:
    return Output(spec(str(there)))


def write(there: Path, attempt: str, text: str = "x\n", name: str = "part-00000") -> str:
    path = there / "_temporary" / f"attempt_20261128141500_0001_r_{attempt[1:]:0>6}_0" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return str(path)


def content(there: Path) -> dict[str, str]:
    files = (one for one in there.rglob("*") if one.is_file())
    return {str(one.relative_to(there)): one.read_text() for one in files}


def test_a_job_from_beginning_to_end(output, there):
    output.prepare()
    output.commit(write(there, "a0", "one\n"))
    output.commit(write(there, "a1", "two\n", "part-00001.gz"))
    write(there, "a2", "of a twin\n")
    assert "_SUCCESS" not in content(there)
    output.succeed()
    assert content(there) == {"part-00000": "one\n", "part-00001.gz": "two\n", "_SUCCESS": ""}
    assert not (there / "_temporary").exists()


@pytest.mark.parametrize("made", [Path.mkdir, Path.touch], ids=["directory", "file"])
def test_an_output_that_exists_is_refused_and_left_alone(
    output, there, made: Callable[[Path], None]
):
    there.parent.mkdir()
    made(there)
    with pytest.raises(AlreadyExists, match="exists already"):
        output.prepare()
    output.undo()
    assert there.exists()


def test_of_two_jobs_with_the_same_output_one_is_refused_by_name(output, there):
    output.prepare()
    with pytest.raises(AlreadyExists, match=f"{JOB} is writing it"):
        Output(spec(str(there), OTHER)).prepare(again=True)
    Output(spec(str(there), OTHER)).undo()
    assert content(there) == {"_temporary/_job": f"{JOB}\n"}


def test_preparing_goes_on_where_it_ended(output, there):
    output.prepare()
    output.prepare(again=True)
    output.undo()
    assert not there.exists()
    there.mkdir(parents=True)
    output.prepare(again=True)
    assert content(there) == {"_temporary/_job": f"{JOB}\n"}
    (there / "_temporary" / "_job").unlink()
    output.prepare(again=True)
    assert content(there) == {"_temporary/_job": f"{JOB}\n"}


def test_the_output_of_a_job_that_was_never_begun_is_used(output, there):
    output.prepare(state="file:///s")
    asked: list[Owner] = []

    def is_abandoned(owner: Owner) -> bool:
        asked.append(owner)
        return True

    after = Output(spec(str(there), OTHER))
    after.prepare(state="file:///t", is_abandoned=is_abandoned)
    assert asked == [Owner(JOB, "file:///s")]
    # It is told again after a crash, and only one can have it.
    after.prepare(again=True)
    third = Output(spec(str(there), OTHER[:-1] + "3"))
    with pytest.raises(AlreadyExists, match=rf"{OTHER} is writing it \(.* file:///t\)"):
        third.prepare(is_abandoned=lambda owner: owner.job_id == JOB)
    # Nor does the first one get it back, or remove it.
    with pytest.raises(AlreadyExists, match=OTHER):
        output.prepare(again=True)
    output.undo()
    after.commit(write(there, "a0", "one\n"))
    output.fail()
    after.succeed()
    assert content(there) == {"part-00000": "one\n", "_SUCCESS": ""}


def test_a_job_may_have_its_output_back_from_one_that_was_never_begun_either(output, there):
    after = Output(spec(str(there), OTHER))
    output.prepare()
    after.prepare(is_abandoned=lambda owner: owner.job_id == JOB)
    output.prepare(is_abandoned=lambda owner: owner.job_id == OTHER)
    with pytest.raises(AlreadyExists, match=f"{JOB} is writing it"):
        after.prepare(again=True)
    output.undo()
    assert not there.exists()


def test_what_is_left_of_owners_when_their_removal_was_cut_off_is_removed(output, there):
    after = Output(spec(str(there), OTHER))
    output.prepare()
    after.prepare(is_abandoned=lambda _: True)
    (there / "_temporary" / "_job").unlink()
    after.fail()
    assert not there.exists()


@pytest.mark.parametrize("name", ["part-00000", "_temporary/attempt_x/part-00000", "notes.txt"])
def test_an_output_in_which_anything_was_written_is_nobody_elses(output, there, name):
    output.prepare()
    (there / name).parent.mkdir(exist_ok=True)
    (there / name).write_text("mine")
    before = content(there)
    with pytest.raises(AlreadyExists, match=JOB):
        Output(spec(str(there), OTHER)).prepare(is_abandoned=lambda _: True)
    assert content(there) == before


def test_an_empty_output_is_refused_as_such(output, there):
    there.mkdir(parents=True)
    with pytest.raises(AlreadyExists, match="is empty: it would have to be removed first"):
        output.prepare()


def test_what_another_has_written_is_never_adopted(output, there):
    there.mkdir(parents=True)
    (there / "part-00000").write_text("old")
    with pytest.raises(AlreadyExists):
        output.prepare(again=True)
    assert content(there) == {"part-00000": "old"}


def test_committing_again_changes_nothing(output, there):
    output.prepare()
    part = write(there, "a0", "one\n")
    for _ in range(2):
        output.commit(part)
        assert content(there)["part-00000"] == "one\n"
    with pytest.raises(NotFound):
        output.commit(str(there / "_temporary" / "a9" / "part-00009"))


def test_a_copy_that_was_cut_off_is_done_again(output, there):
    output.prepare()
    part = write(there, "a0", "whole\n")
    (there / "part-00000").write_text("who")
    output.commit(part)
    assert content(there)["part-00000"] == "whole\n"


@pytest.mark.parametrize("end", [Output.succeed, Output.fail], ids=["succeed", "fail"])
def test_an_end_that_was_cut_off_is_gone_through_again(
    output, there, end: Callable[[Output], None], monkeypatch: pytest.MonkeyPatch
):
    """Stopped before each call that changes something, then once more."""

    class Died(BaseException):
        pass

    def steps_before_death(number: int) -> bool:
        """Whether it came to its end."""
        left = number

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal left
                if left == 0:
                    raise Died
                left -= 1
                return real(*args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            for name in ("unlink", "rmdir", "open", "rename", "replace", "link"):
                patch.setattr(os, name, counted(getattr(os, name)))
            try:
                end(output)
            except Died:
                return False
        return True

    output.prepare()
    output.commit(write(there, "a0", "one\n"))
    write(there, "a1")
    number = 0
    while not steps_before_death(number):
        number += 1
        assert (end is Output.succeed) or "_SUCCESS" not in content(there)
        assert content(there)["part-00000"] == "one\n"
    assert number > 3
    expected = {"part-00000": "one\n"} | ({"_SUCCESS": ""} if end is Output.succeed else {})
    assert content(there) == expected


def test_a_job_that_failed_before_any_part_can_be_run_again(output, there):
    output.prepare()
    write(there, "a0")
    output.fail()
    output.fail()
    Output(spec(str(there), OTHER)).prepare()


def test_what_a_late_attempt_leaves_is_removed_later(output, there):
    output.prepare()
    output.commit(write(there, "a0", "one\n"))
    output.succeed()
    write(there, "a1", "late\n")
    output.tidy()
    assert content(there) == {"part-00000": "one\n", "_SUCCESS": ""}


@pytest.mark.parametrize("end", [Output.succeed, Output.fail, Output.tidy])
def test_the_next_job_with_the_same_output_loses_nothing(
    output, there, end: Callable[[Output], None]
):
    """Its user removed what this one had made, and ran another one at once."""
    output.prepare()
    output.succeed()
    (there / "_SUCCESS").unlink()
    there.rmdir()
    other = Output(spec(str(there), OTHER))
    other.prepare()
    write(there, "a1", "late\n")
    theirs = there / "_temporary" / "attempt_20261128141500_0002_r_000000_0" / "part-00000"
    theirs.parent.mkdir()
    theirs.write_text("theirs\n")
    end(output)
    assert "_SUCCESS" not in content(there)
    other.commit(str(theirs))
    other.succeed()
    assert content(there) == {"part-00000": "theirs\n", "_SUCCESS": ""}


def test_also_where_directories_are_nothing():
    output = Output(spec("memory://committing/out"))
    output.prepare()
    with pytest.raises(AlreadyExists):
        Output(spec("memory://committing/out", OTHER)).prepare()
    output.fail()
