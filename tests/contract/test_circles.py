"""No circle of imports between files, those for type checkers included."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPONENTS = ("planner", "strategies", "runtime", "compression", "training", "pipeline", "cli")
FOLDERS = {
    **{name: (ROOT / name, f"arenite/{name}") for name in COMPONENTS},
    "bench": (ROOT / "bench", "."),
    "tests' helpers": (ROOT / "tests", "support"),
}
"""Of what is examined: where imports start from, and the folder there."""


def imports(folder):
    """Return the modules of a folder, each with those it imports, however late."""
    root, where = FOLDERS[folder]
    files = {}
    # Of a native module there is a stub.
    for path in sorted((root / where).rglob("*.py*")):
        if path.suffix in {".py", ".pyi"}:
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


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_files_import_each_other(folder):
    found = imports(folder)
    assert len(found) > 1
    assert circle(found) == []


def packages(component):
    """Return the parts of a component, each a folder or a file, with those it imports."""
    inside = f"arenite.{component}."
    found = {}
    for name, others in imports(component).items():
        if name.startswith(inside):
            parts = {each.removeprefix(inside).split(".")[0] for each in others}
            part = name.removeprefix(inside).split(".")[0]
            found.setdefault(part, set()).update(parts - {part})
    return found


@pytest.mark.parametrize("component", COMPONENTS)
def test_no_parts_of_a_component_import_each_other(component):
    assert circle(packages(component)) == []


def test_folders_of_the_c_export_do_not_import_what_is_built_on_them():
    root = ROOT / "runtime" / "arenite" / "runtime" / "cexport"
    inside = "arenite.runtime.cexport."

    def part(module):
        name = module.removeprefix(inside).split(".")[0]
        return name if (root / name).is_dir() else "facade"

    found = {}
    for name, others in imports("runtime").items():
        if name.startswith(inside):
            parts = {part(each) for each in others if each.startswith(inside)}
            found.setdefault(part(name), set()).update(parts - {part(name)})
    assert found["base"] == set()
    assert circle(found) == []


def test_lowering_and_the_program_file_know_nothing_of_each_other():
    found = packages("runtime")
    assert "program" not in found["lowering"]
    assert "lowering" not in found["program"]


def test_a_circle_would_be_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"d", "b"}, "d": set()}) == ["b", "c"]
    assert circle({"a": {"b"}, "b": set(), "c": {"a", "b"}}) == []
