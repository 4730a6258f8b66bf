"""The house: one namespace, and who may import whom."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPONENTS = (
    "planner", "strategies", "runtime", "compression", "training", "pipeline", "cli", "compat",
)  # fmt: skip
PRESENT = [name for name in COMPONENTS if (ROOT / name / "arenite").is_dir()]
MAY_IMPORT = {
    "planner": {"planner"},
    "strategies": {"strategies", "planner"},
    "runtime": {"runtime", "planner"},
    "compression": {"compression", "planner", "training"},
    "training": {"training", "planner"},
    "pipeline": set(COMPONENTS) - {"cli", "compat"},
    "cli": set(COMPONENTS) - {"compat"},
    "compat": set(COMPONENTS) - {"cli"},
}
FORMATS = ("bokeh", "onnx", "onnxruntime", "ortools", "tflite", "ai_edge_litert", "tflite_micro")

ENTRIES = [f"arenite.{name}" for name in PRESENT] + [
    "arenite.planner.importers",
    "arenite.cli.main",
]

IMPORT_ONE = """
import importlib, json, logging, pkgutil, sys
package = importlib.import_module(sys.argv[1])
"""
IMPORT_ALL = (
    IMPORT_ONE
    + """
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith("_core"):
        importlib.import_module(module.name)
"""
)
REPORT = """
ours = [logging.getLogger(name) for name in logging.root.manager.loggerDict
        if name.split(".")[0] == "arenite"]
handlers = sum(len(logger.handlers) for logger in [logging.root, *ours])
json.dump({"modules": sorted(sys.modules), "handlers": handlers}, sys.stdout)
"""


def import_in_fresh_process(script, name):
    """Return the modules that came along and the number of log handlers."""
    process = subprocess.run(
        [sys.executable, "-c", script + REPORT, name],
        env={"PYTHONPATH": ":".join(str(ROOT / part) for part in PRESENT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(process.stdout)


@pytest.fixture(scope="module", params=PRESENT)
def imported(request):
    """What came along when a fresh process imported every module of a component."""
    return request.param, import_in_fresh_process(IMPORT_ALL, f"arenite.{request.param}")


def test_one_portion_is_the_front_door_and_hides_no_other():
    assert list(ROOT.glob("*/arenite/__init__.py")) == [ROOT / "pipeline/arenite/__init__.py"]


def test_the_front_door_loads_nothing_until_it_is_asked():
    found = import_in_fresh_process(IMPORT_ONE, "arenite")["modules"]
    assert {each for each in found if each.startswith("arenite")} == {"arenite"}
    assert not {"numpy", "onnx", "click", "rich"} & set(found)


def test_nothing_outside_the_command_line_imports_it():
    importers = [
        str(path.relative_to(ROOT))
        for folder in (*COMPONENTS, "bench", "docs", "action")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if folder != "cli" and re.search(r"^\s*(from|import) arenite\.cli", path.read_text(), re.M)
    ]
    assert importers in ([], ["docs/generate/reference.py"])  # which documents its commands


def test_a_component_imports_only_what_it_may(imported):
    component, found = imported
    parts = {name.split(".")[1] for name in found["modules"] if name.startswith("arenite.")}
    assert parts - {"__main__"} <= MAY_IMPORT[component]


@pytest.mark.parametrize("entry", ENTRIES)
def test_format_packages_are_imported_only_when_a_file_needs_them(entry):
    found = import_in_fresh_process(IMPORT_ONE, entry)
    assert not set(FORMATS) & set(found["modules"])


def test_an_import_attaches_no_log_handler(imported):
    assert imported[1]["handlers"] == 0


@pytest.mark.parametrize("component", PRESENT)
def test_a_component_explains_itself(component):
    assert (ROOT / component / "README.md").is_file()
    assert (ROOT / component / "arenite" / component / "py.typed").is_file()
