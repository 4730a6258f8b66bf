"""Whoever takes a wheel gets the licences of what is linked into it."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LICENCES = ROOT / "scripts" / "licences"
BY_THE_BUILD = {"nanobind", "robin-map", "zstd"}
"""Libraries that no script fetches: the build brings them, or the image has them."""


def fetched():
    """The libraries whose sources wheels are made with."""
    lines = (ROOT / "scripts" / "wheel-sources.sha256").read_text().splitlines()
    return {line.split()[1].partition("_")[0] for line in lines}


def test_each_library_in_a_wheel_has_its_licence_beside_the_scripts():
    assert {path.stem for path in LICENCES.iterdir()} == fetched() | BY_THE_BUILD


def test_each_licence_names_whom_it_is_of_and_goes_into_the_wheel():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    taken = {path for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    for path in LICENCES.iterdir():
        assert path in taken
        assert "copyright" in path.read_text(encoding="utf-8").lower()


def test_every_library_that_is_fetched_is_built():
    script = (ROOT / "scripts" / "wheel-libraries.sh").read_text()
    (names,) = (line for line in script.splitlines() if line.startswith("for name in "))
    assert set(names.removeprefix("for name in ").partition(";")[0].split()) == fetched()
