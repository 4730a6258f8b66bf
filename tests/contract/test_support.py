"""The tests' helpers: one package, and one name for each module."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
HELPERS = {path.stem for path in (TESTS / "support").glob("*.py")} - {"__init__"}
ELSEWHERE = {"conftest", "tests", "bench"} | {
    path.name for path in TESTS.iterdir() if path.is_dir()
}
ELSEWHERE -= {"support", "bench"}


def imported_names(path):
    """The modules that a file imports, at its top or in a function."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


def second_names(path):
    """Names under which a file would import a module of the tests a second time."""
    return [
        name
        for name in imported_names(path)
        if name.partition(".")[0] in ELSEWHERE or name in HELPERS
    ]


def test_a_helper_has_one_name():
    found = {str(path): second_names(path) for path in TESTS.rglob("*.py")}
    assert not {path: names for path, names in found.items() if names}


def test_a_second_name_is_noticed(tmp_path):
    path = tmp_path / "test_it.py"
    path.write_text("def f():\n    import oracle\nfrom tests.support.running import build\n")
    assert sorted(second_names(path)) == ["oracle", "tests.support.running"]


def test_helpers_are_in_their_package():
    outside = [path for path in TESTS.rglob("*.py") if path.parent != TESTS / "support"]
    names = {path.relative_to(TESTS).as_posix() for path in outside if "test_" not in path.name}
    assert {name for name in names if not name.endswith("conftest.py")} == {"installed_wheel.py"}


def test_the_package_names_its_modules():
    said = (TESTS / "support" / "__init__.py").read_text()
    assert not {name for name in HELPERS if f"`{name}`" not in said}
