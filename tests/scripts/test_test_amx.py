"""Where the kernels of AMX cannot be emulated their test is skipped, and it is said why."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "test-amx.sh"


@pytest.fixture
def bare(tmp_path):
    """A folder of programs without an emulator; what it is called with makes further ones."""
    for name in ("bash", "dirname", "mkdir", "env", "grep", "sed"):
        (tmp_path / name).symlink_to(shutil.which(name))

    def run(**programs: str) -> str:
        for name, text in programs.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        done = subprocess.run(
            [shutil.which("bash"), SCRIPT],
            env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


DEBIAN = 'case "$1" in --print-architecture) echo amd64;; *) exit 1;; esac'


def test_elsewhere_than_on_debian_it_is_not_tried(bare):
    assert bare() == "test-amx: skipped: needs Debian on x86-64\n"


def test_who_may_not_install_is_told(bare):
    told = bare(dpkg=DEBIAN, id="echo 1000")
    assert told == "test-amx: skipped: packages cannot be installed: neither root nor sudo\n"


def test_a_debian_whose_emulator_is_too_old_is_named(bare):
    told = bare(dpkg=DEBIAN, id="echo 0", apt_get="exit 0", apt_cache="echo '  Candidate: 2.7'")
    assert told == (
        "test-amx: skipped: this Debian's Bochs is 2.7; AMX needs 3.0, which Debian 13 has\n"
    )


def test_an_emulator_without_such_a_processor_is_not_used(bare):
    told = bare(dpkg=DEBIAN, bochs="echo corei7_icelake_u")
    assert told == "test-amx: skipped: bochs has no processor with AMX\n"
