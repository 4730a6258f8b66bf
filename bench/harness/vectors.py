"""Engines without AVX-512 on a processor that has it: what a smaller one would do.

Ours is told by `ARENITE_VECTORS`. The others ask the processor which vectors it has, and have no
switch that says otherwise. They may use AVX-512 only where XGETBV says that the system saves its
registers. So each runs from a copy of its package in which that instruction is replaced: the
answer is that of a system that saves the registers of AVX2 and no more. Nothing else in the copy
differs, and what is installed is left alone. `wide_registers.py` tells whether it took effect.
"""

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from harness.command import MissingInputsError, note
from harness.inputs import CHECKOUT
from harness.wide_registers import C_LIBRARY, NUMPY

AVX2 = "avx2"

_FOLDER = CHECKOUT / "build" / AVX2
_PACKAGES: Mapping[str, tuple[str, Sequence[str]]] = {
    "onnxruntime": ("onnxruntime", ("onnxruntime",)),
    "litert-xnnpack": ("ai-edge-litert", ("ai_edge_litert",)),
    "ncnn": ("ncnn", ("ncnn", "ncnn.libs")),
    "mnn": ("MNN", ("MNN", "mnn.libs", "_mnncengine")),
}
"""For each engine the distribution, and what of it lies beside each other."""

_XGETBV = bytes.fromhex("0f01d0")
_AVX_ALONE = bytes.fromhex("b00790")
"""Of as many bytes: mov al, 7; nop. The lowest byte says: x87, SSE and AVX, nothing beyond."""
_FOUND = re.compile(rb"^\s*([0-9a-f]+):\s+xgetbv", re.MULTILINE)
_LOADED = 1
"""Type of a segment of an ELF file that is loaded."""


@contextmanager
def limited(engines: Iterable[str]) -> Iterator[None]:
    """Have processes that are started while it lasts run these engines with AVX2 at most.

    Raises:
        MissingInputsError: An engine cannot be told to.
    """
    folders = [str(_copy(engine)) for engine in engines if engine in _PACKAGES]
    told = {
        "PYTHONPATH": os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")]),
        "ARENITE_VECTORS": AVX2,
        **C_LIBRARY,
        **NUMPY,
    }
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _copy(engine: str) -> Path:
    """Return the folder of a copy of an engine's package that knows of no AVX-512."""
    distribution, parts = _PACKAGES[engine]
    spec = find_spec(parts[-1] if engine == "mnn" else parts[0])
    if spec is None or spec.origin is None:
        raise MissingInputsError(f"{engine} is not installed")
    place = Path(spec.origin).parent
    source = place if engine == "mnn" else place.parent
    made = _FOLDER / f"{distribution}-{version(distribution)}"
    if made.exists():
        return made
    unfinished = made.with_name(f"{made.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    for part in parts:
        for found in (source / part, *source.glob(f"{part}.*.so")):
            if found.is_dir():
                shutil.copytree(found, unfinished / found.name)
            elif found.is_file():
                shutil.copy2(found, unfinished / found.name)
    count = sum(map(_without_avx512, sorted(unfinished.rglob("*.so"))))
    note(f"{engine}: a copy in {made.relative_to(CHECKOUT)}, {count} instructions replaced")
    unfinished.rename(made)
    return made


def _without_avx512(library: Path) -> int:
    """Replace XGETBV in a library, and return how often it was there.

    Raises:
        MissingInputsError: There is no objdump, or it and the file disagree.
    """
    content = bytearray(library.read_bytes())
    if _XGETBV not in content:
        return 0
    addresses = instructions(library)
    for address in addresses:
        offset = file_offset(content, address)
        if content[offset : offset + len(_XGETBV)] != _XGETBV:
            raise MissingInputsError(f"{library.name}: no XGETBV at {address:#x}")
        content[offset : offset + len(_XGETBV)] = _AVX_ALONE
    library.write_bytes(content)
    return len(addresses)


def instructions(library: Path) -> list[int]:
    """Return the addresses of XGETBV in a library.

    The same three bytes are found within other instructions too, so it is disassembled.

    Raises:
        MissingInputsError: There is no objdump.
    """
    command: list[str | Path] = ["objdump", "--disassemble", "--no-show-raw-insn", library]
    try:
        text = subprocess.run(command, check=True, capture_output=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise MissingInputsError(f"objdump is needed, of binutils: {error}") from error
    return [int(found[1], 16) for found in _FOUND.finditer(text)]


def file_offset(elf: bytes | bytearray, address: int) -> int:
    """Return where in an ELF file of 64 bits, lowest byte first, an address is loaded from.

    Raises:
        MissingInputsError: Nowhere.
    """
    (headers,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for place in range(headers, headers + count * size, size):
        kind, _, offset, start, _, length = struct.unpack_from("<IIQQQQ", elf, place)
        if kind == _LOADED and start <= address < start + length:
            return int(offset + address - start)
    raise MissingInputsError(f"no segment is loaded at {address:#x}")
