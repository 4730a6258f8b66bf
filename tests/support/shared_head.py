"""Interpreters of TensorFlow Lite Micro that share the head of an arena.

The Python package gives every interpreter an arena of its own. Before each run the bytes of the
head are copied from the interpreter that ran before, so all is as if they shared one allocator.
"""

import ctypes
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from arenite.pipeline.systems import TflmSystem
from arenite.runtime.targets.tflm import read_tflm_model

_ARENA_BYTES = 256 * 2**20
"""So large that the allocator of C maps memory for it: no free block of the heap holds as much."""

_CHUNK = 2**20


class SharedHead:
    """The head, and the interpreters of a system.

    Args:
        planned: The system.
        poison: Fills the head at first.
    """

    def __init__(self, planned: TflmSystem, poison: int) -> None:
        from tflite_micro.python.tflite_micro.runtime import Interpreter

        self.bytes = np.full(planned.head, poison, np.uint8)
        self._places = {name: planned.shared.places(name) for name in planned.members}
        handed = {each.target for each in planned.system.connections}
        self._ports = {}
        self._interpreters = {}
        self._bases = {}
        for name, member in planned.members.items():
            program = read_tflm_model(planned.system.models[name].path).program
            inputs = [(index, port.name) for index, port in enumerate(program.inputs)]
            given = [each for each in inputs if f"{name}.{each[1]}" not in handed]
            self._ports[name] = given, [port.name for port in program.outputs]
            made = Interpreter.from_bytes(member.data, arena_size=_ARENA_BYTES)
            self._interpreters[name] = made
            index, tensor = inputs[0]
            self._bases[name] = _address(made, index) - self._places[name][tensor]

    def run(self, name: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run a model; what other models hand on lies in the head."""
        interpreter, (given, outputs) = self._interpreters[name], self._ports[name]
        base, size = self._bases[name], self.bytes.size
        ctypes.memmove(base, self.bytes.ctypes.data, size)
        for index, port in given:
            interpreter.set_input(inputs[port], index)
        interpreter.invoke()
        ctypes.memmove(self.bytes.ctypes.data, base, size)
        return {port: interpreter.get_output(index) for index, port in enumerate(outputs)}

    def tensor(self, model: str, name: str, like: np.ndarray) -> np.ndarray:
        """Return a tensor of a model as it lies in the head now."""
        begin = self._places[model][name]
        return self.bytes[begin : begin + like.nbytes].view(like.dtype).reshape(like.shape)


def _address(interpreter: Any, index: int) -> int:
    """Return where an input of an interpreter lies: all that is written there is found there."""
    details = interpreter.get_input_details(index)
    shape, dtype = details["shape"], np.dtype(details["dtype"])
    size = int(np.prod(shape)) * dtype.itemsize
    random = np.random.default_rng()  # which no arena has yet
    # Both live until the end, so that none of their copies has the address of another.
    written = [random.integers(1, 100, size, np.uint8).tobytes() for _ in range(2)]
    found = []
    for data in written:
        interpreter.set_input(np.frombuffer(data, dtype).reshape(shape), index)
        found.append(set(_places(data)))
    (address,) = found[0] & found[1]
    return address


def _places(data: bytes) -> Iterator[int]:
    """Yield where some bytes lie in the large mappings of this process, without its own copy."""
    held = bytearray(_CHUNK)
    address = ctypes.addressof(ctypes.c_char.from_buffer(held))
    own = range(address - len(data), address + _CHUNK)
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for span in _mapped():
            if len(span) < _ARENA_BYTES:
                continue
            for begin in range(span.start, span.stop, _CHUNK - len(data)):
                memory.seek(begin)
                count = memory.readinto(memoryview(held)[: min(_CHUNK, span.stop - begin)])
                for found in re.finditer(re.escape(data), memoryview(held)[:count]):
                    if begin + found.start() not in own:
                        yield begin + found.start()


def _mapped() -> set[range]:
    """Return the memory that this process has mapped for itself, without small blocks."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    spans = (re.fullmatch(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0 *", line) for line in lines)
    return {range(int(each[1], 16), int(each[2], 16)) for each in spans if each}
