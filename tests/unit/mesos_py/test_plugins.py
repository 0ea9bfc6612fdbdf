from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mesos_py import plugins
from mesos_py.errors import InvalidValue

GROUP = "mesos_py_test.things"
BUILTINS = {
    "path": "pathlib:Path",
    "nested": "pathlib:Path.cwd",
    "absent": "no_such_module_here:X",
    "missing": "pathlib:Missing",
    "value": "sys:maxsize",
}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs a distribution with entry points, as pip would."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(dist: str, entries: dict[str, str], at: Path = tmp_path) -> None:
        info = at / f"{dist}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))

    return make


def test_a_builtin_is_found_by_name() -> None:
    assert plugins.resolve(GROUP, BUILTINS, "path") is Path
    assert plugins.resolve(GROUP, BUILTINS, "nested") == Path.cwd


def test_what_is_not_chosen_is_not_imported() -> None:
    plugins.resolve(GROUP, BUILTINS, "path")
    assert "no_such_module_here" not in sys.modules


def test_an_entry_point_is_found_by_name(install) -> None:
    install("their-things", {"theirs": "collections:OrderedDict"})
    assert plugins.resolve(GROUP, BUILTINS, "theirs").__name__ == "OrderedDict"


def test_names_are_builtins_and_entry_points(install) -> None:
    install("their-things", {"theirs": "collections:OrderedDict", "path": "x:y"})
    assert plugins.names(GROUP, BUILTINS) == sorted([*BUILTINS, "theirs"])


def test_a_builtin_cannot_be_replaced(install) -> None:
    install("their-things", {"path": "collections:OrderedDict"})
    assert plugins.resolve(GROUP, BUILTINS, "path") is Path


def test_an_unknown_name_lists_the_known_ones(install) -> None:
    install("their-things", {"theirs": "collections:OrderedDict"})
    with pytest.raises(InvalidValue, match="known are: path, theirs"):
        plugins.resolve(GROUP, {"path": "pathlib:Path"}, "typo")


def test_an_unknown_name_among_none() -> None:
    with pytest.raises(InvalidValue, match="known are: none"):
        plugins.resolve(GROUP, {}, "typo")


def test_an_unknown_name_is_that_of_the_field_where_it_was_given() -> None:
    with pytest.raises(InvalidValue, match=r"^isolation: 'typo'"):
        plugins.resolve(GROUP, {}, "typo", "isolation")


@pytest.mark.parametrize("value", ["no_such_module_here:X", "collections:Missing", "sys:maxsize"])
def test_a_broken_entry_point_names_its_distribution(install, value: str) -> None:
    install("their-things", {"theirs": value})
    with pytest.raises(InvalidValue, match="of their-things"):
        plugins.resolve(GROUP, BUILTINS, "theirs")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent", "no_such_module_here"),
        ("missing", "Missing"),
        ("value", "not a class or function"),
    ],
)
def test_a_broken_builtin_says_why(name: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        plugins.resolve(GROUP, BUILTINS, name)


def test_a_module_that_fails_on_import_is_told_with_its_error(install, tmp_path: Path) -> None:
    (tmp_path / "fails_on_import.py").write_text("raise RuntimeError('no licence')")
    install("their-things", {"theirs": "fails_on_import:X"})
    with pytest.raises(InvalidValue, match="RuntimeError: no licence") as caught:
        plugins.resolve(GROUP, BUILTINS, "theirs")
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_name_that_two_distributions_claim_is_refused(install) -> None:
    install("one-thing", {"theirs": "collections:OrderedDict"})
    install("other-thing", {"theirs": "collections:Counter"})
    with pytest.raises(InvalidValue, match="one-thing and other-thing"):
        plugins.resolve(GROUP, BUILTINS, "theirs")
