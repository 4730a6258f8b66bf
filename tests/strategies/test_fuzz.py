"""The fuzz target builds and finds nothing; `make fuzz` throws more at it."""

import subprocess
from pathlib import Path

FUZZ = Path(__file__).resolve().parents[2] / "strategies" / "fuzz"


def test_the_native_core_answers_random_problems_without_a_fault(sanitised):
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ, f"BUILD={sanitised / 'fuzz'}", "COUNT=300"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "300 problems, no fault" in done.stdout
