"""Where things come from: a package manager as it is configured, and nowhere else."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOST = re.compile(
    r"\b(deb|ftp|security|snapshot|archive)(\.[a-z]+)*\.(debian|ubuntu)\.(org|com)\b"
    r"|\b(mirrors?|files)\.[a-z.]+\.(org|com|net|edu)\b|/debian/[p]ool/|/pypi/[s]imple|://pypi\.org"
    r"|--(extra-)?index-url|\bmirror="
)
DOWNLOAD = re.compile(r"\b(curl|wget|urlopen|urlretrieve|requests\.get)\b")
RECIPES = ("scripts/", ".ci/", "Makefile", "CMakeLists.txt", "pyproject.toml")


def tracked_texts():
    """The name and text of every file that is part of the project, but for large data."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and its checkout: it asks which files are the project's")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().strip("\0").split("\0"):
        path = ROOT / name
        if path.is_file() and path.stat().st_size < 1 << 18:
            yield name, path.read_bytes().decode(errors="ignore")


def test_no_file_names_a_host_of_packages():
    found = [(name, HOST.search(text)) for name, text in tracked_texts()]
    assert not {name: match[0] for name, match in found if match}


def test_no_recipe_downloads_by_itself():
    recipes = [each for each in tracked_texts() if any(part in each[0] for part in RECIPES)]
    assert len(recipes) > 5
    assert not [name for name, text in recipes if DOWNLOAD.search(text)]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (HOST, "http://{}.debian.org/debian".format("deb")),
        (HOST, "https://{}.example.org/simple".format("mirror")),
        (HOST, "https://{}.org/simple".format("pypi")),
        (DOWNLOAD, "{} -fsSL it".format("curl")),
        (DOWNLOAD, "{} it".format("wget")),
    ],
)
def test_what_is_forbidden_is_noticed(pattern, line):
    assert pattern.search(line)
