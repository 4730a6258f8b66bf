"""Damages files of every kind and gives them to every command: none may end with a traceback.

    PYTHONPATH=tests python -m support.flip_files [COUNT] [MODEL...] [--seed N] [--minutes M]
        [--keep FOLDER]

With models, ONNX or TFLite, these are damaged, and the plan and the program made of each.

A command must end with 0, with 1 and one line that starts with "error: ", or with 2 and the
usage; within a minute and 4 GiB; what it was to write must be there, whole, or not at all, and a
plan that it wrote must verify. What does not is told once for each cause, with the files and the
command in the folder; the exit code is then 1. Ctrl-C ends the run and tells of what was done.
"""

import argparse
import itertools
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from support.damage import damaged
from support.forked import Ended, run
from support.hostile_files import Subject, given, subjects

TIME_LIMIT_S: Final = 60.0
MEMORY_LIMIT: Final = 4 << 30
_BEFORE = b"what was there before"
_LATE = ("onnx.reference", "onnx.version_converter", "onnxruntime", "onnxruntime.quantization",
         "arenite.runtime.targets.litert", "arenite.compression.recipe", "PIL.Image",
         "rich.progress", "arenite.pipeline.report.figures", "bokeh.resources",
         "jinja2")  # fmt: skip
_TURNS: Final = 10
"""Slow subjects come once in so many turns."""
_PROGRESS = {"o.scan.json", "scan.json"}
_NOT_OURS = {"tmp/.ses"}  # of ONNX Runtime


