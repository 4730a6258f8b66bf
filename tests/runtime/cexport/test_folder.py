"""An export is written whole or not at all, and never over what is none."""

import os
from pathlib import Path

import pytest

from arenite.planner.errors import OutputError
from arenite.runtime.cexport import folder as writing
from arenite.runtime.cexport.folder import MARKER, check_folder, exchange, write_folder

FILES = {"a.c": b"one", "zephyr/module.yml": b"two"}


@pytest.fixture
def _in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a system that cannot exchange folders."""
    monkeypatch.setattr(writing, "exchange", lambda *_: False)


def names(folder: Path) -> set[str]:
    return {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}


def test_a_new_folder_gets_the_files_and_a_list_of_them(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", FILES)
    assert names(tmp_path / "out") == {*FILES, MARKER}
    assert (tmp_path / "out/zephyr/module.yml").read_bytes() == b"two"
    assert names(tmp_path) == {f"out/{name}" for name in (*FILES, MARKER)}


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_folder(tmp_path / "out", FILES)
    assert names(tmp_path / "out") == {*FILES, MARKER}


def test_a_previous_export_is_replaced_and_what_was_added_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(out, {**FILES, "old.c": b"old"})
    (out / "a.o").write_bytes(b"object")
    write_folder(out, {"a.c": b"new"})
    assert names(out) == {"a.c", "a.o", MARKER}
    assert (out / "a.c").read_bytes() == b"new"


def test_a_link_to_a_folder_that_was_added_stays(tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_folder(out, FILES)
    (out / "board").symlink_to(elsewhere)
    write_folder(out, FILES)
    assert (out / "board").readlink() == elsewhere


def test_what_cannot_be_copied_is_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(out, FILES)
    os.mkfifo(out / "pipe")
    with pytest.raises(OutputError, match="pipe"):
        write_folder(out, FILES)
    assert names(out) == {*FILES, MARKER}


@pytest.mark.usefixtures("_in_two_steps")
def test_without_an_exchange_it_is_replaced_too(tmp_path: Path) -> None:
    test_a_previous_export_is_replaced_and_what_was_added_stays(tmp_path)


def test_two_folders_take_each_others_name(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of {name}").touch()
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system exchanges nothing")
    assert names(tmp_path) == {"a/of b", "b/of a"}
    with pytest.raises(FileNotFoundError, match="No such file"):
        exchange(tmp_path / "a", tmp_path / "absent")


def test_what_the_system_refuses_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "out", FILES)

    def fails(*_: Path) -> bool:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(writing, "exchange", fails)
    with pytest.raises(OutputError, match="cannot be written: Operation not permitted"):
        write_folder(tmp_path / "out", {"new.c": b"new"})
    assert names(tmp_path) == {f"out/{name}" for name in (*FILES, MARKER)}


def test_other_files_are_never_written_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    with pytest.raises(OutputError, match="no export"):
        write_folder(out, FILES)
    assert names(out) == {"thesis.tex"}


@pytest.mark.parametrize("marker", ["{}", "not JSON", '{"files": 3}', '{"files": [1]}', "[]"])
def test_a_damaged_list_is_no_export(tmp_path: Path, marker: str) -> None:
    (tmp_path / MARKER).write_text(marker)
    with pytest.raises(OutputError, match="no export"):
        check_folder(tmp_path)


def test_a_file_a_link_and_a_missing_parent_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link", "missing/out"):
        with pytest.raises(OutputError):
            check_folder(tmp_path / name)


def test_the_model_may_not_lie_in_the_folder(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", FILES)
    model = tmp_path / "out" / "model.tflite"
    model.write_bytes(b"")
    with pytest.raises(OutputError, match="is in this folder"):
        check_folder(tmp_path / "out", model)


@pytest.mark.usefixtures("_in_two_steps")
def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_folder(out, FILES)
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if Path(target) == out and "arenite" in self.name and (self / "new.c").exists():
            raise OSError(os.strerror(5))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OutputError):
        write_folder(out, {"new.c": b"new"})
    monkeypatch.undo()
    assert names(out) == {*FILES, MARKER}
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
