"""What is remembered of sandboxes that were removed."""

from __future__ import annotations

from pathlib import Path

from agent.sandboxes.removals import Removal, Removals


def removal(number: int, executor: str = "") -> Removal:
    return Removal(f"c{number}", "F", executor or f"e{number}", float(number))


def test_they_are_found_by_container_and_by_executor_also_after_a_restart(tmp_path):
    made = Removals(tmp_path / "x" / "removed")
    for number in range(3):
        made.add(removal(number, "same"))
    for each in (made, Removals(tmp_path / "x" / "removed")):
        assert each.of_container("c1") == removal(1, "same")
        assert each.of_executor("F", "same") == removal(2, "same")
        assert each.of_executor("G", "same") is None
        assert each.of_container("c9") is None


def test_only_the_newest_are_kept_and_the_file_does_not_grow_for_ever(tmp_path):
    path = tmp_path / "removed"
    made = Removals(path, limit=10)
    for number in range(100):
        made.add(removal(number))
    for each in (made, Removals(path, limit=10)):
        assert len(each) == 10
        assert each.of_container("c89") is None
        assert each.of_executor("F", "e89") is None
        assert each.of_container("c90") is not None
    assert len(path.read_text().splitlines()) <= 20


def test_a_damaged_line_costs_itself_alone(tmp_path: Path):
    path = tmp_path / "removed"
    Removals(path).add(removal(1))
    with path.open("ab") as file:
        file.write(b'[1]\n{}\nnull\n\xff\n["a","b","c","d"]\n["c2","F","e2"')
    again = Removals(path)
    assert len(again) == 1
    again.add(removal(3))
    assert len(Removals(path)) == 2
