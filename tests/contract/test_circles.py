"""No circle of imports between files, those for type checkers included."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPONENTS = ("planner",)


def imports(component):
    """Return the modules of a component, each with those it imports, however late."""
    root = ROOT / component
    files = {}
    for path in sorted(root.glob(f"arenite/{component}/**/*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: imported(path, files.keys()) - {name} for name, path in files.items()}


def imported(path, modules):
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name if name in modules else node.module for name in names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & modules


def circle(graph):
    """Return modules of which each imports the next and the last the first, [] if none do."""
    done = set()

    def search(module, trail):
        if module in trail:
            return trail[trail.index(module) :]
        if module in done:
            return []
        done.add(module)
        return next(
            filter(None, (search(each, [*trail, module]) for each in sorted(graph[module]))), []
        )

    return next(filter(None, (search(module, []) for module in graph)), [])


@pytest.mark.parametrize("component", COMPONENTS)
def test_no_files_import_each_other(component):
    assert circle(imports(component)) == []


def test_a_circle_would_be_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"d", "b"}, "d": set()}) == ["b", "c"]
    assert circle({"a": {"b"}, "b": set(), "c": {"a", "b"}}) == []
