"""The READMEs and CONTRIBUTING name every room there is, and what they name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPONENTS = ("planner", "strategies", "runtime", "compression", "training", "compat")
"""Those whose README has a table of modules; `cli` has a test of its own."""
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def parts(component: str) -> list[str]:
    """Return what a README must name: the folders, and the modules beside them."""
    folder = ROOT / component / "arenite" / component
    found = [
        f"{path.name}/" if path.is_dir() else path.name
        for path in folder.iterdir()
        if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py")))
    ]
    return sorted(set(found) - {"__init__.py"})


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_readme_names_every_part_of_its_component(component: str) -> None:
    readme = (ROOT / component / "README.md").read_text()
    assert [part for part in parts(component) if f"`{part}`" not in readme] == []


def test_contributing_names_every_folder_of_the_project() -> None:
    folders = {path.parent.name for path in ROOT.glob("[!.]*/README.md")}
    folders |= {"tests", "docs", "scripts"}
    assert {name for name in folders if f"`{name}/`" not in CONTRIBUTING} == set()


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", *(f"{name}/README.md" for name in (*COMPONENTS, "cli", "bench"))]
)
def test_every_path_from_the_root_that_a_page_names_exists(page: str) -> None:
    tops = "|".join((*COMPONENTS, "cli", "tests", "bench", "assets", "docs", "scripts"))
    named = re.findall(rf"`((?:{tops})/[\w./-]*)`", (ROOT / page).read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_example_of_an_operator_is_the_operator_as_it_was_added() -> None:
    sources = [
        *(ROOT / "runtime/arenite/runtime").rglob("*.py"),
        *(ROOT / "runtime/core/steps").glob("*.cpp"),
        ROOT / "tests/runtime/lowering/test_onnx_operators.py",
    ]
    code = "\n".join(path.read_text() for path in sources)
    section = CONTRIBUTING.partition("## Adding an operator\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^ *```\w+\n(.*?)^ *```$", section, re.MULTILINE | re.DOTALL)
    assert len(shown) == 4
    flat = " ".join(code.split())
    assert [block for block in shown if " ".join(block.split()) not in flat] == []
