"""Without cross compilers and emulators the tests on boards are skipped, and it is said why."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "test-mcu.sh"
PACKAGES = (
    "gcc-arm-none-eabi", "libnewlib-arm-none-eabi", "qemu-system-arm", "gcc-riscv64-unknown-elf",
    "picolibc-riscv64-unknown-elf", "qemu-system-misc",
)  # fmt: skip


@pytest.fixture
def bare(tmp_path):
    """A folder of programs without compilers; what it is called with makes further ones."""
    for name in ("bash", "dirname", "mkdir", "env"):
        (tmp_path / name).symlink_to(shutil.which(name))

    def run(**programs: str) -> subprocess.CompletedProcess[str]:
        for name, text in programs.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        return subprocess.run(
            [shutil.which("bash"), SCRIPT, tmp_path / "python"],
            env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_elsewhere_than_on_debian_the_packages_are_named(bare):
    done = bare()
    assert done.returncode == 0
    assert "test-mcu: skipped: needs Debian, or these by hand:" in done.stdout
    assert all(package in done.stdout for package in PACKAGES)


def test_who_may_not_install_is_told(bare):
    done = bare(apt_get="exit 1", id="echo 1000")
    assert (done.returncode, done.stdout) == (
        0, "test-mcu: skipped: packages cannot be installed: neither root nor sudo\n",
    )  # fmt: skip


def test_packages_that_cannot_be_had_are_named(bare):
    done = bare(apt_get="exit 1", id="echo 0")
    assert done.returncode == 0
    assert "test-mcu: skipped: cannot install " in done.stdout


def test_what_is_installed_runs_the_tests(bare, tmp_path):
    done = bare(
        apt_get="exit 0", id="echo 0", python=f'echo "$ARENITE_MCU $@" > "{tmp_path}/asked"'
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "asked").read_text().startswith("1 -m pytest tests/mcu --numprocesses 2 ")
