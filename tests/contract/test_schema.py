"""The schema of program files tells the operators as the Python package does."""

from pathlib import Path

import pytest

from arenite.runtime.operators.schema import with_tables

SCHEMA = Path(__file__).parents[2] / "runtime/core/program.fbs"


def test_the_schema_is_up_to_date():
    stated = SCHEMA.read_text()
    assert with_tables(stated) == stated, "run scripts/write-schema.py"


def test_a_schema_without_its_section_of_operators_is_refused():
    with pytest.raises(ValueError, match="no section of operators"):
        with_tables("table Program {}")
