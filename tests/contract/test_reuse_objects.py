"""Tests of the C library take an object of another build only if they would make the same."""

import json
import os
import shlex

import pytest

from support import reuse_objects


def command(build, source, *flags):
    return [
        "g++", *flags, f"-I{build}/core/generated", "-include", f"{build}/core/first.hpp",
        "-MD", "-MT", "a.o", "-MF", f"{build}/a.d", "-o", f"{build}/a.o", "-c", str(source),
    ]  # fmt: skip


@pytest.fixture
def build(tmp_path, monkeypatch):
    """A build of a source, an hour ago, and the object."""
    monkeypatch.setattr(reuse_objects, "CHECKOUT", tmp_path)
    monkeypatch.setattr(reuse_objects, "_CORE", tmp_path / "core")
    build = tmp_path / "build" / "cp311-any"
    build.mkdir(parents=True)
    (tmp_path / "core").mkdir()
    source, made = tmp_path / "core" / "a.cpp", build / "a.o"
    source.touch()
    os.utime(source, (0, 0))
    os.utime(source.parent, (0, 0))
    made.write_text("object")
    text = shlex.join(command(build, source, "-O3"))
    entry = {"directory": str(build), "command": text, "file": str(source), "output": "a.o"}
    (build / "compile_commands.json").write_text(json.dumps([entry]))
    return source, made


def test_the_object_of_the_same_command_is_taken(build, tmp_path):
    source, _ = build
    (tmp_path / "capi").mkdir()
    assert reuse_objects.main(command(tmp_path / "capi", source, "-O3")) == 0
    assert (tmp_path / "capi" / "a.o").read_text() == "object"
    assert str(source) in (tmp_path / "capi" / "a.d").read_text()


def test_other_flags_sources_and_older_objects_are_compiled(build, tmp_path):
    source, made = build
    same = command(tmp_path / "capi", source, "-O3")
    assert reuse_objects.made_before(same) == made
    assert reuse_objects.made_before(command(tmp_path / "capi", source, "-O2")) is None
    assert reuse_objects.made_before([*same[:-1], "other.cpp"]) is None
    os.utime(made, (0, 0))
    assert reuse_objects.made_before(same) is None
