"""Runs our runtime and other engines' aarch64 wheels under QEMU, and counts instructions."""

import bisect
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.contest.engines import OURS
from bench.arm.code import cycles_of, kinds
from bench.arm.tools import HERE, SYSROOT, TRIPLET, driver, output, peers, plugin, qemu
from bench.harness.contest import MissingInputsError
from bench.harness.inputs import CHECKOUT

_GETPGID: Final = {"aarch64": 155, "arm": 132, "x86_64": 121}
"""The system call that ends a phase."""
_ESTIMATED: Final = 0.9
"""Share of the instructions whose cycles are estimated; the rest takes as many for each."""
_BASE: Final = "fp asimd evtstrm crc32 cpuid"
_DOTS: Final = f"{_BASE} aes pmull sha1 sha2 atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor to emulate.

    Attributes:
        part: Number in `/proc/cpuinfo`, by which engines choose kernels.
        features: Also there.
    """

    part: str
    features: str


PROCESSORS: Final[Mapping[str, Processor]] = {
    "cortex-a53": Processor("0xd03", _BASE),  # Pi 3, Zero 2 W
    "cortex-a72": Processor("0xd08", _BASE),  # Pi 4
    "neoverse-n1": Processor("0xd0b", _DOTS),  # as the Cortex-A76 of a Pi 5
}


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that run one after the other.

    Attributes:
        function: Its name; of libraries without names, the library's.
        code: The bytes.
        instructions: Their number.
        executions: In each phase: start, loading with a first run, runs, end.
    """

    function: str
    code: bytes
    instructions: int
    executions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """What a process did.

    Attributes:
        arch: The architecture, as QEMU names it.
        processor: Also.
        blocks: Those of which the instructions consist.
        num_runs: In the phase of runs.
        resident_bytes: When the start-up ended, and the most.
    """

    arch: str
    processor: str
    blocks: tuple[Block, ...]
    num_runs: int
    resident_bytes: tuple[int, int]

    @property
    def per_run(self) -> int:
        """Instructions of an inference."""
        return self._phase(2) // self.num_runs

    @property
    def loading(self) -> int:
        """Instructions of loading and packing: those of the first inference beyond others."""
        return self._phase(1) - self.per_run

    @property
    def added_bytes(self) -> int:
        """Resident memory at most, beyond that of the start."""
        return self.resident_bytes[1] - self.resident_bytes[0]

    @property
    def starting(self) -> int:
        """Instructions of the process before it opens the model."""
        return self._phase(0)

    def _phase(self, index: int) -> int:
        return sum(each.instructions * each.executions[index] for each in self.blocks)

    def kinds(self) -> Counter[str]:
        """Return the AArch64 instructions of an inference by kind."""
        found: Counter[str] = Counter()
        for each in self.blocks:
            if each.executions[2]:
                for kind, number in kinds(each.code).items():
                    found[kind] += number * each.executions[2]
        return Counter({kind: number // self.num_runs for kind, number in found.items()})

    def functions(self) -> list[tuple[str, int, float | None]]:
        """Return function, instructions of an inference, and cycles of each, hot ones first.

        Cycles are None where none of its blocks is hot.
        """
        found: Counter[str] = Counter()
        for each in self.blocks:
            found[each.function] += each.instructions * each.executions[2]
        spent: defaultdict[str, float] = defaultdict(float)
        known: Counter[str] = Counter()
        for each, cycles in self._estimates():
            spent[each.function] += each.executions[2] * cycles
            known[each.function] += each.instructions * each.executions[2]
        return [
            (name, number // self.num_runs, spent[name] / known[name] if known[name] else None)
            for name, number in found.most_common()
        ]

    def cycles(self) -> int:
        """Return the estimated cycles of an inference: no cache miss, no wrong prediction."""
        estimates = self._estimates()
        known = sum(each.instructions * each.executions[2] for each, _ in estimates)
        spent = sum(each.executions[2] * cycles for each, cycles in estimates)
        return round(spent / known * self.per_run)

    def _estimates(self) -> Sequence[tuple[Block, float]]:
        """Return the blocks that most instructions of inferences belong to, with their cycles."""
        order = sorted(
            self.blocks, key=lambda each: each.instructions * each.executions[2], reverse=True
        )
        sums = accumulate(each.instructions * each.executions[2] for each in order)
        enough = self._phase(2) * _ESTIMATED
        hot = order[: 1 + sum(1 for _ in takewhile(lambda each: each < enough, sums))]
        found = cycles_of(tuple(each.code for each in hot), self.arch, self.processor)
        return list(zip(hot, found, strict=True))


def ours(processor: str, program: Path, runs: int, arch: str = "aarch64") -> Counted:
    """Count the instructions of a program file in our runtime.

    Cycles and kinds are known of `aarch64` alone, not of `arm`.
    """
    return _counted(arch, processor, [*driver(arch), program], runs)


def outputs(
    processor: str, program: Path, feeds: Sequence[NDArray[np.generic]], folder: Path
) -> bytes:
    """Return the outputs of a program file in our runtime, one behind the other."""
    *told, runs = driver("aarch64")
    command = [qemu("aarch64"), "-cpu", processor, *told, Path(runs).with_name("arenite-run")]
    command += [program, "--output", folder / "outputs"]
    for index, array in enumerate(feeds):
        array.tofile(folder / f"input{index}")
        command += ["--input", folder / f"input{index}"]
    output(command)
    return (folder / "outputs").read_bytes()


def theirs(
    processor: str, model_format: str, engine: str, model: Path, inputs: Path, runs: int
) -> Counted:
    """Count the instructions of a model in another engine.

    Raises:
        MissingInputsError: The engine does not run it.
    """
    root = SYSROOT
    stated = root / "proc" / "cpuinfo"  # QEMU looks below -L first
    stated.parent.mkdir(exist_ok=True)
    stated.write_text(
        f"processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: {PROCESSORS[processor].features}\n"
        "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n"
        f"CPU part\t: {PROCESSORS[processor].part}\nCPU revision\t: 3\n"
    )
    components = [CHECKOUT / each for each in ("pipeline", "planner", "strategies", "runtime")]
    places = ":".join(map(str, (peers(), *components)))
    libraries = ":".join(str(root / each / TRIPLET) for each in ("usr/lib", "lib"))
    command: list[str | Path] = [
        "-L", root, "-E", f"PYTHONHOME={root}/usr", "-E", f"PYTHONPATH={places}",
        "-E", f"LD_LIBRARY_PATH={libraries}", "-E", "PYTHONDONTWRITEBYTECODE=1",
        "-E", "PYTHONHASHSEED=0",
        root / "usr/bin/python3.11", HERE / "peer.py", model_format, engine, model, inputs,
    ]  # fmt: skip
    return _counted("aarch64", processor, command, runs)


def here(program: Path, inputs: Path, runs: int) -> Counted:
    """Count the instructions of a program file on x86-64, by QEMU's AVX2: it has no AVX-512.

    Args:
        program: The file that our runtime loads, in Python.
        inputs: A `.npz` of its inputs, in their order; they set the sizes of a range.
        runs: How many are counted.
    """
    settings = [word for each in _ENVIRONMENT.items() for word in ("-E", "=".join(each))]
    return _counted("x86_64", "max", [*settings, *_python(program, inputs)], runs)


def here_timed(program: Path, inputs: Path, runs: int, model: str) -> tuple[Counted, int]:
    """Count our instructions on x86-64, and return the nanoseconds of the fastest run.

    Args:
        program: The file that our runtime loads.
        inputs: Its inputs.
        runs: Their number under emulation; many times as many are timed.
        model: The processor that `llvm-mca` is told of.
    """
    counted = here(program, inputs, runs)
    timing = [*_python(program, inputs), str(max(100, 30 * runs))]
    timed = [
        subprocess.run(timing, env=_ENVIRONMENT, capture_output=True, text=True, check=True).stdout
        for _ in range(5)
    ]
    return Counted("x86_64", model, counted.blocks, runs, counted.resident_bytes), min(
        map(int, timed)
    )


_ENVIRONMENT: Final = {
    "PYTHONPATH": ":".join(each for each in sys.path if each), "ARENITE_VECTORS": "avx2",
    "GLIBC_TUNABLES": ":".join(
        f"glibc.cpu.x86_rep_{each}_threshold={1 << 40}" for each in ("movsb", "stosb")
    ),  # one instruction of many cycles
}  # fmt: skip


def _python(program: Path, inputs: Path) -> list[str | Path]:
    return [sys.executable, HERE / "peer.py", "onnx", OURS, program, inputs]


def _counted(arch: str, processor: str, command: Sequence[str | Path], runs: int) -> Counted:
    with tempfile.NamedTemporaryFile() as out:
        count = f"{plugin()},out={out.name},mark={_GETPGID[arch]}"
        done = subprocess.run(
            [qemu(arch), "-cpu", processor, "-plugin", count, *command, str(runs)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or [f"code {done.returncode}"]
            raise MissingInputsError(f"{command[-3]} fails on {processor}: {said[-1][:200]}")
        lines = Path(out.name).read_text().splitlines()
    first, most = (int(each) << 10 for each in lines[-1].split()[1:])
    return Counted(arch, processor, _blocks(lines), runs, (first, most))


def _blocks(lines: Sequence[str]) -> tuple[Block, ...]:
    maps: list[tuple[int, int, int, str]] = []
    for line in lines:
        if line.startswith("map ") and line.count("/") > 0:
            span, _, offset, *_, path = line.split()[1:]
            low, high = (int(each, 16) for each in span.split("-"))
            maps.append((low, high, int(offset, 16), path))
    maps.sort()
    starts = [low for low, *_ in maps]
    found = []
    for line in lines:
        if line.startswith("block "):
            place, instructions, *executions, code = line.split()[1:]
            address = int(place, 16)
            low, high, start, path = maps[bisect.bisect_right(starts, address) - 1]
            name = _function(path, address - low + start) if low <= address < high else "elsewhere"
            times = tuple(map(int, executions))
            found.append(Block(name, bytes.fromhex(code), int(instructions), times))
    return tuple(found)


def _function(path: str, offset: int) -> str:
    starts, names, segments = _symbols(path)
    place = offset
    for at, address, size in segments:
        if at <= offset < at + size:
            place = offset - at + address
    index = bisect.bisect_right(starts, place) - 1
    return names[index] if index >= 0 else Path(path).name


@cache
def _symbols(path: str) -> tuple[list[int], list[str], list[tuple[int, int, int]]]:
    """Return the functions of a file, and its segments: offset, address, bytes."""
    if "arenite" not in Path(path).name:
        return [], [], []
    found = []
    for line in output([f"{TRIPLET}-nm", "-C", "--defined-only", path]).splitlines():
        address, kind, name = line.split(" ", 2)
        if kind in "tTwWiu":
            found.append(
                (int(address, 16), re.sub(r"\(anonymous namespace\)::|arenite::", "", name))
            )
    found.sort()
    segments = [
        (int(words[1], 16), int(words[2], 16), int(words[4], 16))
        for line in output([f"{TRIPLET}-readelf", "-lW", path]).splitlines()
        if (words := line.split()) and words[0] == "LOAD"
    ]
    return [address for address, _ in found], [name for _, name in found], segments
