"""The schema of program files is the one that the operators give."""

import subprocess
import sys
from pathlib import Path

import pytest

from arenite.runtime.operators import with_tables

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "runtime" / "core" / "program.fbs"


def write_schema(*arguments):
    command = [sys.executable, ROOT / "scripts" / "write-schema.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_schema_is_up_to_date():
    done = write_schema("--check")
    assert done.returncode == 0, done.stderr


def test_an_old_schema_is_noticed_and_mended(tmp_path):
    stated = SCHEMA.read_text(encoding="utf-8")
    schema = tmp_path / "program.fbs"
    schema.write_text(stated.replace("table Conv2D {", "table Conv2D {\n  old: uint;"), "utf-8")
    old = schema.read_text(encoding="utf-8")
    assert old != stated
    done = write_schema("--check", schema)
    assert done.returncode == 1
    assert f"{schema} is out of date" in done.stderr
    assert schema.read_text(encoding="utf-8") == old
    assert write_schema(schema).returncode == 0
    assert schema.read_text(encoding="utf-8") == stated


def test_a_schema_without_its_section_of_operators_is_refused():
    with pytest.raises(ValueError, match="no section of operators"):
        with_tables("table Program {}")
