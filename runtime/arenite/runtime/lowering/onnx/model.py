"""A whole ONNX model into a program."""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path

from arenite.planner.errors import UnsupportedModelError
from arenite.planner.graph import Graph, Operator
from arenite.planner.importers.onnx import read_onnx_model
from arenite.planner.importers.onnx.reader import OnnxModel
from arenite.runtime.lowering.builder import Builder
from arenite.runtime.lowering.errors import NotLoweredError, UnsupportedOperatorsError
from arenite.runtime.lowering.layout import Order, as_written, channels_last
from arenite.runtime.lowering.lowered import Lowered
from arenite.runtime.lowering.onnx.external import KNOWN_TYPES, external
from arenite.runtime.lowering.onnx.quantisation import stated_quantisations, with_twins
from arenite.runtime.lowering.onnx.quantised import Quantised
from arenite.runtime.lowering.onnx.table import TRANSLATORS
from arenite.runtime.lowering.onnx.translation import Translation

_TAKES_IMAGES = frozenset(
    {"AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace",
     "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization", "LRN", "MaxPool",
     "QLinearConv", "Resize", "SpaceToDepth", "Upsample", "com.microsoft.FusedConv"}
)  # fmt: skip
_KEEPS_LAYOUT = frozenset(
    {"Add", "Cast", "Clip", "DequantizeLinear", "Div", "Identity", "Mul", "Pad", "QuantizeLinear",
     "Relu", "Slice", "Sub"}
)  # fmt: skip


def lower_onnx(
    path: Path,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    supported: Container[str] | None = None,
) -> Lowered:
    """Return the program of an ONNX model.

    Args:
        path: The model.
        dims: Values of free dimensions, by name.
        shapes: Shapes of graph inputs, by name.
        supported: Names of the operators that the core runs; None for all there are.

    Raises:
        ModelError: The model cannot be read.
        UnsupportedOperatorsError: An operator has neither a kernel of ours nor, without
            subgraphs, one of ONNX Runtime's.
    """
    model = read_onnx_model(path, dims=dims or {}, shapes=shapes or {})
    quantisations = stated_quantisations(model)
    graph = with_twins(model.graph, quantisations)
    builder = Builder(graph, model.values.get, quantisations.get, supported)
    quantised = Quantised(builder, model, quantisations)
    producers = {name: each for each in graph.operators for name in each.writes}
    for name in graph.inputs:
        if graph.tensors[name].dtype not in KNOWN_TYPES:
            raise UnsupportedModelError(
                name, f"the runtime has no {graph.tensors[name].dtype.label}"
            )
        builder.add_input(name, _input_order(graph, name))
    refused: list[tuple[str, str, str]] = []
    for operator in graph.operators:
        _translate(
            Translation(builder, operator, model.dialect.opsets.get("", 1), producers),
            model,
            quantised,
            refused,
        )
        if refused:
            break
    if refused:
        raise UnsupportedOperatorsError(
            refused, "the core lacks it, and ONNX Runtime cannot run it alone"
        )
    lowered = builder.finish()
    fallbacks = Counter(
        reason for name, reason in builder.fallbacks.items() if name in lowered.steps
    )
    if not fallbacks:
        return lowered
    note = "operators left to ONNX Runtime: " + "; ".join(
        f"{n} {reason}" for reason, n in fallbacks.items()
    )
    return replace(lowered, notes=(*lowered.notes, note))


def _translate(
    t: Translation, model: OnnxModel, quantised: Quantised, refused: list[tuple[str, str, str]]
) -> None:
    operator = t.operator
    try:
        if quantised.translate(t):
            return
        translate = TRANSLATORS.get(operator.op_type)
        if translate is None:
            raise NotLoweredError("there is no kernel of ours")
        translate(t)
    except NotLoweredError as reason:
        try:
            external(t.builder, model, operator)
            t.builder.fallbacks[operator.name] = f"{operator.op_type} ({reason})"
        except NotLoweredError as other:
            refused.append((operator.name, operator.op_type, str(other)))


def _input_order(graph: Graph, name: str) -> Order:
    """Return channels last for an input that an image operator reads first, else as written."""
    rank = len(graph.tensors[name].shape)
    readers: dict[str, list[Operator]] = {}
    for operator in graph.operators:
        for read in operator.reads:
            readers.setdefault(read, []).append(operator)
    seen: set[str] = set()
    pending = [name]
    while rank == 4 and pending:
        current = pending.pop()
        for operator in readers.get(current, ()):
            if operator.op_type in _TAKES_IMAGES and operator.inputs[0] == current:
                return channels_last(rank)
            if operator.op_type in _KEEPS_LAYOUT and operator.name not in seen:
                seen.add(operator.name)
                pending.append(operator.outputs[0])
    return as_written(rank)
