"""Programs written for LiteRT, TFLite and ONNX Runtime, run with one import replaced."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arenite
from bench import drop_in as programs
from bench.drop_in.measured import OTHER_KERNELS
from bench.harness.contest import Asked, Row, chosen, contest, note, option
from bench.harness.measuring import paired_ratios

_FOLDER = Path(programs.__file__).parent
_COMPONENTS = (
    "planner", "strategies", "runtime", "compression", "training", "pipeline", "cli", "compat",
)  # fmt: skip
_NEEDED = ("numpy", "click", "rich", "flatbuffers", "tflite", "onnx")


@dataclass(frozen=True, slots=True)
class _Took:
    """What a process took, and its results."""

    first_s: float
    call_s: float
    before_bytes: int
    peak_bytes: int
    results: dict[str, NDArray[Any]]

    @property
    def added_bytes(self) -> int:
        return self.peak_bytes - self.before_bytes


@dataclass(frozen=True)
class _Program:
    """A program, and the environment in which its packages are."""

    path: Path
    environment: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        return self.text.splitlines()[0].strip('"').partition(":")[0].rstrip(".")

    def packages(self, kind: str) -> list[str]:
        """Return what stands behind a comment."""
        lines = [line for line in self.text.splitlines() if line.startswith(f"# {kind}:")]
        return [each for line in lines for each in line.partition(":")[2].split()]

    def install(self) -> None:
        """Make the environment unless it is there."""
        if not self.environment.exists():
            note(f"{self.path.stem}: installing {' '.join(self.packages('packages'))}")
            subprocess.run([sys.executable, "-m", "venv", self.environment], check=True)
            pip = [str(self.environment / "bin" / "pip"), "install", "--quiet"]
            subprocess.run([*pip, *self.packages("packages"), *_NEEDED], check=True)
            if alone := self.packages("alone"):
                subprocess.run([*pip, "--no-deps", *alone], check=True)
        (site,) = self.environment.glob("lib/python*/site-packages")
        shutil.rmtree(site / "arenite", ignore_errors=True)
        _lay_out(site)

    def run(self, asked: Asked, *, ours: bool, other_kernels: bool = False) -> _Took:
        """Run the program once in a process of its own."""
        folder = asked.folder / self.path.stem
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        known = {each: os.environ[each] for each in ("PATH", "HOME", "LANG") if each in os.environ}
        known["ARENITE_CACHE"] = str(asked.folder / f"{self.path.stem}.cache")
        if other_kernels:
            known[OTHER_KERNELS] = "1"
        how = ["-m", "arenite.compat"] if ours else ["measured.py"] if other_kernels else []
        done = subprocess.run(
            [self.environment / "bin" / "python", "-W", "ignore", *how, self.path, folder],
            capture_output=True, text=True, check=False, env=known, cwd=self.path.parent,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
        stated = json.loads((folder / "measured.json").read_text())
        with np.load(folder / "results.npz") as results:
            return _Took(**stated, results=dict(results))


def _lay_out(site: Path) -> None:
    """Copy Arenite into an environment as its wheel lays it out."""
    for name in _COMPONENTS:
        for part in import_module(f"arenite.{name}").__path__:
            shutil.copytree(part, site / "arenite" / name, dirs_exist_ok=True)
    shutil.copy(str(arenite.__file__), site / "arenite" / "__init__.py")
    version = metadata.version("arenite")
    stated = site / f"arenite-{version}.dist-info"
    stated.mkdir(exist_ok=True)
    (stated / "METADATA").write_text(f"Metadata-Version: 2.1\nName: arenite\nVersion: {version}\n")


def _difference(one: _Took, other: _Took) -> float:
    """Return the largest difference of two results, over the largest magnitude of that array.

    Of names it is the share of those that differ.
    """
    largest = 0.0
    for name, expected in one.results.items():
        found = other.results[name]
        if found.shape != expected.shape:
            return float("inf")
        if expected.dtype.kind in "US":
            largest = max(largest, float((found != expected).mean()))
        elif expected.size:
            scale = float(np.abs(expected.astype(float)).max()) or 1.0
            gap = np.abs(found.astype(float) - expected.astype(float)).max()
            largest = max(largest, float(gap) / scale)
    return largest


@contest(
    {"Programs": {
        "program": "", "difference": ".1e", "among the original's kernels": ".1e",
        "time over the original's": ".2f", "call, ms": ".1f", "original, ms": ".1f",
        "first call, s": ".2f", "original's, s": ".2f", "with building, s": ".1f",
        "models, MB": ".1f", "original's, MB": ".1f", "peak, MB": ".0f",
        "original's peak, MB": ".0f",
    }},
    rounds=3,
    options=[
        option("--environments", type=Path, metavar="FOLDER",
               help="virtual environments of the programs, made where they are missing"),
        option("--program", action="append", default=[], metavar="NAME",
               help="only this program; may be repeated"),
    ],
)  # fmt: skip
def drop_in(asked: Asked) -> Iterator[Row]:
    """Programs written for other runtimes, with one import replaced: results, time, memory.

    Each program of bench/drop_in runs in an environment with its packages, in turn as it is and by
    `python -m arenite.compat`, in fresh processes. The difference of results is the largest of any
    output, over the largest magnitude of this output, of names the share that differs; that among
    the original's kernels is the same for LiteRT with and without XNNPACK, or ONNX Runtime with
    and without its rewrites. The
    time of a call is processor time. The memory of models is the peak less what was resident
    before the models were loaded. The first call includes loading them, of a model that was built
    before, or with building it.
    """
    names = [
        each.stem for each in sorted(_FOLDER.glob("*.py")) if "\n# packages:" in each.read_text()
    ]
    for name in chosen(asked.given.program, names, "program"):
        environments = asked.given.environments or asked.folder
        program = _Program(_FOLDER / f"{name}.py", environments.absolute() / name)
        try:
            program.install()
            yield _row(program, asked)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            note(f"{name}: left out: {error}")
            asked.require(False, f"{name} runs")


def _row(program: _Program, asked: Asked) -> Row:
    try:
        other = program.run(asked, ours=False, other_kernels=True)
    except RuntimeError as error:
        note(f"{program.path.stem}: the original has no other kernels: {error}")
        other = None
    built = program.run(asked, ours=True)
    ours, originals = [], []
    for _ in range(asked.rounds):
        originals.append(program.run(asked, ours=False))
        ours.append(program.run(asked, ours=True))

    def middle(took: list[_Took], field: str) -> float:
        return float(np.median([getattr(each, field) for each in took]))

    ratios = paired_ratios([each.call_s for each in ours], [each.call_s for each in originals])
    among = None if other is None else _difference(originals[0], other)
    return {
        "program": program.title,
        "difference": _difference(originals[0], ours[0]), "among the original's kernels": among,
        "time over the original's": ratios,
        "call, ms": middle(ours, "call_s") * 1e3,
        "original, ms": middle(originals, "call_s") * 1e3,
        "first call, s": middle(ours, "first_s"),
        "original's, s": middle(originals, "first_s"),
        "with building, s": built.first_s,
        "models, MB": middle(ours, "added_bytes") / 1e6,
        "original's, MB": middle(originals, "added_bytes") / 1e6,
        "peak, MB": middle(ours, "peak_bytes") / 1e6,
        "original's peak, MB": middle(originals, "peak_bytes") / 1e6,
    }  # fmt: skip
