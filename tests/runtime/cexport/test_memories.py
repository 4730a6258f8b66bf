"""Several memories in the place of one arena, and inputs and outputs that the caller keeps."""

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.planner import Boundary, Memory
from arenite.planner.programs import CostedMemory
from arenite.runtime.cexport.export import CExport
from support.exported_c import MARGIN, Machine, compiled, drawn, exported
from support.quantised_chain import mobile, residual

TWO = [CostedMemory(Memory("fast", 1500)), CostedMemory(Memory("slow", 1 << 20), 4.0, 6.0)]
OUTSIDE = Reading(boundary=Boundary.EXCLUDE)


class Memories:
    """An exported model with memories of its own, margins round each."""

    def __init__(self, export: CExport, library: Path) -> None:
        self.interface = export.interface
        self.memories = export.interface.memories
        self._run = ctypes.CDLL(str(library))[f"{export.name}_run"]
        self.bytes = {
            each.name: np.full(each.size + 2 * MARGIN, 0xA5, np.uint8) for each in self.memories
        }

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        for port in self.interface.inputs:
            self._at(port)[:] = inputs[port.port.name].view(np.uint8).reshape(-1)
        assert (
            self.call([self.bytes[each.name].ctypes.data + MARGIN for each in self.memories]) == 0
        )
        for each in self.bytes.values():
            assert (each[:MARGIN] == 0xA5).all()
            assert (each[-MARGIN:] == 0xA5).all()
        return {
            port.port.name: self._at(port).view(port.tensor.dtype.label).reshape(port.tensor.shape)
            for port in self.interface.outputs
        }

    @property
    def addresses(self) -> list[int]:
        return [self.bytes[each.name].ctypes.data + MARGIN for each in self.memories]

    def call(self, addresses: list[int] | None) -> int:
        if addresses is None:
            return int(self._run(None))
        return int(self._run((ctypes.c_void_p * len(addresses))(*addresses)))

    def _at(self, port) -> np.ndarray:
        name = port.base.removeprefix("arena->")
        begin = MARGIN + port.offset
        return self.bytes[name][begin : begin + port.tensor.size]

    def given(self, name: str) -> bytes:
        (port,) = (each for each in self.interface.inputs if each.port.name == name)
        return self._at(port).tobytes()


@pytest.fixture(params=[mobile, residual])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    make: Callable[[], bytes] = request.param
    path = tmp_path / "tiny.tflite"
    path.write_bytes(make())
    return path


@pytest.mark.parametrize(
    ("reading", "memories"), [(Reading(), TWO), (OUTSIDE, []), (OUTSIDE, TWO)]
)
def test_outputs_are_those_of_one_arena(
    path: Path, tmp_path: Path, reading: Reading, memories: list[CostedMemory]
) -> None:
    whole = exported(path)
    one = Machine.of(whole, compiled(whole, tmp_path / "one"))
    export = exported(path, reading=reading, memories=memories)
    flags = () if not memories else ("-DTINY_MEMORY_FAST=", "-DTINY_MEMORY_SLOW=")
    several = Memories(export, compiled(export, tmp_path / "several", *flags))
    regions = [each.region for each in several.memories if each.region]
    assert regions == [each.memory.name for each in memories]
    for seed in range(2):
        inputs = drawn(whole, seed)
        found = several.run(inputs)
        for name, expected in one.run(inputs).items():
            np.testing.assert_array_equal(found[name], expected)
        if reading is OUTSIDE:
            assert all(several.given(name) == each.tobytes() for name, each in inputs.items())


def test_what_the_caller_keeps_lies_in_memories_of_their_own(path: Path) -> None:
    whole, outside = exported(path), exported(path, reading=OUTSIDE)
    assert outside.digest != whole.digest
    sizes = [each.size for each in outside.interface.memories if each.is_port]
    ports = (*whole.interface.inputs, *whole.interface.outputs)
    assert sizes == [port.tensor.size for port in ports]


def test_memories_that_are_null_or_not_aligned_are_refused(path: Path, tmp_path: Path) -> None:
    export = exported(path, reading=OUTSIDE, memories=TWO)
    machine = Memories(export, compiled(export, tmp_path / "c"))
    right = machine.addresses
    assert machine.call(right) == 0
    assert machine.call(None) == 1
    for index, each in enumerate(machine.memories):
        assert machine.call([*right[:index], 0, *right[index + 1 :]]) == 1
        shifted = [*right[:index], right[index] + 1, *right[index + 1 :]]
        assert machine.call(shifted) == (each.alignment > 1)


def test_a_linker_script_places_each_memory_that_has_a_name(path: Path) -> None:
    script = exported(path, memories=TWO).files["tiny_memories.ld"].decode()
    assert "*(.bss.tiny_fast) } > FAST" in script
    assert "*(.bss.tiny_slow) } > SLOW" in script
    assert "tiny_memories.ld" not in exported(path, reading=OUTSIDE).files
