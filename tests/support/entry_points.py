"""The entry points of this checkout's pyproject.toml, whatever version is installed."""

import atexit
import os
import shutil
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]


def stated() -> set[tuple[str, str, str]]:
    """Return the entry points that pyproject.toml states, as triples of group, name and value."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    return {
        (group, name, value)
        for group, entries in groups.items()
        for name, value in entries.items()
    }


def installed() -> set[tuple[str, str, str]]:
    """Return those of the installed package."""
    try:
        found = distribution("arenite").entry_points
    except PackageNotFoundError:
        return set()
    return {(each.group, each.name, each.value) for each in found}


def make_known() -> None:
    """Make the stated entry points known to this process and to those that it starts."""
    if stated() <= installed():
        return
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = Path(tempfile.mkdtemp(prefix="arenite-metadata-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    metadata = folder / f"arenite-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: arenite\nVersion: {project['version']}\n"
    )
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    (metadata / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in groups.items()
        )
    )
    sys.path.insert(0, str(folder))
    paths = (str(folder), os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