@dataclass(frozen=True, slots=True)
class Trial:
    """One damaged file and one command.

    Attributes:
        number: Of the trial; with the seed it gives the damage.
        subject: What was damaged.
        data: The damaged file.
        arguments: Of the command.
        occupied: Whether files of the outputs' names are there before.
    """

    number: int
    subject: Subject
    data: bytes
    arguments: tuple[str, ...]
    occupied: bool = False

    def write(self, folder: Path) -> None:
        """Write the files, the damaged one among them."""
        for name, data in self.subject.files.items():
            (folder / name).write_bytes(self.data if name == self.subject.damaged else data)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended, and what is wrong with that, if anything."""

    trial: Trial
    ended: Ended
    fault: str | None


def trials(
    every: Sequence[Subject], count: int, seed: int, *, with_slow: bool = True
) -> Iterator[Trial]:
    """Yield so many trials: of each subject in turn, with each of its commands in turn.

    Args:
        every: The subjects.
        count: Number of trials.
        seed: The same one gives the same damage.
        with_slow: Whether commands that take a second each are among them.
    """
    quick = [each for each in every if not each.is_slow]
    rounds = (every if with_slow and turn % _TURNS == 0 else quick for turn in itertools.count())
    turns: Counter[str] = Counter()
    for number, subject in zip(range(count), itertools.chain.from_iterable(rounds), strict=False):
        line = subject.commands[turns[subject.name] % len(subject.commands)]
        turns[subject.name] += 1
        draw = random.Random(f"{seed} {number}")
        name = subject.damaged
        data = damaged(subject.files[name], draw, Path(name).suffix)
        arguments = tuple(shlex.split(line.replace("{}", name)))
        yield Trial(number, subject, data, arguments, occupied=draw.random() < 0.5)


def outcome_of(trial: Trial, *, time_limit_s: float = TIME_LIMIT_S) -> Outcome:
    """Run a trial in a folder of its own and judge how it ended."""
    with tempfile.TemporaryDirectory(prefix="flipped-") as name:
        folder = Path(name)
        trial.write(folder)
        outputs = {part for part in trial.arguments if part.startswith("o.")}
        if trial.occupied:
            for each in outputs - _PROGRESS:
                (folder / each).write_bytes(_BEFORE)
        before = _contents(folder)
        ended = run(trial.arguments, folder, time_limit_s=time_limit_s, memory_limit=MEMORY_LIMIT)
        fault = ended.fault or _left_behind(trial, folder, before, outputs, ended)
        if fault is None and ended.code == 0 and trial.arguments[0] == "plan":
            fault = _not_verified(trial, folder, time_limit_s)
        return Outcome(trial, ended, fault)


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: data for name, data in contents.items() if name not in _NOT_OURS}


def _left_behind(
    trial: Trial, folder: Path, before: dict[str, bytes], outputs: set[str], ended: Ended
) -> str | None:
    """Return what is wrong with the files afterwards.

    A search for what may be pruned saves its progress, and a comparison tells of models that
    failed: both write something when they fail.
    """
    after = _contents(folder)
    may_be_written = outputs if ended.code == 0 or trial.arguments[0] == "compare" else set()
    may_be_written = may_be_written | _PROGRESS
    wrong = {
        "unwritten": [name for name in outputs if after.get(name, _BEFORE) == _BEFORE],
        "left behind": after.keys() - before.keys() - may_be_written,
        "changed": [
            name for name in before.keys() - may_be_written if after.get(name) != before[name]
        ],
    }
    if ended.code != 0:
        del wrong["unwritten"]
    for what, names in wrong.items():
        if names:
            kinds = sorted({re.sub(r"[0-9a-f]{8,}|\d+", "N", name) for name in names})
            return f"{what}: {', '.join(kinds)}, exit code {ended.code}"
    return None


def _not_verified(trial: Trial, folder: Path, time_limit_s: float) -> str | None:
    """Return what is wrong with a plan that was written."""
    if "o.json" not in trial.arguments:
        return None
    arguments = ("verify", "o.json", trial.arguments[1])
    ended = run(arguments, folder, time_limit_s=time_limit_s, memory_limit=MEMORY_LIMIT)
    return None if ended.code == 0 else f"not verified: {ended.err[:200]}"


def warm_up(folder: Path) -> None:
    """Import here what commands import, so that no process of a trial has to."""
    for module in _LATE:
        with suppress(ImportError):
            import_module(module)
    from support.command import commands

    assert dict(commands())
    assert folder.exists()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials and tell of each fault once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=20_000, help="damaged files")
    parser.add_argument("models", type=Path, nargs="*", help="models instead of small ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600.0, help="end after these")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--quick", action="store_true", help="no measurements of speed")
    parser.add_argument("--only", default="", help="subjects with this in their name")
    parser.add_argument(
        "--keep", type=Path, default=Path("build/flipped"), help="where faults are put"
    )
    options = parser.parse_args(arguments)
    end = time.monotonic() + 60 * options.minutes
    codes: Counter[object] = Counter()
    faults: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory(prefix="whole-") as name, suppress(KeyboardInterrupt):
        warm_up(Path(name))
        made = given(options.models, Path(name)) if options.models else subjects(Path(name))
        every = list(made)
        for trial in trials(every, options.count, options.seed, with_slow=not options.quick):
            if trial.number < options.first or options.only not in trial.subject.name:
                continue
            if time.monotonic() > end:
                break
            outcome = outcome_of(trial)
            codes[outcome.ended.code] += 1
            slowest = max(slowest, outcome.ended.seconds)
            if outcome.fault is not None:
                faults[outcome.fault] += 1
                if faults[outcome.fault] <= 3:
                    _keep(outcome, options.keep, options.seed)
    tally = ", ".join(f"{count:,} ended with {code}" for code, count in codes.most_common())
    _tell(f"{codes.total():,} damaged files: {tally}; the slowest took {slowest:.1f} s")
    for fault, count in faults.most_common():
        _tell(f"{count:6,}  {fault}")
    return 1 if faults else 0


def _keep(outcome: Outcome, folder: Path, seed: int) -> None:
    """Put a fault's files into a folder of its own, and tell of it."""
    trial = outcome.trial
    place = folder / f"{seed}-{trial.number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    trial.write(place)
    command = f"arenite {shlex.join(trial.arguments)}"
    (place / "command").write_text(f"{command}\n{outcome.fault}\n\n{outcome.ended.err}")
    _tell(f"{place}: {trial.subject.name}: {command}: {outcome.fault}")


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
