"""What MkDocs makes from the code while it builds, so that the pages cannot fall behind it.

A page asks for a part by its name in double braces, alone on a line.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from drawing import load_chart, memory_map
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_COMPONENTS = (
    "pipeline", "planner", "strategies", "runtime", "compression", "training", "cli", "compat",
)  # fmt: skip
sys.path[:0] = [str(ROOT / component) for component in _COMPONENTS]

import reference  # noqa: E402  # needs the path

from arenite.planner.importers import read_csv  # noqa: E402
from arenite.strategies import find  # noqa: E402

_EXAMPLE = read_csv(ROOT / "docs" / "examples" / "worked-example.csv")
_PARTS: dict[str, Callable[[], str]] = {
    "command-line": reference.command_line,
    "strategies": reference.strategies,
    "orders": reference.orders,
    "policies": reference.policies,
    "public-packages": reference.public_packages,
    "worked-example-load": lambda: load_chart(_EXAMPLE),
    "worked-example-map": lambda: memory_map(_EXAMPLE, find("greedy-by-size")(_EXAMPLE)),
    "worked-example-heights": lambda: reference.heights(_EXAMPLE),
}
_PART = re.compile(r"^\{\{ ([\w-]+)(?: ([\w.]+))? \}\}$", re.MULTILINE)
_REMOTE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//")


def on_startup(**_: object) -> None:
    """Lay the components out as a wheel does: the reference reads one package `arenite`."""
    package = ROOT / "build" / "packages" / "arenite"
    package.mkdir(parents=True, exist_ok=True)
    for component in _COMPONENTS:
        for part in (ROOT / component / "arenite").glob("[!_]*"):
            _link(package / part.name, part)
    _link(package / "__init__.py", ROOT / "pipeline" / "arenite" / "__init__.py")


def _link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Put the parts where the page asks for them."""

    def part(match: re.Match[str]) -> str:
        if match[1] == "public-names":
            return reference.public_names(match[2])
        if match[1] not in _PARTS:
            raise PluginError(f"{page.file.src_uri}: no part is named {match[1]!r}")
        return _PARTS[match[1]]()

    return _PART.sub(part, markdown)


def on_post_page(output: str, page: Page, **_: object) -> None:
    """Refuse a page that would load something from the network."""
    if found := _REMOTE.search(output):
        raise PluginError(f"{page.file.src_uri}: loads from the network: {found[0]}")
