"""A whole TFLite model into a program."""

from collections.abc import Container
from pathlib import Path

from arenite.planner.dtypes import DType
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.files import read_model
from arenite.planner.graph import TensorKind
from arenite.planner.importers.tflite.contents import TfliteContents
from arenite.runtime.lowering.builder import Builder
from arenite.runtime.lowering.errors import NotLoweredError, UnsupportedOperatorsError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.lowered import Lowered, Quantisation
from arenite.runtime.lowering.tflite.shapes import fold, restate
from arenite.runtime.lowering.tflite.table import TRANSLATORS
from arenite.runtime.lowering.tflite.translation import Translation

_KNOWN_TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64,
    DType.BOOL,
)  # fmt: skip


def lower_tflite(path: Path, *, supported: Container[str] | None = None) -> Lowered:
    """Return the program of a TFLite model.

    Args:
        path: The model.
        supported: Names of the operators that the core runs; None for all there are.

    Raises:
        ModelError: The model cannot be read.
        UnsupportedOperatorsError: The core lacks an operator, or the form it has here.
    """
    contents = TfliteContents(path.name, read_model(path))
    graph = contents.graph

    def quantisation(name: str) -> Quantisation | None:
        stated = contents.quantisation(name)
        is_plain = graph.tensors[name].dtype in (DType.FLOAT32, DType.FLOAT16)
        if stated is None or is_plain:
            return None
        if len(set(stated.zero_points)) > 1:
            raise UnsupportedModelError(name, "each channel has its own zero point")
        return Quantisation(stated.scales, stated.zero_points[0], stated.axis)

    builder = Builder(graph, contents.constant, quantisation, supported)
    for tensor in graph.tensors.values():
        if tensor.kind is TensorKind.STATE:
            builder.add_state(tensor.name)
    for name in graph.inputs:
        if graph.tensors[name].dtype not in _KNOWN_TYPES:
            raise UnsupportedModelError(
                name, f"the runtime has no {graph.tensors[name].dtype.label}"
            )
        builder.add_input(name, as_written(len(graph.tensors[name].shape)))
    options = [contents.options(step) for step in range(len(graph.operators))]
    producers = {
        name: (operator, options[step])
        for step, operator in enumerate(graph.operators)
        for name in operator.writes
    }
    refused: list[tuple[str, str, str]] = []
    unknown: set[str] = set()
    for step, operator in enumerate(graph.operators):
        if unknown.intersection(operator.reads):
            unknown.update(operator.writes)
            continue
        t = Translation(builder, operator, options[step], producers)
        try:
            restate(t)
            if fold(t):
                continue
            translate = TRANSLATORS.get(operator.op_type)
            if translate is None:
                raise NotLoweredError("there is no kernel of ours")
            translate(t)
        except NotLoweredError as reason:
            refused.append((operator.name, operator.op_type, str(reason)))
            unknown.update(operator.writes)
    if refused:
        raise UnsupportedOperatorsError(
            refused, "LiteRT may run it: `arenite plan --target litert` plans for that"
        )
    return builder.finish()
