"""The end of a run says which tests did not run, and why."""

import subprocess
import sys

from support.skips import lines, reason_of

FILES = {
    "test_a.py": """
import pytest

pytest.importorskip("no_such_package")
""",
    "test_b.py": """
import pytest

def test_one():
    pytest.importorskip("no_such_package.part")

@pytest.mark.skipif(True, reason="needs a device")
@pytest.mark.parametrize("number", range(3))
def test_two(number):
    pass

def test_three():
    pass
""",
}


class Skipped:
    def __init__(self, nodeid, longrepr):
        self.nodeid, self.longrepr = nodeid, longrepr


def test_a_run_ends_with_the_reasons(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "support.skips", "-p", "no:cacheprovider",
         "--rootdir", tmp_path, "-c", "/dev/null", tmp_path],
        env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout.partition("tests that did not run, and why")[2].splitlines()
    assert said[1:3] == [
        "    3  needs a device: test_b.py",
        "    2  the package no_such_package is not installed: test_a.py (all), test_b.py",
    ], done.stdout


def test_where_all_ran_nothing_is_said():
    assert lines([]) == []


def test_many_files_are_counted():
    skipped = [Skipped(f"test_{letter}.py::test", "Skipped: no bench") for letter in "abcde"]
    assert lines(skipped) == ["    5  no bench: test_a.py, test_b.py, test_c.py and 2 more"]


def test_a_reason_may_be_a_place_and_a_text():
    assert reason_of(Skipped("t", ("t.py", 3, "Skipped: no sanitizers"))) == "no sanitizers"
