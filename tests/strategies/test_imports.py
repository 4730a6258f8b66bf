"""Which module of the strategies knows which."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import arenite.strategies

ROOT = Path(arenite.strategies.__file__).parent
PACKAGE = "arenite.strategies"


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(text: str) -> set[str]:
    """Return the modules that are imported anywhere, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def check(texts: dict[str, str]) -> None:
    """Raise CycleError if modules import each other in a circle.

    A package's list of what it offers imports its modules, which then name their package
    only to reach each other: that is no circle.
    """
    packages = {name for name in texts if any(other.startswith(f"{name}.") for other in texts)}
    graph = {name: imported(text) & texts.keys() - packages for name, text in texts.items()}
    TopologicalSorter(graph).prepare()


def test_no_two_modules_import_each_other() -> None:
    check({name: path.read_text() for name, path in MODULES.items()})


def test_a_circle_inside_a_function_is_seen() -> None:
    with pytest.raises(CycleError):
        check({"p.a": "def f():\n    from p.b import x", "p.b": "from p import a"})


def test_one_module_borders_on_the_native_core() -> None:
    core = f"{PACKAGE}._core"
    bordering = [name for name, path in MODULES.items() if core in imported(path.read_text())]
    assert bordering == [f"{PACKAGE}.base.native"]


def test_the_root_lists_what_the_folders_hold_and_no_folder_imports_it() -> None:
    roots = {f"{PACKAGE}.{path.stem}" for path in ROOT.glob("[a-z]*.py")}
    assert f"{PACKAGE}.table" in roots
    for name in MODULES.keys() - roots - {PACKAGE}:
        assert not imported(MODULES[name].read_text()) & roots, name


def test_the_public_names_are_documented() -> None:
    for name in arenite.strategies.__all__:
        assert f"`{name}`" in (arenite.strategies.__doc__ or "")


def test_policies_are_loaded_when_they_are_asked_for() -> None:
    script = "import sys, arenite.strategies as s; s.find('best'); print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = run.stdout.split()
    assert f"{PACKAGE}.place.table" in loaded
    assert not [name for name in loaded if name.startswith((f"{PACKAGE}.bands", "ortools"))]
    assert f"{PACKAGE}.policies" not in loaded
