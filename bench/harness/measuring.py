"""Measurements: spreads, paired ratios, interleaved rounds, fresh processes, the machine."""

import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Spread:
    """Repeated measurements of one quantity.

    Attributes:
        median: Of all.
        least: The smallest.
        most: The largest.
        count: How many there are.
    """

    median: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Return the spread of at least one value.

        Raises:
            ValueError: There is none.
        """
        found = sorted(values)
        if not found:
            raise ValueError("a spread needs at least one measurement")
        return cls(statistics.median(found), found[0], found[-1], len(found))

    def text(self, form: str = ".3f") -> str:
        """Return the median, and the range in brackets where there is more than one value."""
        if self.count == 1:
            return f"{self.median:{form}}"
        return f"{self.median:{form}} ({self.least:{form}} to {self.most:{form}})"


def paired_ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Return the spread over the rounds of ours to theirs; below 1 ours is smaller.

    A ratio within a round is blind to what slows a whole round down, a busy machine say.

    Raises:
        ValueError: There are not as many of each, or none.
    """
    return Spread.of(own / other for own, other in zip(ours, theirs, strict=True))


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the wall-clock seconds that work takes, and what it returns."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def mean_processor_seconds(work: Callable[[], object], at_least_s: float) -> float:
    """Return the processor time that work takes, the mean over as often as fits a time.

    Args:
        work: Run at least once.
        at_least_s: Seconds of processor time after which it is not run again.
    """
    count, begun = 0, time.process_time()
    while not count or time.process_time() - begun < at_least_s:
        work()
        count += 1
    return (time.process_time() - begun) / count


def interleaved(
    measurements: Mapping[str, Callable[[], Result]], num_rounds: int, *, at_least_s: float = 0.0
) -> dict[str, list[Result]]:
    """Return what each measurement gives, round by round: entries of one index are paired.

    Each round begins with another of them, so that none is always the first.

    Args:
        measurements: By name.
        num_rounds: At least so many.
        at_least_s: Seconds before which no round is the last.
    """
    names = list(measurements)
    found: dict[str, list[Result]] = {name: [] for name in names}
    ends = time.perf_counter() + at_least_s
    number = 0
    while number < num_rounds or time.perf_counter() < ends:
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(measurements[name]())
        number += 1
    return found


class ProcessError(Exception):
    """Work in a process of its own failed, or the process crashed."""


def in_fresh_process(function: Callable[..., Result], *arguments: Any) -> Result:
    """Return what a function of a module returns in a new interpreter.

    Raises:
        ProcessError: It raised an error, whose message this carries, or ended the process.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, arguments))
    process.start()
    sender.close()  # so that the end of the process is the end of the pipe
    try:
        is_done, answer = receiver.recv()
    except EOFError:
        process.join()
        raise ProcessError(_ending(process.exitcode)) from None
    finally:
        receiver.close()
    process.join()
    if not is_done:
        raise ProcessError(answer)
    result: Result = answer
    return result


def peak_rss_bytes() -> int:
    """Return the peak resident memory of this process.

    Not by `getrusage`, whose figure includes the process that started this one.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def _answer(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        answer = (True, function(*arguments))
    except Exception as error:  # whatever it is, the other process has to be told
        words = str(error).strip().splitlines() or [""]
        answer = (False, words[0] or type(error).__name__)
    sender.send(answer)


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"the process was ended by signal {-exit_code}"
    return f"the process ended with exit code {exit_code}"


_CPUINFO = Path("/proc/cpuinfo")
_BOARD = Path("/sys/firmware/devicetree/base/model")

_AVX512 = {"avx512f", "avx512dq", "avx512bw", "avx512vl"}
_KERNEL_SETS = (
    ("AMX", {"amx_int8", *_AVX512}),
    ("AVX-512 with VNNI", {"avx512_vnni", *_AVX512}),
    ("AVX-512", _AVX512),
    ("AVX2 with VNNI", {"avx_vnni", "avx2", "fma"}),
    ("AVX2", {"avx2", "fma"}),
    ("SSE4.1", {"sse4_1"}),
    ("SVE with I8MM", {"sve", "i8mm"}),
    ("NEON with I8MM", {"asimd", "i8mm"}),
    ("NEON with dot products", {"asimd", "asimddp"}),
    ("NEON", {"asimd"}),
    ("NEON", {"neon"}),
)
"""By the features they take, the best first: our kernels choose by these."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, as far as its figures depend on it.

    Attributes:
        processor: Its name, as the system states it.
        num_cores: Cores that this process may use.
        kernel_set: The most capable kernels that it runs.
    """

    processor: str
    num_cores: int
    kernel_set: str

    def __str__(self) -> str:
        cores = "1 core" if self.num_cores == 1 else f"{self.num_cores} cores"
        return f"{self.processor}, {cores}, kernels for {self.kernel_set}"


@cache
def this_machine() -> Machine:
    """Return the machine that this process runs on."""
    facts = _CPUINFO.read_text(errors="replace") if _CPUINFO.is_file() else ""
    board = _BOARD.read_text(errors="replace").strip("\0\n") if _BOARD.is_file() else ""
    return described(facts, board, len(os.sched_getaffinity(0)))


def described(cpuinfo: str, board: str, num_cores: int) -> Machine:
    """Return the machine of a `/proc/cpuinfo`.

    Args:
        cpuinfo: The text; empty where the system has none.
        board: Name of the board, which ARM systems state in place of the processor's.
        num_cores: Cores that may be used.
    """
    facts: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip().lower(), value.strip())
    processor = facts.get("model name") or board or facts.get("hardware") or platform.machine()
    features = set((facts.get("flags") or facts.get("features") or "").split())
    kernel_set = next((name for name, needs in _KERNEL_SETS if needs <= features), "any processor")
    return Machine(processor, num_cores, kernel_set)
