"""Single operators of a program as models of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from arenite.planner.importers.onnx.external_data import UnreadableTensorError, embed
from arenite.planner.importers.onnx.node import (
    Operand,
    Origin,
    empty_model,
    input_name,
    single_node_model,
)
from arenite.planner.importers.onnx.order import subgraphs
from arenite.planner.importers.onnx.types import TensorType, write_type
from arenite.planner.importers.onnx.values import Constants
from arenite.planner.operators.imported import Imported
from arenite.planner.programs.program import Program, Step
from arenite.planner.sizes import depends
from arenite.planner.tensors import TensorKind


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """One operator as a model of its own.

    Attributes:
        model: Bytes of the ONNX file.
        inputs: Tensors of the whole model that it reads, constants excluded.
        outputs: Tensors of the whole model that it writes.
        input_names: Names of the inputs in the file.
        output_names: Names of the outputs in the file.
    """

    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


def operator_model(program: Program, step: Step) -> OperatorModel | None:
    """Return a step as a model of its own, its constants inside; None if no node is known.

    Args:
        program: As `read_onnx` returned it.
        step: One of its steps, or another that reads and writes its tensors.

    Raises:
        MissingDataError: Weights of a subgraph lie in a file that is not as stated.
    """
    origin = step.operator.origin if isinstance(step.operator, Imported) else None
    if not isinstance(origin, Origin) or not isinstance(program.constants, Constants):
        return None
    tensors = program.tensors
    operands = [
        Operand(name, TensorType(tensors[name].dtype, tensors[name].shape) if name else None)
        for name in step.inputs
    ]
    values = {
        position: value
        for position, name in enumerate(step.inputs)
        if name
        and tensors[name].kind is TensorKind.CONSTANT
        and not any(map(depends, tensors[name].shape))
        and (value := program.constants.as_tensor(name)) is not None
    }
    if any(subgraphs(origin.node)):
        model, names = subgraph_model(origin, operands, values, program.constants.folder)
    else:
        model = single_node_model(origin.node, origin.dialect, operands, values)
        names = [input_name(position) for position in range(len(operands))]
    inputs = {
        names[position]: name
        for position, name in enumerate(step.inputs)
        if name and position not in values
    }
    for value in model.graph.input:  # of any length where that depends on a dimension
        lengths = value.type.tensor_type.shape.dim
        for length, stated in zip(lengths, tensors[inputs[value.name]].shape, strict=True):
            if depends(stated):
                length.ClearField("dim_value")
    outputs = [name for name in step.outputs if name]
    return OperatorModel(
        model.SerializeToString(),
        tuple(inputs.values()),
        tuple(outputs),
        tuple(inputs),
        tuple(output.name for output in model.graph.output),
    )


def subgraph_model(
    origin: Origin,
    operands: Sequence[Operand],
    values: Mapping[int, onnx.TensorProto],
    folder: Path,
) -> tuple[onnx.ModelProto, list[str]]:
    """Return a model whose only operator is a node with subgraphs, and the name of each operand.

    Names stay as they are, since the subgraphs mention them.

    Args:
        operands: The inputs of its step, by position.
        values: Values of the operands that become constants of the new model, by position.
        folder: Folder of the weights that lie in other files.

    Raises:
        MissingDataError: Weights of a subgraph cannot be read.
    """
    model = empty_model(origin.dialect)
    graph = model.graph
    copy = graph.node.add()
    copy.CopyFrom(origin.node)
    for subgraph in subgraphs(copy):
        try:
            embed(subgraph, folder)
        except UnreadableTensorError as error:
            raise error.as_missing_data() from error
    names = [*copy.input, *origin.captured]
    for position, (name, operand) in enumerate(zip(names, operands, strict=True)):
        if operand.type is None or name in names[:position]:
            continue
        if position in values:
            constant = graph.initializer.add()
            constant.CopyFrom(values[position])
            constant.name = name
        else:
            value = graph.input.add()
            value.name = name
            write_type(value.type, operand.type)
    for name in copy.output:
        if name:
            graph.output.add().name = name
    return model, names
