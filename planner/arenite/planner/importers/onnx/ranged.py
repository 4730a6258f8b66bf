"""Tensors whose lengths or values depend on dimensions, while a model is read.

A tensor that is known before the run is one of these:

* sized: its few elements are expressions (`sized`),
* stable: it is a part of one array, from the start of each axis; the array is that of the highest
  sizes,
* constant: the same at all sizes.

All else that depends on a dimension is computed by steps. Each rule is checked against the onnx
package at the lowest sizes and between: the results of each node are inferred there once more.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.helper

from arenite.planner.errors import ModelError, SizeError
from arenite.planner.importers.onnx.call import Call, Objects, Shape, text
from arenite.planner.importers.onnx.file import normal_domain
from arenite.planner.importers.onnx.inference import Inference, bounded_type
from arenite.planner.importers.onnx.lengths import is_known, output_shapes
from arenite.planner.importers.onnx.node import Dialect, Operand, attributes, op_type
from arenite.planner.importers.onnx.sized import (
    MOST_SIZED,
    MOVES,
    number_at,
    objects,
    of_array,
    sized_values,
    varies,
)
from arenite.planner.importers.onnx.types import TensorType, numpy_dtype
from arenite.planner.importers.onnx.values import Array, Values
from arenite.planner.programs.program import Names
from arenite.planner.sizes import Dimension, Expression, Ranges, Size, Sizes, at, depends, same
from arenite.planner.tensors import DType


def is_sized(tensor_type: TensorType | None) -> bool:
    """Tell whether a length depends on a dimension."""
    return tensor_type is not None and any(map(depends, tensor_type.shape))


class Ranged:
    """What is known of the tensors that depend on dimensions.

    Attributes:
        ranges: The dimensions.
        sized: Elements of the tensors that are expressions, by flat name.
        stable: Flat names of the tensors of which each size has the first part of one array.
        uniform: Those among them with one value in all elements.
        computed: Flat names of what steps compute of sizes, with why it is no expression.
        zeros: Of conditions among them that hold where a size is 0 and nowhere else, that size.
        values: Known values at the highest sizes.
    """

    def __init__(
        self, dimensions: Sequence[Dimension], dialect: Dialect, folder: Path, values: Values
    ) -> None:
        self.ranges = Ranges(dimensions)
        self.sized: dict[str, Objects] = {}
        self.stable: set[str] = set()
        self.uniform: set[str] = set()
        self.computed: dict[str, str] = {}
        self.zeros: dict[str, int] = {}
        self._most: dict[str, int] = {}
        self._dialect = dialect
        self._folder = folder
        self.values = values

    def add_uniform(self, operand: Operand) -> None:
        """Note a constant with one value in all elements."""
        if is_sized(operand.type):
            self.stable.add(operand.name)
            self.uniform.add(operand.name)

    def depends(self, operand: Operand) -> bool:
        """Tell whether a tensor has other lengths or values at other sizes."""
        name = operand.name
        return is_sized(operand.type) or name in self.sized or name in self.computed

    def counted_type(self, name: str, bound: TensorType, axis: int) -> TensorType:
        """Return the type of a tensor of which a run makes as much as its data say.

        Args:
            name: The tensor.
            bound: The largest type that it may have.
            axis: The axis whose length is counted.
        """
        high = int(bound.shape[axis])
        names = Names(each.name for each in self.ranges.dimensions)
        dimension = Dimension(names.take(name), 0, high, counted_by=name)
        self._most[dimension.name] = bound.shape[axis]
        if high > 0:
            self.ranges = Ranges((*self.ranges.dimensions, dimension))
        shape = (*bound.shape[:axis], dimension.size, *bound.shape[axis + 1 :])
        return TensorType(bound.dtype, shape)

    def types(
        self,
        node: onnx.NodeProto,
        name: str,
        inputs: Sequence[Operand],
        made: Sequence[TensorType | None],
    ) -> list[TensorType | None]:
        """Return the types of a node's outputs at all sizes.

        Args:
            made: The types at the highest sizes.

        Raises:
            SizeError: A length is not known for all sizes.
        """
        call = self._call(node, inputs, made)
        if is_known(call.kind) and not any(
            is_sized(operand.type) or (position in parameters(call.kind) and self.depends(operand))
            for position, operand in enumerate(inputs)
        ):
            return list(made)
        label = f"operator {name!r} ({call.kind})"
        try:
            shapes = output_shapes(call)
        except SizeError as error:
            error.reason = f"{label}: {error.reason}"
            raise
        types: list[TensorType | None] = []
        for position, found in enumerate(made):
            shape = tuple(map(self.ranges.plain, shapes[position])) if found is not None else ()
            types.append(None if found is None else TensorType(found.dtype, shape))
            if found is not None and tuple(map(int, shape)) != found.shape:
                raise _disagreement(label, node.output[position], shape, found.shape, "highest")
        for point in self.ranges.points:
            self._check_types(node, label, inputs, types, point)
        return types

    def _call(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], made: Sequence[TensorType | None]
    ) -> Call:
        return Call(
            kind=op_type(node),
            opset=self._dialect.opsets.get(normal_domain(node.domain), 1),
            attributes=attributes(node),
            shapes=[operand.type.shape if operand.type else None for operand in inputs],
            made=made,
            value=lambda position: self.elements(inputs[position].name),
            ranges=self.ranges,
        )

    def elements(self, name: str) -> Objects | None:
        """Return the elements of a small tensor, None if they are unknown before the run."""
        if name in self.sized:
            return self.sized[name]
        if name in self.stable or name in self.computed:
            return None
        value = self.values.get(name)
        return None if value is None else of_array(value)

    def _check_types(
        self,
        node: onnx.NodeProto,
        label: str,
        inputs: Sequence[Operand],
        types: Sequence[TensorType | None],
        point: Sizes,
    ) -> None:
        """Compare with what the onnx package infers at other sizes."""
        where = ", ".join(f"{name}={value}" for name, value in point.items())
        values = Values(self._folder, self._dialect)
        operands = [self._operand_at(operand, point) for operand in inputs]
        for operand in inputs:
            array = self.array_at(operand, point) if operand.type else None
            if array is not None:
                values.add_array(operand.name, array)
        expected = [None if t is None else type_at(t, point) for t in types]
        if op_type(node) == "Reshape" and any(t is not None and 0 in t.shape for t in expected):
            return  # it infers no -1 for nothing
        try:
            found = Inference(self._dialect, values).output_types(
                node, label, operands, [None] * len(expected), bounded_type(node, operands, values)
            )
        except ModelError as error:
            raise SizeError(f"{label}, at {where}: {error.reason}") from error
        for position, (stated, one) in enumerate(zip(types, found, strict=True)):
            if stated is not None and one != expected[position]:
                shape = one.shape if one else ()
                raise _disagreement(label, node.output[position], stated.shape, shape, where)

    def _operand_at(self, operand: Operand, point: Sizes) -> Operand:
        return Operand(operand.name, type_at(operand.type, point) if operand.type else None)

    def array_at(self, operand: Operand, point: Sizes) -> Array | None:
        """Return the elements of a tensor at some sizes, None if they are unknown."""
        name, tensor_type = operand
        assert tensor_type is not None
        if name in self.sized:
            flat = [number_at(each, point) for each in self.sized[name].ravel().tolist()]
            return np.array(flat, numpy_dtype(tensor_type.dtype)).reshape(tensor_type.shape)
        if name in self.computed:
            return None
        value = self.values.get(name)
        if value is None or name not in self.stable:
            return value
        return value[tuple(slice(0, at(length, point)) for length in tensor_type.shape)]

    def folds(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> bool:
        """Tell whether a node's results are sized, stable or constant, and note them.

        Args:
            inputs: All known before the run, or the input of a Shape.
        """
        made = [Operand(each.name, each.type) for each in outputs if each.type]
        types = [each.type for each in made if each.type]
        call = self._call(node, inputs, [each.type for each in outputs])
        try:
            if not any(map(is_sized, types)):
                found = self._sized(call, node, inputs, types)
                if found is not None:
                    self._note_sized(node, inputs, made, found)
                    return True
            if self._is_stable(call, node, inputs):
                self._note_stable(node, inputs, made)
                return True
            reason = "it is computed of lengths that depend on dimensions"
        except SizeError as error:
            reason = error.reason
        for each in made:
            self.computed[each.name] = reason
            self.values.add_failure(each.name, reason)
        return False

    def note_zero(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        """Note a condition that holds where a size is 0."""
        names, kind = [each.name for each in inputs], op_type(node)
        if kind in ("Cast", "Identity") and names[0] in self.zeros:
            self.zeros[outputs[0].name] = self.zeros[names[0]]
        elif kind == "Equal":
            one, other = map(self.elements, names)
            if one is not None and other is not None and one.size == other.size == 1:
                difference = one.item() - other.item()
                if isinstance(difference, Size):
                    self.zeros[outputs[0].name] = difference

    def vanishes(self, length: int, zero: int) -> bool:
        """Tell whether a length is proved to be 0 wherever a size is."""
        common = math.gcd(*(factor for _, factor in Expression.of(zero).terms))
        if same(length * common // zero * zero, length * common):
            return True
        return any(
            each.counted_by
            and same(length, each.size)
            and self.vanishes(self._most[each.name], zero)
            for each in self.ranges.dimensions
        )

    def is_prefix(self, operand: Operand) -> bool:
        """Tell whether the elements at each size are the first ones in storage."""
        if operand.name in self.uniform or operand.type is None:
            return True
        shape = operand.type.shape
        sized = [axis for axis, length in enumerate(shape) if depends(length)]
        return all(not depends(n) and n == 1 for n in shape[: sized[-1]]) if sized else True

    def require_decided(self, condition: str, name: str) -> None:
        """Check that the condition of an If does not depend on the sizes.

        Raises:
            SizeError: It does.
        """
        if condition in self.computed and condition not in self.zeros:
            raise SizeError(f"operator {name!r} (If): {self.computed[condition]}")

    def refuse(self, label: str, names: Iterable[str], types: Mapping[str, TensorType]) -> None:
        """Refuse an operator with subgraphs of which a tensor depends on a dimension.

        Raises:
            SizeError: One does.
        """
        for name in names:
            if self.depends(Operand(name, types.get(name))):
                raise SizeError(
                    f"{label}: {name!r} depends on a dimension, which is unsupported inside and "
                    "around subgraphs that stay; fix an input that decides the condition, or "
                    "the dimension"
                )

    def _sized(
        self, call: Call, node: onnx.NodeProto, inputs: Sequence[Operand], types: list[TensorType]
    ) -> list[Objects] | None:
        if sum(math.prod(each.shape) for each in types) > MOST_SIZED or len(types) < 1:
            return None
        if call.kind in MOVES:
            return self._moved(call, node, inputs)
        return sized_values(call, types)

    def _moved(
        self, call: Call, node: onnx.NodeProto, inputs: Sequence[Operand]
    ) -> list[Objects] | None:
        """Return the elements of an operator that moves them, found by moving their positions."""
        holders = MOVES[call.kind] or tuple(range(len(inputs)))
        values = Values(self._folder, self._dialect)
        pool: list[object] = []
        operands = list(inputs)
        for position, operand in enumerate(inputs):
            if operand.type is None:
                continue
            elements = self.elements(operand.name)
            if elements is None or (position not in holders and varies(elements)):
                return None
            if position in holders:
                places = np.arange(len(pool), len(pool) + elements.size, dtype=np.int64)
                pool += elements.ravel().tolist()
                name = f"{position}"  # the same tensor may be several inputs
                operands[position] = Operand(name, TensorType(DType.INT64, operand.type.shape))
                values.add_array(name, places.reshape(elements.shape))
            else:
                value = self.values.get(operand.name)
                if value is None:
                    return None
                values.add_array(operand.name, value)
        results = values.evaluate(node, operands)
        if results is None:
            return None
        return [objects([pool[p] for p in each.ravel().tolist()], each.shape) for each in results]

    def _note_sized(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Operand],
        made: Sequence[Operand],
        found: Sequence[Objects],
    ) -> None:
        for operand, elements in zip(made, found, strict=True):
            if varies(elements):
                self.sized[operand.name] = elements
        self._check_values(node, inputs, made, found)

    def _check_values(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Operand],
        made: Sequence[Operand],
        found: Sequence[Objects] | None,
    ) -> None:
        """Compare elements with what the onnx package computes at several sizes.

        Args:
            found: The elements as expressions; None for stable tensors.
        """
        highest = {each.name: each.high for each in self.ranges.dimensions}
        for point in (highest, *self.ranges.points):
            values = Values(self._folder, self._dialect)
            operands = [self._operand_at(operand, point) for operand in inputs]
            for operand in inputs:
                array = self.array_at(operand, point) if operand.type else None
                if operand.type and op_type(node) in ("Shape", "Size"):
                    shape = tuple(at(length, point) for length in operand.type.shape)
                    array = np.broadcast_to(np.zeros((), numpy_dtype(operand.type.dtype)), shape)
                if array is not None:
                    values.add_array(operand.name, array)
            results = values.evaluate(node, operands)
            if results is None:
                continue
            for position, (operand, result) in enumerate(zip(made, results, strict=True)):
                if found is not None:
                    flat = [number_at(each, point) for each in found[position].ravel().tolist()]
                    expected: Array | None = np.array(flat, result.dtype).reshape(result.shape)
                else:
                    expected = self.array_at(operand, point)
                nan = result.dtype.kind == "f"
                if expected is not None and not np.array_equal(expected, result, equal_nan=nan):
                    where = ", ".join(f"{name}={value}" for name, value in point.items())
                    raise SizeError(
                        f"operator {node.name!r} ({op_type(node)}): the elements of "
                        f"{operand.name!r} at {where} are not those of the rule for all sizes"
                    )

    def _note_stable(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], made: Sequence[Operand]
    ) -> None:
        known = [i for i in inputs if i.type and not self._is_parameter(node, inputs, i)]
        is_uniform = op_type(node) == "ConstantOfShape" or (
            op_type(node) not in _UNEVEN
            and all(
                each.name in self.uniform or (each.type and math.prod(each.type.shape) == 1)
                for each in known
            )
        )
        for each in made:
            if is_uniform:
                self.add_uniform(each)
            elif is_sized(each.type):
                self.stable.add(each.name)
        if all(math.prod(each.type.shape) <= MOST_CHECKED for each in made if each.type):
            self.values.add_computation(node, inputs, made)
            self._check_values(node, inputs, made, None)

    def _is_parameter(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], operand: Operand
    ) -> bool:
        return any(
            inputs[position] == operand
            for position in parameters(op_type(node))
            if position < len(inputs)
        )

    def _is_stable(self, call: Call, node: onnx.NodeProto, inputs: Sequence[Operand]) -> bool:
        """Tell whether the result at each size is the first part of that at the highest sizes."""
        for position, operand in enumerate(inputs):
            is_parameter = position in parameters(call.kind)
            if operand.type is None or is_parameter:
                continue
            if operand.name in self.sized or operand.name in self.computed:
                return False
        if call.kind == "Trilu" and len(inputs) > 1 and inputs[1].name in self.sized:
            return False
        if call.kind in _STABLE:
            return True
        sources = [operand for operand in inputs if operand.type]
        if call.kind in ("Reshape", "Flatten", "Tile"):
            if all(each.name in self.uniform for each in sources[:1]):
                return True
            made = call.made[0]
            before = [text(each) for each in call.shape() if depends(each) or each != 1]
            after = [
                text(each) for each in (made.shape if made else ()) if depends(each) or each != 1
            ]
            return call.kind != "Tile" and before == after
        if call.kind == "Range":
            return not any(each.name in self.sized for each in (sources[0], sources[2]))
        if call.kind == "Slice":
            return self._slices_stably(call)
        if call.kind == "Gather":
            axis = call.axis(0, len(call.shape()))
            return not depends(call.shape()[axis])
        if call.kind == "Concat":
            made = call.made[0]
            axis = call.axis(0, len(made.shape) if made else 1)
            return not any(depends((each.type or made).shape[axis]) for each in sources[:-1])  # type: ignore[union-attr]
        if call.kind == "CumSum":
            return not (call.integer("reverse", 0) or call.integer("exclusive", 0))
        if call.kind == "MatMul":
            return call.shape()[-1] == 1 and not depends(call.shape()[-1])
        return False

    def _slices_stably(self, call: Call) -> bool:
        starts = call.stated("starts", 1) or ()
        axes = call.stated("axes", 3) or range(len(starts))
        steps = call.stated("steps", 4) or (1,) * len(starts)
        shape = call.shape()
        return all(
            not depends(start)
            and not depends(step)
            and ((step > 0 and start >= 0) or not depends(shape[axis]))
            for start, axis, step in zip(starts, axes, steps, strict=True)
        )


MOST_CHECKED = 1 << 20
"""Elements of a tensor that is compared with what the onnx package computes."""

_STABLE = frozenset(
    {"Abs", "Add", "And", "Cast", "Ceil", "Clip", "ConstantOfShape", "Cos", "Div", "Dropout",
     "Equal", "Exp", "Expand", "EyeLike", "Floor", "Greater", "GreaterOrEqual", "Identity",
     "IsNaN", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow",
     "Reciprocal", "Round", "Sign", "Sin", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Transpose",
     "Trilu", "Unsqueeze", "Where", "Xor"}
)  # fmt: skip
"""Operators that make an element of those at its place."""

_UNEVEN = frozenset({"Concat", "CumSum", "EyeLike", "MatMul", "Range", "Trilu"})
"""Operators whose results are not uniform where their inputs are."""

_PARAMETERS = {
    "CenterCropPad": (1,), "ConstantOfShape": (0,), "CumSum": (1,), "Expand": (1,),
    "NonMaxSuppression": (2,), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2),
    "Reshape": (1,), "Resize": (1, 2, 3), "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,),
    "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
}  # fmt: skip


def parameters(kind: str) -> tuple[int, ...]:
    """Return the positions of the inputs that state what an operator does, rather than data."""
    return _PARAMETERS.get(kind, (1,) if kind.startswith("Reduce") else ())


def type_at(tensor_type: TensorType, point: Sizes) -> TensorType:
    """Return a type where the dimensions have these values."""
    return TensorType(tensor_type.dtype, tuple(at(length, point) for length in tensor_type.shape))


def _disagreement(label: str, output: str, shape: Shape, found: Shape, where: str) -> SizeError:
    stated = "x".join(map(text, shape))
    return SizeError(
        f"{label}: the shape of {output!r} is {stated} by its rule, but "
        f"{'x'.join(map(str, found))} at the sizes {where}"
    )
