"""Contents of a TFLite file: weights, quantisation, options."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from arenite.planner.importers.tflite.file import DAMAGE, decode
from arenite.planner.importers.tflite.importer import model_of
from arenite.planner.importers.tflite.operators import Loop, steps_of
from arenite.planner.importers.tflite.options import custom_options
from arenite.planner.importers.tflite.sparse import made_dense
from arenite.planner.importers.tflite.variables import Place, Variables
from arenite.planner.operators.imported import Imported
from arenite.planner.programs.program import Program, Step
from arenite.planner.tensors import DType, Quantisation, Tensor, TensorKind

Array: TypeAlias = NDArray[Any]
Options: TypeAlias = Mapping[str, int | float | bool | tuple[int, ...]]

_NUMPY = {
    "float32": np.float32, "float16": np.float16, "int8": np.int8, "uint8": np.uint8,
    "int16": np.int16, "uint16": np.uint16, "int32": np.int32, "uint32": np.uint32,
    "int64": np.int64, "uint64": np.uint64, "float64": np.float64, "bool": np.bool_,
}  # fmt: skip
_NO_FIELDS = ("Init", "GetRootAs")
_MAX_INTERMEDIATES = 5
"""Of an LSTM: the sums of its four gates, and its hidden state."""


class TfliteContents(Mapping[str, Array]):
    """The constants of a TFLite file, read when asked for, and the rest of its contents.

    Attributes:
        program: The program, with quantisation of tensors and options of operators.

    Raises:
        ModelFormatError: The file is damaged.
        UnsupportedModelError: It has other control flow than IF and WHILE, or channels with zero
            points of their own.
        MissingDependencyError: The schema package is absent.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self._data = data
        subgraphs = decode(data)
        variables = Variables.of(subgraphs)
        if variables.refusal is not None:
            culprit, reason = variables.refusal
            raise UnsupportedModelError(culprit, f"{reason}; the model is planned, but not run")
        model = model_of(name, subgraphs, variables, to_run=True)
        self._locations = model.locations
        self._variables = model.variables
        self._operators = model.operators
        self._tensors = dict(_tensors_of(model.program))
        import tflite

        self._schema: Any = tflite
        self._model: Any = tflite.Model.GetRootAs(data, 0)
        self.program: Program = self._filled(model.program)

    def _filled(self, program: Program) -> Program:
        """Return a program of the file with all that this has of it."""
        tensors = {n: self._quantised(tensor) for n, tensor in program.tensors.items()}
        states = [n for n, tensor in tensors.items() if tensor.kind is TensorKind.STATE]
        return replace(
            program,
            tensors=tensors,
            steps=tuple(map(self._with_options, program.steps)),
            constants=self,
            initial={name: name for name in states if self._constant(name) is not None},
        )

    def __getitem__(self, name: str) -> Array:
        """Return the elements of a constant, or the initial elements of a state.

        Raises:
            KeyError: There is none of that name, or the file has no elements for it.
            ModelFormatError: The bytes do not fit the tensor, or lie outside the file.
        """
        found = self._constant(name) if name in self._tensors else None
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        """Return the names of all tensors: any of them may have elements in the file."""
        return iter(self._tensors)

    def __len__(self) -> int:
        """Return how many tensors there are."""
        return len(self._tensors)

    def _quantised(self, tensor: Tensor) -> Tensor:
        if tensor.dtype in (DType.FLOAT32, DType.FLOAT16) or tensor.name not in self._locations:
            return tensor
        return replace(tensor, quantisation=self._quantisation(tensor))

    def _with_options(self, step: Step) -> Step:
        assert isinstance(step.operator, Imported)
        if isinstance(step.operator, Loop):
            inner = (self._filled(each) for each in (step.operator.condition, step.operator.body))
            condition, body = inner
            return replace(step, operator=replace(step.operator, condition=condition, body=body))
        place = self._operators.get(step.name)  # none of the choice of an IF
        options = {} if place is None else self._options(place)
        return replace(step, operator=replace(step.operator, origin=options))

    def _constant(self, name: str) -> Array | None:
        tensor = self._tensors[name]
        variable = self._variables.get(name)
        place = self._locations.get(name) if variable is None else variable.start
        if place is None:
            return None
        dtype = _NUMPY.get(tensor.dtype.label)
        try:
            stated = self._at(place)
            sparsity = stated.Sparsity()
            buffer = self._model.Buffers(stated.Buffer())
            if buffer.DataLength():
                data = bytes(buffer.DataAsNumpy())
            else:
                data = self._data[buffer.Offset() : buffer.Offset() + buffer.Size()]
        except DAMAGE as error:
            raise self._damaged(name) from error
        if dtype is None:
            return None
        if not data:
            return self._empty(tensor, dtype) if 0 in tensor.shape else None
        if sparsity is not None:
            return self._dense(tensor, sparsity, data, dtype)
        if len(data) != tensor.size:
            raise ModelFormatError(
                f"constant {name!r} holds {len(data)} B, expected {tensor.size} B by its shape"
            )
        return np.frombuffer(data, dtype).reshape(tensor.shape)

    def _empty(self, tensor: Tensor, dtype: Any) -> Array:
        try:
            return np.empty(tensor.shape, dtype)
        except ValueError as error:  # its other axes are longer than addresses go
            raise ModelFormatError(f"constant {tensor.name!r}: {error}") from error

    def _dense(self, tensor: Tensor, sparsity: Any, data: bytes, dtype: Any) -> Array:
        if len(data) % np.dtype(dtype).itemsize:
            raise ModelFormatError(
                f"constant {tensor.name!r}: {len(data)} B are not a whole number of elements"
            )
        try:
            elements = np.frombuffer(data, dtype)
            return made_dense(tensor.name, sparsity, elements, tensor.shape)
        except DAMAGE as error:
            raise self._damaged(tensor.name) from error

    def _quantisation(self, tensor: Tensor) -> Quantisation | None:
        name, shape = tensor.name, tensor.shape
        try:
            variable = self._variables.get(name)
            place = self._locations[name] if variable is None else variable.value
            stated = self._at(place).Quantization()
            if stated is None or stated.ScaleLength() == 0:
                return None
            scales = tuple(stated.Scale(i) for i in range(stated.ScaleLength()))
            zeros = tuple(stated.ZeroPoint(i) for i in range(stated.ZeroPointLength()))
            axis = stated.QuantizedDimension()
        except DAMAGE as error:
            raise self._damaged(name) from error
        zeros = zeros or (0,)
        if len(shape) == 1:
            axis = 0  # converters copy a bias's axis from the filter
        if len(scales) > 1 and not (0 <= axis < len(shape) and shape[axis] == len(scales)):
            raise ModelFormatError(f"tensor {name!r}: {len(scales)} scales do not fit {shape}")
        if not all(math.isfinite(scale) and scale > 0 for scale in scales):
            raise ModelFormatError(f"tensor {name!r}: a scale is not positive")
        if len(zeros) not in (1, len(scales)):
            raise ModelFormatError(
                f"tensor {name!r}: {len(zeros)} zero points, {len(scales)} scales"
            )
        if len(set(zeros)) > 1:
            raise UnsupportedModelError(name, "zero points per channel are unsupported")
        if not -(1 << 31) <= zeros[0] < 1 << 31:
            raise ModelFormatError(f"tensor {name!r}: zero point {zeros[0]} is out of range")
        return Quantisation(scales, zeros[0], axis)

    def _options(self, place: Place) -> Options:
        """Return the options of an operator, by the schema's names."""
        try:
            subgraph = self._model.Subgraphs(place[0])
            operator = subgraph.Operators(place[1])
            if operator.CustomOptionsLength():
                code = self._model.OperatorCodes(operator.OpcodeIndex()).CustomCode() or b""
                return custom_options(
                    bytes(operator.CustomOptionsAsNumpy()), code.decode(errors="replace")
                )
            table = operator.BuiltinOptions()
            kind = self._options_type(operator.BuiltinOptionsType())
            if table is None or kind is None:
                return {}
            options = kind()
            options.Init(table.Bytes, table.Pos)
            return {**_fields(options), **self._intermediates(subgraph, operator)}
        except DAMAGE as error:
            raise ModelFormatError(
                f"operator {place[1]}: the options are outside the file"
            ) from error

    def _intermediates(self, subgraph: Any, operator: Any) -> dict[str, int | float]:
        """Return the quantisation of the intermediate results of a recurrent operator."""
        found: dict[str, int | float] = {}
        for position in range(min(operator.IntermediatesLength(), _MAX_INTERMEDIATES)):
            index = operator.Intermediates(position)
            if not 0 <= index < subgraph.TensorsLength():
                raise IndexError(index)
            stated = subgraph.Tensors(index).Quantization()
            if stated is not None and stated.ScaleLength() and stated.ZeroPointLength():
                found[f"Intermediate{position}Scale"] = stated.Scale(0)
                found[f"Intermediate{position}ZeroPoint"] = stated.ZeroPoint(0)
        return found

    def _options_type(self, code: int) -> Any:
        for name, value in vars(self._schema.BuiltinOptions).items():
            if value == code and not name.startswith("_") and name != "NONE":
                return getattr(self._schema, name, None)
        return None

    def _at(self, place: Place) -> Any:
        return self._model.Subgraphs(place[0]).Tensors(place[1])

    def _damaged(self, name: str) -> ModelFormatError:
        return ModelFormatError(f"tensor {name!r} is outside the file")


def _tensors_of(program: Program) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a program and of its loops, by name."""
    yield from program.tensors.items()
    for step in steps_of(program):
        if isinstance(step.operator, Loop):
            yield from step.operator.condition.tensors.items()
            yield from step.operator.body.tensors.items()


def _fields(options: Any) -> dict[str, int | float | bool | tuple[int, ...]]:
    found: dict[str, int | float | bool | tuple[int, ...]] = {}
    names = [name for name in dir(options) if not name.startswith("_")]
    lists = {name.removesuffix("Length") for name in names if name.endswith("Length")}
    for name in names:
        if name.startswith(_NO_FIELDS) or name.endswith("BufferHasIdentifier"):
            continue
        if name in lists:
            count = getattr(options, f"{name}Length")()
            found[name] = tuple(int(getattr(options, name)(i)) for i in range(count))
        elif not any(name == f"{each}{suffix}" for each in lists for suffix in _OF_LISTS):
            value = getattr(options, name)()
            if isinstance(value, int | float | bool):
                found[name] = value
    return found


_OF_LISTS = ("AsNumpy", "IsNone", "Length")
