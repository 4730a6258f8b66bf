"""Programs kept in a folder."""

import io
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from arenite.compat import cache
from arenite.compat.cache import (
    Model,
    RefusedError,
    UnavailableError,
    made,
    note,
    noted,
    open_program,
)
from arenite.planner.errors import AreniteError, MissingDependencyError, OutputError

onnx = pytest.importorskip("onnx")
NAME = Path(__file__).stem
NETWORK = """<ir_version: 8, opset_import: ["": 17]>
graph (float[n,3] x) => (float[n,3] y) {y = Relu(x)}"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def content():
    return onnx.parser.parse_model(NETWORK).SerializeToString()


def programs(folder):
    return sorted(folder.glob("*.arena"))


def run(session, rows=2):
    with session:
        (made,) = session.run({"x": np.full((rows, 3), -1, np.float32)}).values()
    return made


def write_and_count(model, output, **_):
    """Count the calls in the model's folder."""
    with (model.parent / "calls").open("a") as stream:
        stream.write("x")
    output.write_text("made")


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A file that `write_and_count` takes for a model."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    (tmp_path / "model.txt").write_text("model")
    return tmp_path / "model.txt"


def lack(*_):
    """Fail for a reason that is not the model's."""
    raise MissingDependencyError("package", "extra", "building")


def refuse(*_):
    """Refuse the model."""
    raise AreniteError("reason")


def read(path):
    return path.read_text()


def take(path, **options):
    return made(Model.of(path, ".txt"), f"{NAME}:write_and_count", options, ".txt", read)


def test_a_model_is_built_once_and_again_if_the_program_is_damaged(folder, content, monkeypatch):
    model = Model.of(content, ".onnx")
    assert not run(open_program(model, {"dims": {"n": 2}})).any()
    (kept,) = programs(folder)
    whole = kept.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(cache, "_run", None)  # nothing is built
        run(open_program(model, {"dims": {"n": 2}}))
    assert not list(folder.glob("*.new*"))
    kept.write_bytes(whole[:100])
    run(open_program(model, {"dims": {"n": 2}}))
    assert [each.read_bytes() for each in programs(folder)] == [whole]


def test_a_refusal_is_kept_and_states_the_reason(folder, monkeypatch):
    model = Model.of(b"no model", ".onnx")
    with pytest.raises(RefusedError) as first:
        open_program(model, {})
    monkeypatch.setattr(cache, "_run", None)
    with pytest.raises(RefusedError, match="ONNX") as second:
        open_program(model, {})
    assert str(first.value) == str(second.value)


def test_what_a_missing_package_prevents_is_tried_again(folder, text):
    model = Model.of(text, ".txt")
    for _ in range(2):
        with pytest.raises(UnavailableError, match="package"):
            made(model, f"{NAME}:lack", {}, ".txt", read)
    assert not list(folder.glob("*.refused"))


@pytest.mark.parametrize("is_there", [True, False])
def test_a_refusal_is_kept_only_if_onnxruntime_was_there(folder, text, monkeypatch, is_there):
    kinds = []

    def run_here(task, model, output, options):
        stated = io.StringIO(json.dumps([task, str(model), str(output), options]))
        monkeypatch.setattr("sys.stdin", stated)
        monkeypatch.setattr("sys.stdout", io.StringIO())
        cache.work()
        kinds.append(sys.stdout.getvalue())
        raise RefusedError("reason", is_final=kinds[-1] == "\0refused\1reason")

    monkeypatch.setattr(cache, "find_spec", lambda _: object() if is_there else None)
    monkeypatch.setattr(cache, "_run", run_here)
    with pytest.raises(RefusedError):
        made(Model.of(text, ".txt"), f"{NAME}:refuse", {}, ".txt", read)
    assert bool(list(folder.glob("*.refused"))) == is_there


def test_nothing_is_kept_where_the_cache_is_off(text, tmp_path, monkeypatch):
    monkeypatch.setenv("ARENITE_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert take(text) == "made"
    assert not (tmp_path / "home").exists()


def test_a_folder_that_cannot_be_made_is_done_without(text, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path / "file"))
    assert take(text) == "made"


def test_what_was_not_used_for_longest_goes_first(folder, text, monkeypatch):
    monkeypatch.setattr(
        cache, "_run", lambda _task, _model, output, _: output.write_bytes(b"made")
    )
    monkeypatch.setattr(cache, "LIMIT", 3 * len("made"))
    for number in (1, 2, 3, 1, 4):
        take(text, number=number)
        for path in folder.glob("*.txt"):
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    monkeypatch.setattr(cache, "_run", None)
    for number in (1, 3, 4):
        take(text, number=number)
    with pytest.raises(TypeError):
        take(text, number=2)


def test_an_arena_file_is_taken_as_it_is(folder, tmp_path, content):
    import arenite

    (tmp_path / "m.onnx").write_bytes(content)
    arenite.build(tmp_path / "m.onnx", tmp_path / "m.arena", dims={"n": 2})
    assert not run(open_program(Model.of(tmp_path / "m.arena", ".onnx"), {})).any()
    assert not folder.exists()


def test_what_several_processes_want_at_once_is_made_once(folder, text):
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        assert list(pool.map(take, [text] * 4)) == ["made"] * 4
    assert (text.parent / "calls").read_text() == "x"
    assert [each.suffix for each in folder.iterdir() if each.is_file()] == [".txt"]


def test_a_folder_that_cannot_be_written_to_is_read(folder, text):
    assert take(text) == "made"
    locks = folder / "locks"
    for each in locks.iterdir():
        each.unlink()
    locks.rmdir()
    locks.write_text("in the way of locks")
    before = sorted(folder.iterdir())
    assert take(text) == take(text, number=1) == take(text, number=1) == "made"
    assert (text.parent / "calls").read_text() == "xxx"
    assert sorted(folder.iterdir()) == before


def fill(model, output, **_):
    """Write where there is space: not in the folder of the cache."""
    if output.parent.name == "cache":
        raise OutputError("No space left on device", path=output)
    output.write_text("made")


def test_without_space_in_the_folder_a_program_is_made_elsewhere(folder, text):
    assert made(Model.of(text, ".txt"), f"{NAME}:fill", {}, ".txt", read) == "made"
    assert not [each for each in folder.iterdir() if each.is_file()]


def test_values_are_noted_beside_the_programs(folder, content):
    model = Model.of(content, ".onnx")
    assert noted(model, "sizes") is None
    note(model, "sizes", {"n": [1, 8]})
    assert noted(model, "sizes") == {"n": [1, 8]}
