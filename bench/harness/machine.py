"""What a figure was measured on: the processor, its cores, and the kernels that it selects."""

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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
"""By the features they take, the best first: our kernels and XNNPACK's choose by these."""


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
