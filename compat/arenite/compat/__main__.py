"""Run a Python program with the classes of other runtimes replaced by ours.

    python -m arenite.compat PROGRAM.py args
    python -m arenite.compat -m MODULE args

`--compare`, before the program, runs it with the other runtimes too and prints both. With
`--tensorflow` the program gets of TensorFlow the interpreter alone, `tensorflow.lite`.
"""

import os
import runpy
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from arenite.compat.replacing import replace_modules

_USAGE = """usage: python -m arenite.compat [--compare] [--tensorflow] PROGRAM.py [args]
       python -m arenite.compat [--compare] [--tensorflow] -m MODULE [args]

Run a program with onnxruntime, tflite_runtime and ai_edge_litert replaced by Arenite. The
program's files stay as they are.

  --compare     run it with the original, too, and print time and memory of both
  --tensorflow  replace tensorflow too: of it the program has tensorflow.lite alone
"""
_COMPARE, _WITH_TENSORFLOW = "--compare", "--tensorflow"
_ORIGINAL = "--original"  # the other side of a comparison
_REPORT = "ARENITE_COMPAT_REPORT"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a program took.

    Attributes:
        status: Its exit status.
        seconds: Time from its first line to its last.
        peak: Most bytes that were resident.
        building: Seconds of it in which models were built.
    """

    status: int
    seconds: float
    peak: int
    building: float = 0.0


def main(arguments: Sequence[str]) -> int:
    """Run a program, and return its exit status."""
    program, options = list(arguments), set()
    while program and program[0] in {_COMPARE, _WITH_TENSORFLOW, _ORIGINAL}:
        options.add(program.pop(0))
    if not program or program[0] in {"-h", "--help"} or program == ["-m"]:
        sys.stdout.write(_USAGE)
        return 0 if program[:1] in (["-h"], ["--help"]) else 2
    if program[0].startswith("-") and program[0] != "-m":
        sys.stderr.write(f"{_USAGE}\nunknown option {program[0]}\n")
        return 2
    if _ORIGINAL not in options:
        replace_modules(tensorflow=_WITH_TENSORFLOW in options)
    if not options & {_COMPARE, _ORIGINAL}:
        _run(program)
        return 0
    ours = _measured(program)
    if _ORIGINAL in options:
        with open(os.environ[_REPORT], "w") as stream:  # noqa: PTH123  # nothing else is imported
            stream.write(f"{ours.status} {ours.seconds} {ours.peak}")
    else:
        sys.stdout.flush()
        sys.stderr.write(_table(ours, _original(program)))
    return ours.status


def _run(program: list[str]) -> None:
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path.insert(0, os.getcwd())  # noqa: PTH109  # as Python does
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))  # noqa: PTH100, PTH120
        runpy.run_path(program[0], run_name="__main__")


def _measured(program: list[str]) -> Measured:
    started = time.perf_counter()
    status = 0
    try:
        _run(program)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if isinstance(leaving.code, str):
            sys.stderr.write(f"{leaving.code}\n")
    except BaseException:  # as Python itself
        traceback.print_exc()
        status = 1
    seconds = time.perf_counter() - started
    cache = sys.modules.get("arenite.compat.cache")
    return Measured(status, seconds, _peak(), getattr(cache, "building_s", 0.0))


def _peak() -> int:
    """Return the most bytes of this process that were resident."""
    with open("/proc/self/status") as stream:  # noqa: PTH123
        stated = next(line for line in stream if line.startswith("VmHWM:"))
    return int(stated.split()[1]) << 10


def _original(program: Sequence[str]) -> Measured | None:
    """Return what the program takes with the original modules, None if it ends without a trace."""
    with tempfile.NamedTemporaryFile("r") as report:
        subprocess.run(
            [sys.executable, "-m", "arenite.compat", _ORIGINAL, *program],
            env={**os.environ, _REPORT: report.name}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        found = report.read().split()
    if not found:
        return None
    return Measured(int(found[0]), float(found[1]), int(found[2]))


def _table(ours: Measured, original: Measured | None) -> str:
    rows = [("", "arenite", "original", "saved")]
    if original is None:
        return "the original ended without a trace: nothing to compare with\n"
    running = ours.seconds - ours.building
    rows += [
        ("time", f"{running:.2f} s", f"{original.seconds:.2f} s",
         f"{100 * (1 - running / original.seconds):.0f} %"),
        ("peak memory", f"{ours.peak:,} B", f"{original.peak:,} B",
         f"{100 * (1 - ours.peak / original.peak):.0f} %"),
        ("exit status", str(ours.status), str(original.status), ""),
    ]  # fmt: skip
    text = "".join(f"{a:<12}{b:>16}{c:>16}{d:>8}\n" for a, b, c, d in rows)
    if ours.building:
        text += f"building models took {ours.building:.2f} s more; the next start finds them\n"
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
