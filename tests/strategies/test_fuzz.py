"""The fuzz target builds and finds nothing; `make fuzz` throws more at it."""

import shutil
import subprocess
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "strategies" / "fuzz"
FLAGS = ["-fsanitize=address,undefined"]


@pytest.fixture(scope="module")
def sanitised(tmp_path_factory):
    """Compile one line, so that a machine without sanitizers is told from a broken target."""
    folder = tmp_path_factory.mktemp("fuzz")
    if shutil.which("g++") is None or shutil.which("make") is None:
        pytest.skip("g++ and make are needed to build the fuzz target")
    probe = folder / "probe.cpp"
    probe.write_text("int main() { return 0; }\n")
    done = subprocess.run(
        ["g++", *FLAGS, probe, "-o", folder / "probe"], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip("g++ has no address and undefined-behaviour sanitizers here")
    return folder


def test_the_native_core_answers_random_problems_without_a_fault(sanitised):
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ, f"BUILD={sanitised}", "COUNT=300"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "300 problems, no fault" in done.stdout
