"""Steps that read what depends on sizes and is known before the run.

Elements that are expressions are taken from a table of all their values. A stable tensor that is
not the first part in storage is copied out of the array of the highest sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import onnx
import onnx.helper

from arenite.planner.errors import SizeError
from arenite.planner.importers.onnx.call import whole_number
from arenite.planner.importers.onnx.node import Dialect, Operand, Origin, op_type
from arenite.planner.importers.onnx.operators import onnx_operator
from arenite.planner.importers.onnx.ranged import MOST_CHECKED, Ranged, parameters
from arenite.planner.importers.onnx.sized import number_at, objects, parts_of, varies
from arenite.planner.importers.onnx.types import TensorType, numpy_dtype
from arenite.planner.importers.onnx.values import Array
from arenite.planner.operators.imported import AttributeValue, Imported
from arenite.planner.programs.program import Step
from arenite.planner.sizes import Expression, depends
from arenite.planner.tensors import DType


class Define(Protocol):
    """Returns the flat name of a new tensor."""

    def __call__(self, hint: str, tensor_type: TensorType, *, is_constant: bool) -> str: ...


_ADDED = Dialect(8, {"": 13})
"""That of the steps that are added: the numbers of a Slice are inputs."""


class Store:
    """Makes the tensors and steps by which other steps read values of sizes.

    Args:
        ranged: What depends on dimensions.
        define: Makes a tensor.
    """

    def __init__(self, ranged: Ranged, define: Define) -> None:
        self._ranged = ranged
        self._define = define
        self._stored: dict[str, Operand] = {}

    def stored(
        self, node: onnx.NodeProto, inputs: Sequence[Operand]
    ) -> tuple[list[Step], list[Operand]]:
        """Return the inputs of a step as tensors that can be stored, and the steps that make them.

        Elements that are expressions are taken from a table of all their values, stable ones from
        the array of the highest sizes.

        Raises:
            SizeError: An element is no expression of integers, or has too many values.
        """
        steps: list[Step] = []
        operands = list(inputs)
        for position, operand in enumerate(inputs):
            if position in parameters(op_type(node)) or operand.type is None:
                continue
            is_cut = operand.name in self._ranged.stable and not self._ranged.is_prefix(operand)
            if operand.name not in self._ranged.sized and not is_cut:
                continue
            if operand.name not in self._stored:
                make = self._cut if is_cut else self._looked_up
                steps += make(operand)
            operands[position] = self._stored[operand.name]
        return steps, operands

    def counted(self, inputs: Sequence[Operand], output: Operand) -> list[Step] | None:
        """Return the steps of a Range whose start depends on the sizes; None if it does not.

        Raises:
            SizeError: Its delta is not 1, or it has too many values.
        """
        ends = [self._ranged.elements(each.name) for each in inputs]
        start, limit, delta = (None if each is None else each.ravel()[0] for each in ends)
        if start is None or limit is None or delta is None or not depends(whole_number(start)):
            return None
        if delta != 1:
            raise SizeError("a Range whose start depends on the sizes supports a delta of 1")
        first, last = whole_number(start), whole_number(limit)
        low = self._ranged.ranges.bounds(first)[0]
        table = self._table(output, low, self._ranged.ranges.bounds(last)[1])
        return [self._slice(table, [first - low], [last - low], [0], output)]

    def _cut(self, operand: Operand) -> list[Step]:
        assert operand.type is not None
        dtype, shape = operand.type
        whole = TensorType(dtype, tuple(map(int, shape)))
        source = Operand(self._define(f"{operand.name}/highest", whole, is_constant=True), whole)
        copy = onnx.helper.make_node("Identity", [operand.name], [source.name])
        self._ranged.values.add_computation(copy, [operand], [source])
        self._ranged.values.add_weights(copy, [operand], [source])
        axes = [axis for axis, length in enumerate(shape) if depends(length)]
        made = Operand(
            self._define(f"{operand.name}/cut", operand.type, is_constant=False), operand.type
        )
        self._stored[operand.name] = made
        ends = [shape[axis] for axis in axes]
        return [self._slice(source, [0] * len(axes), ends, axes, made)]

    def _looked_up(self, operand: Operand) -> list[Step]:
        assert operand.type is not None
        name, dtype, shape = operand.name, operand.type.dtype, operand.type.shape
        one = TensorType(dtype, (1,))
        steps: list[Step] = []
        parts: list[Operand] = []
        for element in self._ranged.sized[name].ravel().tolist():
            if not varies(objects([element], ())):
                parts.append(self._constant(f"{name}/element", np.array([element]), dtype))
                continue
            table, place = self._table_of(operand, element)
            made = Operand(self._define(f"{name}/element", one, is_constant=False), one)
            steps.append(self._slice(table, [place], [place + 1], [0], made))
            parts.append(made)
        if len(parts) > 1:
            joined = TensorType(dtype, (len(parts),))
            made = Operand(self._define(f"{name}/joined", joined, is_constant=False), joined)
            steps.append(self._step("Concat", parts, made, {"axis": 0}))
            parts = [made]
        if shape != (len(parts),):
            target = self._constant(f"{name}/shape", np.array(shape, np.int64), DType.INT64)
            made = Operand(
                self._define(f"{name}/stored", operand.type, is_constant=False), operand.type
            )
            steps.append(self._step("Reshape", [*parts, target], made, {}))
            parts = [made]
        self._stored[name] = parts[0]
        return steps

    def _table_of(self, operand: Operand, element: object) -> tuple[Operand, int]:
        """Return a table of all values of an element, and its place there."""
        numerator, denominator = parts_of(element)
        if denominator == 1 and not depends(denominator):
            low, high = self._ranged.ranges.bounds(numerator)
            return self._table(operand, low, high + 1), numerator - low
        names = Expression.of(numerator).names | Expression.of(denominator).names
        if len(names) > 1:
            raise SizeError(
                f"{operand.name!r} holds a fraction that depends on several dimensions"
            )
        dimension = next(each for each in self._ranged.ranges.dimensions if each.name in names)
        array = np.array(
            [number_at(element, {dimension.name: value}) for value in dimension.values]
        )
        assert operand.type is not None
        table = self._constant(f"{operand.name}/table", array, operand.type.dtype)
        return table, (dimension.size - dimension.low) // dimension.step

    def _table(self, operand: Operand, low: int, high: int) -> Operand:
        """Return a constant of the integers from `low` to before `high`."""
        if high - low > MOST_CHECKED:
            raise SizeError(
                f"{operand.name!r} has {high - low:,} values, at most {MOST_CHECKED:,} are stored"
            )
        assert operand.type is not None
        array = np.arange(low, max(low, high), dtype=np.int64)
        return self._constant(f"{operand.name}/table", array, operand.type.dtype)

    def _constant(self, hint: str, array: Array, dtype: DType) -> Operand:
        tensor_type = TensorType(dtype, array.shape)
        name = self._define(hint, tensor_type, is_constant=True)
        self._ranged.values.add_array(name, array.astype(numpy_dtype(dtype)))
        return Operand(name, tensor_type)

    def _slice(
        self, source: Operand, starts: list[int], ends: list[int], axes: list[int], made: Operand
    ) -> Step:
        stated = {"starts": starts, "ends": ends, "axes": axes}
        attributes = {name: tuple(numbers) for name, numbers in stated.items()}
        operands = [source]
        for name, numbers in stated.items():
            array = np.array(numbers, np.int64)
            operand = self._constant(f"{made.name}/{name}", array, DType.INT64)
            if any(map(depends, numbers)):
                self._ranged.sized[operand.name] = objects(numbers, array.shape)
            operands.append(operand)
        step = self._step("Slice", operands, made, {})
        assert isinstance(step.operator, Imported)
        return replace(step, operator=replace(step.operator, attributes=attributes))

    def _step(
        self,
        kind: str,
        inputs: Sequence[Operand],
        made: Operand,
        stated: Mapping[str, AttributeValue],
    ) -> Step:
        names = [each.name for each in inputs]
        node = onnx.helper.make_node(kind, names, [made.name], **stated)
        operator = onnx_operator(kind, stated, origin=Origin(node, _ADDED))
        return Step(f"{made.name}/{kind.lower()}", operator, tuple(names), (made.name,))
