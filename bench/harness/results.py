"""Results of contests, a JSON file for each contest and release, and the tables made of them."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from arenite.planner.files import write_atomically
from bench.harness.contest import cells_of
from bench.harness.inputs import CHECKOUT

RESULTS: Final = CHECKOUT / "bench" / "results"
PAGES: Final = (
    *sorted((CHECKOUT / "docs" / "benchmarks").glob("*.md")),
    CHECKOUT / "docs" / "raspberry-pi.md",
)
_MARK: Final = re.compile(r"<!-- figures: ([a-z0-9-]+): (.+?) -->\n(?:\|.*\n)*")


def save(result: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """Keep a result of this release; tables of other titles that the file has stay."""
    path = folder / version("arenite") / f"{result['contest']}.json"
    before = json.loads(path.read_text()) if path.is_file() else {"tables": []}
    titles = {each["title"] for each in result["tables"]}
    machine = result["machine"]
    stamp = {"command": result["command"], "machine": machine}
    tables = [each for each in before["tables"] if each["title"] not in titles]
    tables += [{**stamp, **each} for each in result["tables"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _as_json({"contest": result["contest"], "tables": tables}))
    return path


def tables(folder: Path = RESULTS) -> dict[tuple[str, str], dict[str, Any]]:
    """Return all tables by contest and title, each of the newest release that has it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for release in sorted(folder.iterdir(), key=lambda each: _numbers(each.name)):
        for path in sorted(release.glob("*.json")):
            stated = json.loads(path.read_text())
            found |= {(stated["contest"], each["title"]): each for each in stated["tables"]}
    return found


def markdown(table: Mapping[str, Any]) -> str:
    """Return a table as Markdown."""
    lines = [list(table["columns"]), ["---"] * len(table["columns"])]
    lines += [cells_of(table, row) for row in table["rows"]]
    return "".join(f"| {' | '.join(line)} |\n".replace("  ", " ") for line in lines)


def written(page: str, found: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Return a page with the tables behind its marks `<!-- figures: CONTEST: TITLE -->`.

    Raises:
        KeyError: A mark names a table that no result has.
    """
    return _MARK.sub(
        lambda mark: (
            f"<!-- figures: {mark[1]}: {mark[2]} -->\n{markdown(found[mark[1], mark[2]])}"
        ),
        page,
    )


def shown(page: str) -> Sequence[tuple[str, str]]:
    """Return contest and title of each mark of a page."""
    return [(mark[1], mark[2]) for mark in _MARK.finditer(page)]


def _numbers(release: str) -> list[int]:
    return [int(each) for each in release.split(".")]


def _as_json(stated: Mapping[str, Any]) -> bytes:
    """Return JSON with a line for each row."""
    text = json.dumps(stated, indent=1, ensure_ascii=False)
    rows = re.compile(r"\[\n\s+(?:[^\[\]{}]*?)\n\s+\]")
    return (rows.sub(lambda row: re.sub(r"\n\s+", " ", row[0]), text) + "\n").encode()
