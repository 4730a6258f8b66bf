"""Operators that the core does not run: models of one operator for ONNX Runtime."""

from arenite.planner.dtypes import DType
from arenite.planner.graph import Operator
from arenite.planner.importers.onnx.reader import OnnxModel
from arenite.runtime.lowering.builder import Builder, Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.program.operators import External

KNOWN_TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64,
    DType.BOOL,
)  # fmt: skip
"""Element types that the core can place."""


def external(builder: Builder, model: OnnxModel, operator: Operator) -> None:
    """Emit the step that ONNX Runtime runs for an operator.

    Raises:
        NotLoweredError: It has subgraphs, or tensors of a type that the core does not know.
    """
    tensors = model.graph.tensors
    for name in (*operator.reads, *operator.writes):
        if tensors[name].dtype not in KNOWN_TYPES:
            raise NotLoweredError(f"it works on {tensors[name].dtype.label}")
    single = model.operator_model(operator)
    if single is None:
        raise NotLoweredError("it has subgraphs")
    sources: list[Value | None] = [
        builder.as_written(builder.value(name), operator.name) for name in single.inputs
    ]
    dtypes = {tensors[name].dtype for name in single.outputs}
    if len(dtypes) != 1:
        raise NotLoweredError("its outputs are of different types")
    shapes = {name: tensors[name].shape for name in single.outputs}
    made = builder.emit(
        operator.op_type,
        External(
            runtime="onnxruntime",
            model=single.model,
            input_names=single.input_names,
            output_names=single.output_names,
        ),
        sources,
        [(name, shape, as_written(len(shape))) for name, shape in shapes.items()],
        dtype=dtypes.pop(),
        step=operator.name,
    )
    for name, value in zip(shapes, made, strict=True):
        builder.bind(name, value)
