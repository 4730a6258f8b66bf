"""No circle of imports between files, those for type checkers included."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPONENTS = (
    "planner", "strategies", "runtime", "compression", "training", "pipeline", "cli", "compat",
)  # fmt: skip
FOLDERS = {
    **{name: (ROOT / name, f"arenite/{name}") for name in COMPONENTS},
    "bench": (ROOT, "bench"),
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


def folders(component):
    """Return the folders of a component, at any depth, each with those that its files import.

    The files directly in a folder count as the folder. An `__init__` that only gives names to what
    lies below it counts on its own, and so does a native module.
    """
    root = ROOT / component
    paths = {}
    for path in (root / "arenite" / component).rglob("*.py*"):
        if path.suffix in {".py", ".pyi"}:
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            folder = ".".join(parts[:-1])
            module = folder if is_package else ".".join(parts)
            is_face = is_package and not defines(path)
            paths[module] = f"{folder} (names)" if is_face else folder
            if path.suffix == ".pyi":
                paths[module] = f"{folder} (native)"
    found = {folder: set() for folder in paths.values()}
    for module, others in imports(component).items():
        found[paths[module]].update(paths[other] for other in others)
    return {folder: others - {folder} for folder, others in found.items()}


def defines(path):
    """Tell whether a file defines functions or classes, and not only names for those of others."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return any(isinstance(node, kinds) for node in ast.parse(path.read_text()).body)


def tangles(graph):
    """Return the groups of nodes of which each leads to every other, in order."""

    def reached(start):
        found, pending = set(), [start]
        while pending:
            for each in graph[pending.pop()] - found:
                found.add(each)
                pending.append(each)
        return found

    leads = {node: reached(node) for node in graph}
    groups = {frozenset(other for other in leads[node] if node in leads[other]) for node in graph}
    return sorted(sorted(group) for group in groups if len(group) > 1)


KNOWN_TANGLES = {}
"""Folders that still import each other, by component; an entry goes when its folders do not."""


@pytest.mark.parametrize("component", COMPONENTS)
def test_folders_import_each_other_in_one_direction(component):
    inside = f"arenite.{component}"
    found = [
        [each.removeprefix(inside) for each in group] for group in tangles(folders(component))
    ]
    assert found == KNOWN_TANGLES.get(component, [])


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


def test_a_tangle_would_be_found():
    assert tangles({"a": {"b"}, "b": {"a", "c"}, "c": {"c", "d"}, "d": set()}) == [["a", "b"]]
