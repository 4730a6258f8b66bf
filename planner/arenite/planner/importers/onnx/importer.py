"""Read an ONNX model.

Every dimension is bound and every operator typed in one pass over the nodes; what is
known before the run, such as the shape arithmetic that exporters emit, becomes constant.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from arenite.planner.errors import MissingDependencyError
from arenite.planner.program import Program

if TYPE_CHECKING:
    from arenite.planner.importers.onnx.reader import Read

_NO_DIMS: Mapping[str, int] = MappingProxyType({})
_NO_SHAPES: Mapping[str, tuple[int, ...]] = MappingProxyType({})
_NO_VALUES: Mapping[str, float] = MappingProxyType({})


def read_onnx(
    path: Path,
    *,
    dims: Mapping[str, int] = _NO_DIMS,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    values: Mapping[str, float] = _NO_VALUES,
    weights: bool = False,
) -> Program:
    """Return the program of an ONNX model.

    Weights are read only when asked for. An If whose condition is known is replaced by the
    branch taken; other control flow stays one step, whose scratch holds what the larger of its
    subgraphs has live at once, and a note says so.

    Args:
        path: An ONNX file, operator set 7 or later; external data lie beside it.
        dims: Values of free dimensions by name; one without a name goes by its input and
            axis, such as `input:0`.
        shapes: Whole shapes of inputs by name.
        values: Inputs fixed at a value, in all elements, by name: constants then, no inputs of
            the program, and an If that depends on them becomes one branch.
        weights: Whether large constants, and whatever any operator computes from constants,
            are available. Needed to run the model, not to size it.

    Raises:
        ModelFormatError: The file cannot be read or is not a valid ONNX model.
        UnsupportedModelError: A tensor has no size, or none that is known before the run.
        UnboundDimensionError: A free dimension has no value.
        BindingError: `dims`, `shapes` or `values` does not fit the model.
        MissingDependencyError: The package onnx is absent, or onnxruntime where the model
            has operators that onnx does not define.
    """
    return _reader(path)(path, dims, shapes, values, weights=weights)


def _reader(path: Path) -> "Read":
    """Return the reader, which needs the package onnx."""
    try:
        from arenite.planner.importers.onnx.reader import read
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise MissingDependencyError("onnx", "onnx", f"reading {path.name!r}") from error
    return read
