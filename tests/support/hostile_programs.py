"""Programs told as the schema's JSON, so that a test can make them lie."""

import json
import math
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from arenite.runtime.program import file as program_file
from arenite.runtime.program.assembly import Assembly
from arenite.runtime.session import Session

_ALIGNMENT = 64
_SLACK = 128
_BYTES = {"float32": 4, "float16": 2, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8,
          "boolean": 1}  # fmt: skip


def load(data: bytes) -> None:
    """Load and run a file's bytes."""
    with Session.of_pieces([data], "hostile") as session:
        session.invoke()


def file_of(assembly: Assembly) -> bytes:
    """Return the bytes of the file."""
    return b"".join(program_file.pieces(assembly))


def edited(assembly: Assembly, edit: Callable[[dict[str, Any]], object]) -> bytes:
    """Return the bytes of the file after `edit` changed its JSON.

    Raises:
        ValueError: The schema has no room for the edit, which is then no hostile program: a key
            that is misspelt, a number that its field cannot hold.
        AssertionError: The edit changed nothing.
    """
    root = json.loads(assembly.program)
    edit(root)
    assert root != json.loads(assembly.program), "the edit changed nothing"
    return file_of(replace(assembly, program=json.dumps(root)))


def flipped(valid: bytes, generator: random.Random) -> bytes:
    """Return a valid file with bits of its program flipped, or telling numbers put there."""
    data = bytearray(valid)
    (size,) = struct.unpack_from("<Q", data, 16)
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        if generator.random() < 0.5:
            data[generator.randrange(32 + size)] ^= 1 << generator.randrange(8)
        else:
            place = 32 + 4 * generator.randrange(size // 4)
            value = generator.choice((-1, 0, 1, 2**31 - 1, -(2**31), 2**20, 4, 16))
            struct.pack_into("<i", data, place, value)
    return bytes(data)


@dataclass(frozen=True)
class Operand:
    """A tensor of a step: in the arena, or zeros among the weights."""

    type: str
    shape: tuple[int, ...]
    is_constant: bool = False
    quantisation: Mapping[str, object] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes."""
        return _BYTES[self.type] * math.prod(self.shape)


@dataclass(frozen=True)
class OneStep:
    """A program of one step, told operand by operand; None is one left out.

    Attributes:
        scratch: Bytes of its working memory.
    """

    kernel_type: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    kernel: Mapping[str, object] = field(default_factory=dict)
    scratch: int = 0
    kept: tuple[int, ...] = ()  # positions of the inputs that are states

    def to_bytes(self) -> bytes:
        """Return the file. Nothing of it is checked.

        Raises:
            ValueError: The schema has no room for it.
        """
        tensors: list[dict[str, object]] = []
        records: list[dict[str, object]] = []
        ends = {"memory": 0, "weights": 0}

        def placed(operand: Operand | None) -> int:
            if operand is None:
                return -1
            place = "weights" if operand.is_constant else "memory"
            name, offset = f"t{len(tensors)}", ends[place]
            ends[place] += math.ceil(operand.size / _ALIGNMENT) * _ALIGNMENT
            tensors.append(
                {"name": name, "type": operand.type, "shape": operand.shape, "place": place,
                 "offset": offset, **operand.quantisation}
            )  # fmt: skip
            if place == "memory" and operand.size:
                records.append(
                    {"name": name, "offset": offset, "size": operand.size, "start": 0, "end": 1}
                )
            return len(tensors) - 1

        inputs = [placed(each) for each in self.inputs]
        outputs = [placed(each) for each in self.outputs]
        scratch = placed(Operand("uint8", (self.scratch,)) if self.scratch else None)
        step = {
            "name": "the step", "kernel_type": self.kernel_type, "kernel": dict(self.kernel),
            "inputs": inputs, "outputs": outputs, "scratch": scratch,
        }  # fmt: skip
        states = [
            {"tensor": inputs[each]}
            for each in self.kept
            if each < len(inputs) and inputs[each] != -1
        ]
        weights_size = ends["weights"] + _SLACK
        root = {
            "name": "one step", "digest": "0" * 64, "producer": "test",
            "memories": [{"name": "arena", "size": ends["memory"], "alignment": _ALIGNMENT}],
            "weights_size": weights_size, "tensors": tensors,
            "steps": [step], "inputs": [], "outputs": [], "states": states, "records": records,
        }  # fmt: skip
        return file_of(Assembly(json.dumps(root), (), weights_size))
