"""Values that are known before the run, computed only when asked for."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from arenite.planner.errors import MissingDataError, SizeError, UnknownConstantError
from arenite.planner.importers.onnx.external_data import UnreadableTensorError, read_tensor
from arenite.planner.importers.onnx.file import normal_domain
from arenite.planner.importers.onnx.node import Dialect, Operand, input_name, single_node_model
from arenite.planner.importers.onnx.types import TensorType, numpy_dtype, read_dtype, why_no_dtype

MAX_ELEMENTS = 65_536
"""Values of more elements are weights, not shapes; they are not computed to size a model."""
MAX_FOLDED_BYTES = 1 << 30
"""Bytes of constants that operators may compute for any file: a few bytes can state an
array that fills memory. Networks of the onnx package state their weights so (VGG-19: 575 MB)."""
MAX_FOLDED_GROWTH = 16
"""Further bytes for each byte read: int8 weights become floats and pass several operators."""

# Operators that compute shapes: quick at MAX_ELEMENTS, stateless and deterministic.
_EVALUATED = frozenset(
    {"Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant",
     "ConstantOfShape", "CumSum", "Div", "Equal", "Expand", "Flatten", "Floor", "Gather",
     "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less",
     "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "Or", "Pad",
     "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
     "ReduceSum", "Reshape", "Round", "Scatter", "ScatterElements", "ScatterND", "Sign",
     "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tile", "TopK", "Transpose", "Trilu",
     "Unsqueeze", "Where", "Xor"}
)  # fmt: skip
_SHAPED_BY_VALUES = frozenset({"Compress", "NonZero"})
# Exceptions of numpy and onnx.reference for operands that do not fit together.
_EVALUATION_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class _Computation:
    node: onnx.NodeProto
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]

    def unknown_inputs(self, known: Mapping[str, Array | None]) -> list[str]:
        return [i.name for i in self.inputs if i.type and i.name not in known]


class Values:
    """The known values of a model's tensors, by name.

    Args:
        weights: Whether large values, and whatever any operator computes from constants,
            are available too. Needed to run the model, not to size it.
    """

    def __init__(self, folder: Path, dialect: Dialect, *, weights: bool = False) -> None:
        self.folder = folder
        self._dialect = dialect
        self._max_elements = sys.maxsize if weights else MAX_ELEMENTS
        self._weights = weights
        self._known: dict[str, Array | None] = {}
        self._sources: dict[str, onnx.TensorProto | _Computation] = {}
        self._num_read = 0
        self._num_folded = 0
        self._missing: set[str] = set()
        self.failures: dict[str, str] = {}

    def add_array(self, name: str, array: Array) -> None:
        self._known[name] = array

    def add_failure(self, name: str, reason: str) -> None:
        """Record why a constant has no value."""
        self.failures[name] = reason

    def add_tensor(self, name: str, tensor: onnx.TensorProto) -> None:
        """Add a value that is read when asked for."""
        if math.prod(tensor.dims) <= self._max_elements and why_no_dtype(tensor.data_type) is None:
            self._sources[name] = tensor

    def add_computation(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        """Add the node that computes values, if its operator is one of shape computations."""
        if (
            not normal_domain(node.domain)
            and node.op_type in _EVALUATED
            and all(o.name in self._sources or o.name in self._known for o in inputs if o.type)
            and all(math.prod(o.type.shape) <= self._max_elements for o in outputs if o.type)
        ):
            self._add_source(node, inputs, outputs)

    def add_weights(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        """Add the node that computes weights, of any operator, if weights are wanted."""
        if self._weights and outputs[0].name not in self._known:
            self._add_source(node, inputs, outputs)

    def _add_source(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        source = _Computation(node, tuple(inputs), tuple(outputs))
        self._sources.update((output.name, source) for output in outputs if output.type)

    def get(self, name: str) -> Array | None:
        """Return the value, None if it is not known before the run.

        If a value could not be computed, `failures` says why.
        """
        pending = [name]
        while pending:
            current = pending[-1]
            source = self._sources.get(current)
            if current in self._known or source is None:
                pending.pop()
            elif isinstance(source, onnx.TensorProto):
                self._known[current] = self._read(current, source)
            elif missing := source.unknown_inputs(self._known):
                pending.extend(missing)
            else:
                self._known.update(self._compute(current, source))
        return self._known.get(name)

    def why_unknown(self, name: str) -> UnknownConstantError:
        """Return the error that says why a constant, or an operand of it, is unknown."""
        current = name
        while current not in self.failures:
            source = self._sources.get(current)
            inputs = source.inputs if isinstance(source, _Computation) else ()
            unknown = [i.name for i in inputs if i.type and self._known.get(i.name) is None]
            if not unknown:
                return UnknownConstantError(name, "its value is unknown before the run")
            current = unknown[0]
        reason = self.failures[current]
        if current in self._missing:
            return MissingDataError(current, reason)
        if current != name:
            reason = f"computed from {current!r}: {reason}"
        return UnknownConstantError(name, reason)

    def computation(self, name: str) -> tuple[onnx.NodeProto, tuple[str, ...]] | None:
        """Return the node that computes a value and the names it reads, if one does."""
        source = self._sources.get(name)
        if not isinstance(source, _Computation):
            return None
        return source.node, tuple(each.name if each.type else "" for each in source.inputs)

    def as_tensor(self, name: str) -> onnx.TensorProto | None:
        """Return the value as ONNX writes it, None if it is not known."""
        value = self.get(name)
        return None if value is None else onnx.numpy_helper.from_array(value)

    def result_types(
        self, node: onnx.NodeProto, inputs: Sequence[Operand]
    ) -> list[TensorType | None]:
        """Return the types of a node's outputs by computing them, [] if its inputs are unknown.

        Only for operators whose output shapes depend on values.
        """
        if normal_domain(node.domain) or node.op_type not in _SHAPED_BY_VALUES:
            return []
        results = self._evaluate(node.output[0], node, inputs) or []
        types: list[TensorType | None] = []
        for result in results:
            dtype = read_dtype(onnx.helper.np_dtype_to_tensor_dtype(result.dtype))
            types.append(TensorType(dtype, result.shape) if dtype is not None else None)
        return types

    def evaluate(self, node: onnx.NodeProto, inputs: Sequence[Operand]) -> list[Array] | None:
        """Return the results of a node, None if they cannot be computed."""
        return self._evaluate(node.output[0], node, inputs)

    def _read(self, name: str, tensor: onnx.TensorProto) -> Array | None:
        try:
            value = read_tensor(tensor, self.folder)
        except UnreadableTensorError as error:
            self.failures[name] = error.fault
            if error.is_external:
                self._missing.add(name)
            return None
        self._num_read += value.nbytes
        return value

    def _compute(self, name: str, source: _Computation) -> dict[str, Array | None]:
        outputs = {output.name: output.type for output in source.outputs if output.type}
        if any(self._known[each.name] is None for each in source.inputs if each.type):
            return dict.fromkeys(outputs)
        size = sum(each.size for each in outputs.values())
        limit = MAX_FOLDED_BYTES + MAX_FOLDED_GROWTH * self._num_read
        if self._num_folded + size > limit:
            self.failures[name] = (
                f"{source.node.op_type} computes {size:,} B of it before the run; at most "
                f"{limit:,} B of this model's constants may be computed"
            )
            return dict.fromkeys(outputs)
        results = self._evaluate(name, source.node, source.inputs)
        if results is None:
            return dict.fromkeys(outputs)
        self._num_folded += size
        return {
            output: np.asarray(value, numpy_dtype(tensor_type.dtype))
            for (output, tensor_type), value in zip(outputs.items(), results, strict=True)
        }

    def _evaluate(
        self, name: str, node: onnx.NodeProto, inputs: Sequence[Operand]
    ) -> list[Array] | None:
        feeds = {}
        for position, operand in enumerate(inputs):
            if operand.type:
                value = self.get(operand.name)
                if value is None:
                    return None
                feeds[input_name(position)] = value
        try:
            if node.op_type == "DequantizeLinear" and feeds[input_name(1)].ndim < 2:
                return [_dequantised(node, list(feeds.values()))]
            if node.op_type == "CumSum":  # runtimes take an axis of one element, too
                feeds[input_name(1)] = feeds[input_name(1)].reshape(())
            model = single_node_model(node, self._dialect, inputs, {})
            with np.errstate(all="ignore"):
                return [
                    np.asarray(result) for result in ReferenceEvaluator(model).run(None, feeds)
                ]
        except _EVALUATION_ERRORS as error:
            self.failures[name] = f"cannot be computed: {error}"
            return None


class Constants(Mapping[str, Array]):
    """The constants of a program, each read or computed on first use.

    Args:
        names: Names of its constants.
        sized: Elements of constants that depend on dimensions, as arrays of objects: sizes
            (`arenite.planner.sizes`), or fractions of them.
        is_wide: Whether 16-bit floats are given as 32-bit floats.
    """

    def __init__(
        self,
        values: Values,
        names: Sequence[str],
        sized: Mapping[str, NDArray[np.object_]],
        *,
        is_wide: bool = False,
    ) -> None:
        self._values = values
        self._names = dict.fromkeys(names)
        self._sized = sized
        self._is_wide = is_wide

    def widened(self) -> "Constants":
        """Return the constants with 16-bit floats as 32-bit floats."""
        return Constants(self._values, list(self._names), self._sized, is_wide=True)

    def __getitem__(self, name: str) -> Array:
        """Return the elements of a constant.

        Raises:
            KeyError: There is none of that name.
            UnknownConstantError: Its elements are not known, for a reason that it states; a
                KeyError too, so that `get` gives None.
        """
        if name not in self._names:
            raise KeyError(name)
        value = self.value(name)
        if value is None:
            raise self._values.why_unknown(name)
        return value

    def _given(self, value: Array) -> Array:
        is_narrow = self._is_wide and value.dtype == np.float16
        return value.astype(np.float32) if is_narrow else value

    def __iter__(self) -> Iterator[str]:
        """Return the names of all constants, known or not."""
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def value(self, name: str) -> Array | None:
        """Return the elements of any tensor that is known before the run, None for others."""
        if name in self._sized:
            return self._sized[name]
        value = self._values.get(name)
        return None if value is None else self._given(value)

    def computation(self, name: str) -> tuple[onnx.NodeProto, tuple[str, ...]] | None:
        """Return the node that computes a value and the names it reads, if one does."""
        return self._values.computation(name)

    def as_tensor(self, name: str) -> onnx.TensorProto | None:
        """Return the value as ONNX writes it, None if it is not known.

        Raises:
            SizeError: It depends on dimensions.
        """
        if name in self._sized:
            raise SizeError(f"constant {name!r} has other elements at each size of the range")
        tensor = self._values.as_tensor(name)
        if tensor is None or not self._is_wide or tensor.data_type != onnx.TensorProto.FLOAT16:
            return tensor
        return onnx.numpy_helper.from_array(self._given(onnx.numpy_helper.to_array(tensor)))

    @property
    def folder(self) -> Path:
        """Folder of external data."""
        return self._values.folder


def _dequantised(node: onnx.NodeProto, inputs: Sequence[Array]) -> Array:
    """Return scale * (q - zero point); onnx.reference has it only from version 19 on."""
    integers, stated, *zero_points = inputs
    scale = stated.astype(np.float32)
    zero_point = zero_points[0] if zero_points else np.zeros((), integers.dtype)
    if scale.size > 1:
        axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
        shape = [1] * integers.ndim
        shape[axis] = -1
        scale, zero_point = scale.reshape(shape), np.broadcast_to(zero_point, scale.shape)
        zero_point = zero_point.reshape(shape)
    difference = integers.astype(np.int32) - zero_point.astype(np.int32)
    return np.asarray(difference.astype(np.float32) * scale).reshape(integers.shape)
