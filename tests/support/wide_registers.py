"""Whether an engine uses AVX-512: asked of the processor, after a run in a process of its own.

A processor knows which registers are not in their first state. Those that AVX-512 has beyond
AVX2's sixteen stay so when a kernel has used them: nobody clears them. The C library and numpy
are told to leave them alone.
"""

import ctypes
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

C_LIBRARY: Mapping[str, str] = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW"}
"""Has glibc copy memory with AVX2."""
NUMPY: Mapping[str, str] = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_ICL AVX512_SPR"
}
"""Has numpy do so, under the names of all its versions; it ignores others than its own."""

_XGETBV_1 = bytes.fromhex("b9010000000f01d0c3")
"""mov ecx, 1; xgetbv; ret."""
_HIGH_REGISTERS = 1 << 7
"""Vectors 16 to 31."""


def uses_wide_registers(kind: str, engine: str, file: Path, inputs: Path) -> bool:
    """Return whether an engine leaves something in registers that AVX-512 alone has.

    Args:
        kind: Format of the model.
        engine: Its name.
        file: That it loads.
        inputs: A `.npz` with its inputs, in the model's order.

    Raises:
        RuntimeError: It does not run, or the registers are in use before it is loaded.
    """
    done = subprocess.run(
        [sys.executable, __file__, kind, engine, str(file), str(inputs)],
        capture_output=True, text=True, check=False, env={**os.environ, **C_LIBRARY, **NUMPY},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{engine}: {done.stderr.strip()[-200:]}")
    before, after = json.loads(done.stdout.splitlines()[-1])
    if before:
        raise RuntimeError(f"{engine}: the registers are in use before it is loaded")
    return bool(after)


def _are_in_use() -> bool:
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_XGETBV_1)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return bool(ctypes.CFUNCTYPE(ctypes.c_uint32)(address)() & _HIGH_REGISTERS)


def main(kind: str, name: str, file: str, inputs: str) -> None:
    """Load and run an engine, and print whether the registers were in use before and after."""
    from arenite.pipeline.contest.engines import CONVERTED, ENGINES

    with np.load(inputs) as stored:
        arrays = [stored[key] for key in stored.files]
    before = _are_in_use()
    engine = (CONVERTED.get(name) or ENGINES[kind][name])(Path(file), 1)
    for _ in range(2):
        engine.run(arrays)
    sys.stdout.write(json.dumps([before, _are_in_use()]) + "\n")


if __name__ == "__main__":
    sys.path.pop(0)  # its own folder, whose modules are not what engines import
    main(*sys.argv[1:])
