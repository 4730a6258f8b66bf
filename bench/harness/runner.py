"""`arenite-run`, the C program: built on demand, run, and its report read."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.contest import MissingInputsError
from bench.harness.inputs import CHECKOUT

RUNNER = "arenite-run"


@dataclass(frozen=True, slots=True)
class Ran:
    """What one process reports.

    Attributes:
        median_ms: Latency.
        peak_rss_bytes: Peak resident memory.
    """

    median_ms: float
    peak_rss_bytes: int


def build_runner() -> Path:
    """Return `arenite-run`, built and installed under `build`.

    Raises:
        MissingInputsError: It cannot be built here.
    """
    folder = CHECKOUT / "build" / "capi"
    prefix = folder / "installed"
    commands: tuple[list[str | Path], ...] = (
        ["-S", CHECKOUT / "runtime" / "capi", "-B", folder,
         f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib"],
        ["--build", folder],
        ["--install", folder],
    )  # fmt: skip
    try:
        for command in commands:
            subprocess.run(["cmake", *command], check=True, stdout=subprocess.DEVNULL)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise MissingInputsError(
            f"{RUNNER} cannot be built: {error}; name one with --runner"
        ) from error
    return prefix / "bin" / RUNNER


def run_program(
    runner: Path, program: Path, inputs: Sequence[Path], num_runs: int, output: Path | None = None
) -> Ran:
    """Run a program in a process of its own.

    Args:
        runner: `arenite-run`.
        program: The file.
        inputs: Raw files in the program's order.
        num_runs: Of the model.
        output: Where the first output goes.

    Raises:
        RuntimeError: The process fails; its words.
    """
    command: list[str | Path] = [runner, program, "--runs", str(num_runs)]
    for path in inputs:
        command += ["--input", path]
    if output is not None:
        command += ["--output", output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    latency = re.search(r"^time +median ([\d.]+) ms", done.stdout, re.MULTILINE)
    memory = re.search(r"^memory +(\d+) KiB", done.stdout, re.MULTILINE)
    if done.returncode != 0 or latency is None or memory is None:
        raise RuntimeError(f"{RUNNER}: {done.stderr.strip() or done.stdout.strip()}")
    return Ran(float(latency[1]), int(memory[1]) * 1024)
