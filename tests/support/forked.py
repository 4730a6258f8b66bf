"""Functions in a forked child, and the command in a process with limits on memory and time."""

import faulthandler
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from support.command import main

_RAISED = 99
_PORTIONS = "cli|compression|pipeline|planner|runtime|strategies|training"
"""Of the namespace; a checkout may lie in a folder of its name too."""
_PASSED_ON = re.compile(r"[^\n\x20-\x7e\x80-\U0010ffff]")
_LEFT_OUT = re.compile(r"\x1b\[\?25[hl]")  # a progress bar hides the cursor and shows it again


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Exit code; negative is the signal that ended it, None that its time was up.
        out: Standard output.
        err: Standard error, of native code too.
        seconds: It took.
    """

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def fault(self) -> str | None:
        """What is wrong with how it ended, in a few words that are alike for like faults."""
        if self.code is None:
            return "hangs"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        if "Traceback (most recent call last)" in self.err:
            return f"traceback: {_raised_at(self.err)}"
        if control := _PASSED_ON.search(_LEFT_OUT.sub("", self.out + self.err)):
            return f"writes the control character {control.group()!r}"
        lines = [line for line in self.err.splitlines() if not line.startswith("note: ")]
        if self.code == 0 and lines:
            return f"says on success: {_without_numbers(lines[0])}"
        if self.code == 1 and (len(lines) != 1 or not lines[0].startswith("error: ")):
            return f"fails with other than one line: {_without_numbers('; '.join(lines))}"
        if self.code == 2 and not self.err.startswith("Usage: arenite"):
            return "a usage error without the usage"
        return None if self.code in (0, 1, 2) else f"exit code {self.code}"


def run(
    arguments: Sequence[str], folder: Path, *, time_limit_s: float, memory_limit: int
) -> Ended:
    """Run the command in a folder and return how it ended.

    The process is a copy of this one, so what was imported need not be imported again.

    Args:
        arguments: Of the command.
        folder: It runs in; temporary files go to `tmp` in it.
        time_limit_s: It is ended after these seconds.
        memory_limit: Bytes of addresses that it may have beyond those of this process.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of idle threads that libraries have
            child = os.fork()
        if child == 0:
            _become(arguments, folder, out, err, memory_limit)
        status = _awaited(child, started + time_limit_s)
        seconds = time.monotonic() - started
        code = None if status is None else os.waitstatus_to_exitcode(status)
        return Ended(code, _text(out), _text(err), seconds)


def _become(
    arguments: Sequence[str], folder: Path, out: IO[bytes], err: IO[bytes], memory_limit: int
) -> None:
    """Run the command and end this process, whatever happens."""
    code = _RAISED
    try:
        os.setpgid(0, 0)
        faulthandler.disable()
        os.chdir(folder)
        (folder / "tmp").mkdir(exist_ok=True)
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "tmp")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory_limit
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _awaited(child: int, deadline: float) -> int | None:
    """Return how a process ended, None if it had to be ended with all that it started."""
    pause = 0.001
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(pause)
        pause = min(1.5 * pause, 0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", errors="replace")


def _raised_at(err: str) -> str:
    """Return the class of an error and the innermost line of ours that it came through."""
    places = re.findall(rf'File ".*/(arenite/(?:{_PORTIONS})/[^"]+)", line (\d+)', err)
    said = [
        line for line in err.splitlines() if re.match(r"[\w.]+(Error|Exception|\w*)(:|$)", line)
    ]
    kind = said[-1] if said else err.splitlines()[-1]
    where = ":".join(places[-1]) if places else "?"
    return f"{_without_numbers(kind)} at {where}"


def _without_numbers(text: str) -> str:
    return re.sub(r"'[^']*'", "'...'", re.sub(r"\d+", "N", text))[:100]


def in_child(function: Callable[[], object]) -> int:
    """Return the exit code of a forked child that calls the function; 99 if it raises."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # what waits for threads that are not there is killed
        try:
            function()
        except BaseException:
            traceback.print_exc()
            os._exit(99)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
