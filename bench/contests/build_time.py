"""Seconds of a build of the whole native part from nothing, and the size of the wheel."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.harness import timed_command
from bench.harness.contest import TABLE, Asked, MissingInputsError, Row, contest, option
from bench.harness.inputs import CHECKOUT
from bench.harness.measuring import timed

MOST_SECONDS = 240
"""Of two cores."""
_BUILD, _FILES = "A build from nothing", "The slowest files"


@contest(
    {
        _BUILD: {"files": "", "compilers": "", "wall, s": ".0f", "processor, s": ".0f",
                 "wheel, B": ""},
        _FILES: {"file": "", "processor, s": ".1f"},
    },
    options=[
        option("--jobs", type=int, default=2, help="compilers at once (default: 2)"),
        option("--folder", type=Path, help="to build in (default: one that is removed)"),
        option("--wheel", action="store_true", help="build a wheel too"),
    ],
)  # fmt: skip
def build_time(asked: Asked) -> Iterator[Row]:
    """Seconds of a build of the whole native part from nothing, and its slowest files.

    CMake and the compiler run without a cache, into an empty folder: the modules of the Python
    package, the library, its header and `arenite-run`. Two cores may take four minutes. `--wheel`
    builds a wheel too, again from nothing.
    """
    folder = asked.given.folder or asked.folder / "build"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    log = folder / "compiled.txt"
    launcher = f"{sys.executable};-IS;{timed_command.__file__};{log}"
    nanobind = _output([sys.executable, "-m", "nanobind", "--cmake_dir"])
    commands: tuple[list[str | Path], ...] = (
        ["cmake", "-S", CHECKOUT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
         f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"],
        ["cmake", "--build", folder, "--parallel", str(asked.given.jobs)],
    )  # fmt: skip
    before = _processor_seconds()
    wall = sum(timed(partial(_output, command))[0] for command in commands)
    processor = _processor_seconds() - before
    lines = (line.partition("\t") for line in log.read_text().splitlines())
    files = {made.removeprefix("CMakeFiles/"): float(spent) for spent, _, made in lines}
    asked.require(processor / 2 <= MOST_SECONDS, f"two cores take at most {MOST_SECONDS} s")
    yield {
        TABLE: _BUILD, "files": len(files), "compilers": asked.given.jobs, "wall, s": wall,
        "processor, s": processor, "wheel, B": _wheel(asked.folder) if asked.given.wheel else None,
    }  # fmt: skip
    for made in sorted(files, key=lambda name: -files[name])[:12]:
        yield {TABLE: _FILES, "file": made, "processor, s": files[made]}


def _wheel(folder: Path) -> int:
    """Build a wheel into a folder and return its bytes."""
    _output(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", folder, "--config-settings", f"build-dir={folder}/wheel", CHECKOUT]
    )  # fmt: skip
    (wheel,) = folder.glob("arenite-*.whl")
    return wheel.stat().st_size


def _output(command: Sequence[str | Path]) -> str:
    """Return the output of a command.

    Raises:
        MissingInputsError: It fails; its last words.
    """
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=environment
        )
    except FileNotFoundError as error:
        raise MissingInputsError(f"{command[0]} is not installed") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise MissingInputsError(f"{command[0]} fails: {said[-1]}")
    return done.stdout.strip()


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
