"""The one writer of results: standard output, and files beside it."""

import json
import os

import click
import pytest

from arenite.cli.console.results import Results
from arenite.planner.errors import OutputError


def test_people_get_text_and_programs_get_json(capsys):
    Results(as_json=False).show({"height": 3}, lambda console: console.print("three"))
    assert capsys.readouterr().out == "three\n"
    Results(as_json=True).show({"height": 3}, lambda console: console.print("three"))
    assert json.loads(capsys.readouterr().out) == {"height": 3}


def test_json_has_no_numbers_that_json_does_not_have():
    with pytest.raises(ValueError, match="not JSON compliant"):
        Results(as_json=True).show({"ratio": float("nan")}, lambda _console: None)


def test_text_and_bytes_are_written_and_remembered(tmp_path):
    results = Results(as_json=True)
    results.reserve(tmp_path / "a", None, tmp_path / "b")
    results.write(tmp_path / "a", lambda: "naïve\n")
    results.write(None, lambda: pytest.fail("nobody wants it"))
    results.write(tmp_path / "b", lambda: b"\x00\xff")
    assert (tmp_path / "a").read_text("utf-8") == "naïve\n"
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"
    assert results.written == [tmp_path / "a", tmp_path / "b"]


def test_what_fails_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "old"
    path.write_text("old")

    def fails():
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        Results(as_json=False).write(path, fails)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_outputs_are_two_files(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(click.UsageError, match="two outputs name the same file"):
        Results(as_json=False).reserve(tmp_path / "a", tmp_path / "link")


def test_an_input_is_never_overwritten(tmp_path):
    model = tmp_path / "model"
    model.touch()
    with pytest.raises(OutputError, match="this is an input; choose another name"):
        Results(as_json=False).reserve(model, sources=(None, model))


@pytest.mark.parametrize(
    ("name", "reason"), [("absent/file", "there is no folder"), (".", "not a regular file")]
)
def test_a_place_that_takes_no_file_is_refused_before_the_work(tmp_path, name, reason):
    with pytest.raises(OutputError, match=reason):
        Results(as_json=False).reserve(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_is_refused_before_the_work(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="is read-only"):
        Results(as_json=False).reserve(tmp_path / "file")


def test_what_the_system_refuses_names_the_file(tmp_path):
    path = tmp_path / "absent" / "file"
    with pytest.raises(OutputError, match="No such file") as refused:
        Results(as_json=False).write(path, lambda: "text")
    assert refused.value.path == path
