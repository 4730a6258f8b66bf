"""How long the whole native part takes to build from nothing, and what takes the longest.

    python bench/build_time.py [--jobs N] [--folder FOLDER] [--wheel] [--json]

CMake and the compiler run without a cache, into an empty folder: the modules of the Python
package, the library, its header and `arenite-run`. Processor time is what a build costs on any
machine; wall time is what it took here. `--wheel` builds a wheel too, again from nothing, and
states its size.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.table import Table

from harness import MissingInputsError, bench, emit, note, parser, table, timed
from harness.inputs import CHECKOUT

_LAUNCHER = CHECKOUT / "bench" / "harness" / "timed_command.py"
_NO_CACHE = {"CCACHE_DISABLE": "1"}
_NUM_SHOWN = 12
MOST_SECONDS = 240
"""Of two cores."""


@dataclass(frozen=True)
class Row:
    """What one file takes to compile.

    Attributes:
        made: The object, below the folder of the build.
        seconds: Of a processor.
    """

    made: str
    seconds: float


@dataclass(frozen=True)
class Build:
    """A build from nothing.

    Attributes:
        jobs: Compilers at once.
        wall_seconds: From the configuration to the last link.
        processor_seconds: Of all its processes.
        num_files: That were compiled.
    """

    jobs: int
    wall_seconds: float
    processor_seconds: float
    num_files: int


def built(folder: Path, jobs: int) -> tuple[Build, list[Row]]:
    """Build everything into a folder, which is empty, and return what it took.

    Raises:
        MissingInputsError: A tool or a library is absent; the last of its words.
    """
    log = folder / "compiled.txt"
    launcher = f"{sys.executable};-IS;{_LAUNCHER};{log}"
    nanobind = _output([sys.executable, "-m", "nanobind", "--cmake_dir"])
    commands: tuple[list[str | Path], ...] = (
        ["cmake", "-S", CHECKOUT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
         f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"],
        ["cmake", "--build", folder, "--parallel", str(jobs)],
    )  # fmt: skip
    before = _processor_seconds()
    seconds = sum(timed(partial(_output, command))[0] for command in commands)
    rows = [
        Row(made.removeprefix("CMakeFiles/"), float(spent))
        for spent, _, made in (line.partition("\t") for line in log.read_text().splitlines())
    ]
    rows.sort(key=lambda row: -row.seconds)
    return Build(jobs, seconds, _processor_seconds() - before, len(rows)), rows


def wheel_bytes(folder: Path) -> int:
    """Build a wheel into a folder and return its size.

    Raises:
        MissingInputsError: It cannot be built; the last of pip's words.
    """
    _output(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", folder, "--config-settings", f"build-dir={folder}/wheel", CHECKOUT]
    )  # fmt: skip
    (wheel,) = folder.glob("arenite-*.whl")
    return wheel.stat().st_size


def _output(command: Sequence[str | Path]) -> str:
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env={**os.environ, **_NO_CACHE}
        )
    except FileNotFoundError as error:
        raise MissingInputsError(f"{command[0]} is not installed") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
        raise MissingInputsError(f"{command[0]} fails: {said[-1]}")
    return done.stdout.strip()


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shown(rows: Sequence[Row]) -> Table:
    """Return the dearest files for people."""
    return table(
        f"The dearest {_NUM_SHOWN} files",
        ("file", "processor, s"),
        ((row.made, f"{row.seconds:.1f}") for row in rows[:_NUM_SHOWN]),
        num_names=1,
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Build, print, and return 1 if two cores take longer than four minutes for it."""
    options = parser(__doc__)
    options.add_argument("--jobs", type=int, default=2, help="compilers at once (default: 2)")
    options.add_argument("--folder", type=Path, help="to build in (default: one that is removed)")
    options.add_argument("--wheel", action="store_true", help="build a wheel too")
    parsed = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = parsed.folder or Path(temporary) / "build"
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        found, rows = built(folder, parsed.jobs)
        note(f"{found.wall_seconds:.0f} s, {found.processor_seconds:.0f} s of processors")
        sizes: Mapping[str, int] = (
            {"wheel_bytes": wheel_bytes(Path(temporary))} if parsed.wheel else {}
        )
    words = (
        f"{found.num_files} files, {found.jobs} at once: {found.wall_seconds:.0f} s, "
        f"{found.processor_seconds:.0f} s of processors"
    )
    emit(
        parsed, {"build": found, "rows": rows, **sizes}, words, shown(rows),
        *(f"wheel: {size:,} B" for size in sizes.values()),
    )  # fmt: skip
    return int(found.processor_seconds / 2 > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
