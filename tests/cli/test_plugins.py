"""Strategies of other packages that cannot be used."""

import os
import subprocess
import sys

import pytest

PACKAGES = {
    "missing": "their-missing = their_missing:Theirs",
    "raising": "their-raising = their_raising:Theirs",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two packages, laid out as pip does, and a model."""
    folder = tmp_path_factory.mktemp("packages")
    for name, line in PACKAGES.items():
        metadata = folder / f"their_{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: their-{name}\nVersion: 1.0\n"
        )
        (metadata / "entry_points.txt").write_text(f"[arenite.strategies]\n{line}\n")
    (folder / "their_raising.py").write_text("raise OSError('no licence\\n\\x1b[31m')\n")
    (folder / "m.csv").write_text("id,lower,upper,size\na,0,2,32\nb,1,5,28\n")
    return folder


@pytest.mark.parametrize("line", ["strategies", "inspect m.csv", "plan m.csv -o p.json"])
def test_commands_leave_out_what_cannot_be_imported_and_name_its_package(folder, line):
    paths = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    ended = subprocess.run(
        [sys.executable, "-m", "arenite", *line.split()], cwd=folder, capture_output=True,
        text=True, check=False, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert ended.returncode == 0
    assert "60" in ended.stdout or "best" in ended.stdout
    warnings = sorted(ended.stderr.splitlines())
    assert len(warnings) == len(PACKAGES)
    for name, warning in zip(PACKAGES, warnings, strict=True):
        about = f"WARNING: strategy 'their-{name}' of their-{name} (their_{name}:Theirs)"
        assert warning.startswith(f"{about} cannot be imported: ")
        assert warning.endswith("; it is left out")
        assert warning.isprintable()
