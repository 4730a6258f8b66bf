"""The rooms of the command line: no circles, and a README that names them all."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "cli" / "arenite" / "cli"
FILES = {
    ".".join(("arenite", *path.relative_to(FOLDER.parent).with_suffix("").parts)): path
    for path in FOLDER.rglob("*.py")
    if path.name != "__init__.py"
}
SHARED = {"console", "options", "planning", "render", "report", "targets"}


def imports(path):
    """Return our modules that a file imports anywhere, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found & FILES.keys()


def room(module):
    return module.split(".")[2]


def test_no_two_files_import_each_other():
    graph = {module: imports(path) for module, path in FILES.items()}
    list(TopologicalSorter(graph).static_order())


def test_shared_rooms_know_no_command():
    for module, path in FILES.items():
        if room(module) in SHARED:
            assert {room(each) for each in imports(path)} <= SHARED, module


def test_a_command_knows_no_other_command():
    commands = {module: path for module, path in FILES.items() if room(module) == "commands"}
    for module, path in commands.items():
        others = {each for each in imports(path) if room(each) == "commands"}
        assert {each.split(".")[3] for each in others} <= {module.split(".")[3]}, module


def test_the_readme_names_every_room():
    text = (ROOT / "cli" / "README.md").read_text()
    rooms = [path for path in FOLDER.rglob("*") if path.is_dir() and list(path.glob("*.py"))]
    assert all(f"`{path.name}/`" in text for path in rooms)
    single = [path for path in (FOLDER / "commands").glob("*.py") if path.stem != "__init__"]
    assert all(f"`{path.stem}`" in text for path in single)
