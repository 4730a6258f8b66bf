"""Public names: those in the `__all__` of a package; other components import nothing else."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPONENTS = (
    "planner", "strategies", "runtime", "compression", "training", "pipeline", "cli", "compat",
)  # fmt: skip
PUBLIC_MODULES = {
    f"arenite.planner.{name}"
    for name in ("errors", "files", "lazy", "quiet_onnxruntime", "tensors", "units")
}
"""Modules all of whose names without an underscore are public."""


def sources():
    """Yield the files of all components: the component, the module, the tree."""
    for component in COMPONENTS:
        root = ROOT / component
        for path in sorted((root / "arenite" / component).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield component, module, path


FILES = {module: path for _, module, path in sources()}


def listed(path):
    """Return the `__all__` of a file, None if it has none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return None


LISTS = {
    module: names
    for module, path in FILES.items()
    if path.name == "__init__.py" and (names := listed(path)) is not None
}
"""The public names of each package."""


def imported_below(component):
    """Yield what other components import of this one although it is on no list."""
    inside = f"arenite.{component}"
    for importer, module, path in sources():
        if importer == component:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            found = []
            if isinstance(node, ast.ImportFrom) and node.module:
                found = [(node.module, alias.name) for alias in node.names]
            elif isinstance(node, ast.Import):
                found = [(alias.name, "") for alias in node.names]
            for source, name in found:
                is_inside = source == inside or source.startswith(f"{inside}.")
                if is_inside and not is_public(source, name):
                    yield f"{module}: {source}.{name}"


def is_public(source, name):
    """Tell whether a name of a module is on a list, or is a package or module that has one."""
    whole = f"{source}.{name}" if name else source
    if whole in FILES:
        return whole in LISTS or whole in PUBLIC_MODULES
    if source in PUBLIC_MODULES:
        return not name.startswith("_")
    return name in LISTS.get(source, ())


@pytest.mark.parametrize("component", COMPONENTS)
def test_other_components_import_public_names_only(component):
    found = list(imported_below(component))
    assert not found, "\n".join(found)


LAZY = sorted(module for module in LISTS if "lazily(" in FILES[module].read_text())


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_the_names_that_are_loaded_when_used(package):
    tree = ast.parse(FILES[package].read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname or alias.name: node.module for node in block.body for alias in node.names}
    module = importlib.import_module(package)
    assert seen.keys() == LISTS[package] == set(dir(module)) == set(module.__all__)
    assert all(source.startswith(f"{package}.") for source in seen.values())
    assert all(getattr(module, name) is not None for name in seen)
    # A module of the same name would take the place of what it defines once it is imported.
    assert not {name for name in seen if f"{package}.{name}" in FILES}


@pytest.mark.parametrize("package", LAZY)
def test_every_public_name_can_be_had_and_a_wrong_one_is_refused(package):
    pytest.importorskip("onnx")
    pytest.importorskip("tflite")
    module = importlib.import_module(package)
    assert all(getattr(module, name) is not None for name in LISTS[package])
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        module.nothing_of_the_kind  # noqa: B018


def test_importing_the_planner_imports_nothing_heavy():
    code = "import sys, arenite.planner; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(ROOT / "planner")},
    ).stdout.split()  # fmt: skip
    assert "numpy" not in found
    assert {name for name in found if name.startswith("arenite.planner.")} == {
        "arenite.planner.lazy"
    }


def undocumented(package):
    """Yield the public names of a package, and public members of its classes, without a text."""
    for name in LISTS[package]:
        named = getattr(importlib.import_module(package), name)
        if not inspect.isclass(named) and not inspect.isfunction(named):
            continue
        text = inspect.getdoc(named)
        if not text:
            yield name
        for member, value in vars(named).items() if inspect.isclass(named) else ():
            is_method = inspect.isroutine(value) or isinstance(value, property)
            if not is_method or member.startswith("_") or f" {member}: " in (text or ""):
                continue
            if not inspect.getdoc(value) and not inspect.getdoc(getattr(named, member, None)):
                yield f"{name}.{member}"


@pytest.mark.parametrize("package", sorted(LISTS))
def test_public_names_are_documented(package):
    found = list(undocumented(package))
    assert not found, "\n".join(found)
