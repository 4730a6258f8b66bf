"""Program files of one step, written operand by operand, so that each can be wrong."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from arenite.planner.tensors import DType
from arenite.planner.units import align_up
from arenite.runtime.program import Assembly, program_pieces

_SLACK = 128


@dataclass(frozen=True)
class Given:
    """An operand: a constant if it has an array, quantised if it has scales.

    Attributes:
        shape: Stored axes.
        type: As the schema has it.
        same_as: The input whose bytes an output takes.
    """

    shape: Sequence[int]
    type: str = "float32"
    array: np.ndarray | None = None
    scales: Sequence[float] = ()
    zero_point: int = 0
    axis: int = 0
    same_as: int | None = None

    @property
    def dtype(self) -> DType:
        """Of an element, as the planner has it."""
        return next(each for each in DType if each.label == self.type)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.dtype.num_bytes(math.prod(self.shape))


def constant(array: np.ndarray, **quantisation: Any) -> Given:
    """Return a constant of these elements."""
    return Given(array.shape, array.dtype.name, array, **quantisation)


def one_step(
    kind: str,
    kernel: Mapping[str, Any],
    inputs: Sequence[Given | None],
    outputs: Sequence[Given],
    *,
    scratch: int | None = None,
    shift: int = 0,
    kept: Sequence[int] = (),
    turns: Sequence[tuple[int, int, int]] = (),
    edit: Callable[[dict[str, Any]], object] | None = None,
) -> list[bytes | memoryview]:
    """Return the pieces of a program file of one step; inputs are i0, i1, outputs o0, o1.

    Args:
        kind: The operator.
        kernel: Its fields, as the schema has them.
        inputs: None where one is left out.
        outputs: That the caller reads.
        scratch: Bytes of working memory; None: the step has none.
        shift: Bytes by which the working memory misses its alignment.
        kept: Positions of the inputs that are states.
        turns: What runs: the step, its first row, and how many; none: the step, once.
        edit: Changes the program, as the schema's JSON, before it is written.
    """
    tensors: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    constants: list[tuple[int, np.ndarray]] = []
    ends = {"memory": 0, "weights": 0}

    def add(name: str, given: Given, shift: int = 0) -> int:
        place = "memory" if given.array is None else "weights"
        offset = ends[place] + shift
        if given.array is not None:
            constants.append((offset, np.ascontiguousarray(given.array)))
        if given.same_as is not None:
            offset = tensors[given.same_as]["offset"]
        else:
            ends[place] = align_up(offset + given.size, 64)
            if place == "memory" and given.size:
                size = given.size + shift
                end = max(len(turns), 1)
                records.append({"name": name, "offset": offset - shift, "size": size, "end": end})
        tensors.append({
            "name": name, "type": given.type if given.type != "bool" else "boolean",
            "shape": list(given.shape), "place": place, "offset": offset,
            "scales": list(given.scales), "zero_point": given.zero_point, "axis": given.axis,
        })  # fmt: skip
        return len(tensors) - 1

    def port(tensor: int) -> dict[str, Any]:
        shape = tensors[tensor]["shape"]
        return {
            "name": tensors[tensor]["name"], "tensor": tensor, "shape": shape,
            "permutation": list(range(len(shape))),
        }  # fmt: skip

    read = [-1 if each is None else add(f"i{i}", each) for i, each in enumerate(inputs)]
    made = [add(f"o{i}", each) for i, each in enumerate(outputs)]
    step: dict[str, Any] = {
        "name": "only",
        "kernel_type": kind,
        "kernel": dict(kernel),
        "inputs": read,
    }
    step["outputs"] = made
    if scratch is not None:
        step["scratch"] = add("scratch", Given((scratch,), "uint8"), shift)
    states = [read[i] for i in kept if i < len(read) and read[i] >= 0]
    fed = [i for i in read if i >= 0 and tensors[i]["place"] == "memory" and i not in states]
    root = {
        "name": kind, "digest": "0" * 64, "producer": "test",
        "memories": [{"name": "arena", "size": ends["memory"], "alignment": 64}],
        "weights_size": ends["weights"] + _SLACK,
        "tensors": tensors, "steps": [step], "records": records,
        "inputs": [port(i) for i in fed], "outputs": [port(i) for i in made],
        "states": [{"tensor": i} for i in states],
    }  # fmt: skip
    if turns:
        root["turns"] = [{"step": step, "first": row, "count": n} for step, row, n in turns]
    if edit is not None:
        edit(root)
    assembly = Assembly(root, tuple(constants), ends["weights"] + _SLACK)
    return list(program_pieces(assembly))


@dataclass(frozen=True)
class OneStep:
    """A step by itself, to be changed and then written by `one_step`.

    Attributes:
        scratch: Bytes of its working memory.
        kept: Positions of the inputs that are states.
    """

    kind: str
    inputs: tuple[Given | None, ...]
    outputs: tuple[Given, ...]
    kernel: Mapping[str, object] = field(default_factory=dict)
    scratch: int = 0
    kept: tuple[int, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the file. Nothing of it is checked."""
        return b"".join(
            one_step(
                self.kind, self.kernel, self.inputs, self.outputs, scratch=self.scratch or None,
                kept=self.kept,
            )
        )  # fmt: skip
