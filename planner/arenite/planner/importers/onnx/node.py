"""Single operators as models, so that a library can be asked about one at a time."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import onnx
import onnx.defs

from arenite.planner.importers.onnx.file import normal_domain
from arenite.planner.importers.onnx.types import TensorType, write_type
from arenite.planner.operators.imported import AttributeValue


@dataclass(frozen=True, slots=True)
class Dialect:
    """Versions that determine the meaning of a node.

    Attributes:
        ir_version: IR version of the file.
        opsets: Version of each operator set by domain.
    """

    ir_version: int
    opsets: Mapping[str, int]

    def schema(self, node: onnx.NodeProto) -> onnx.defs.OpSchema | None:
        """Return how the onnx package defines the operator, None if it does not."""
        domain = normal_domain(node.domain)
        version = self.opsets.get(domain, 1)
        if not onnx.defs.has(node.op_type, domain=domain, max_inclusive_version=version):
            return None
        schema = onnx.defs.get_schema(node.op_type, version, domain)
        return None if schema.deprecated else schema


@dataclass(frozen=True, slots=True)
class Origin:
    """The node that an operator was imported from.

    Attributes:
        dialect: The versions that determine its meaning.
        captured: Names, in the node's graph, of what its subgraphs read from outside, if it has
            any; the step reads these after the node's own inputs.
    """

    node: onnx.NodeProto
    dialect: Dialect
    captured: tuple[str, ...] = ()


class Operand(NamedTuple):
    """An operand of an operator; without a type where it is left out."""

    name: str
    type: TensorType | None


def op_type(node: onnx.NodeProto) -> str:
    """Return the operator's type, with its domain unless that is ONNX's own."""
    domain = normal_domain(node.domain)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto | onnx.SparseTensorProto | None:
    """Return the tensor of a Constant, None for other nodes and other kinds of value."""
    if op_type(node) == "Constant":
        for attribute in node.attribute:
            if attribute.name == "value":
                return attribute.t
            if attribute.name == "sparse_value":
                return attribute.sparse_tensor
    return None


def input_name(position: int) -> str:
    """Return the name that `single_node_model` gives the input at a position."""
    return f"i{position}"


def single_node_model(
    node: onnx.NodeProto,
    dialect: Dialect,
    inputs: Sequence[Operand],
    values: Mapping[int, onnx.TensorProto],
) -> onnx.ModelProto:
    """Return a model whose only operator is `node`, its tensors named by position.

    Args:
        node: A node without subgraphs.
        dialect: Versions of the model it belongs to.
        inputs: One for each of the node's inputs.
        values: Values of the inputs that become constants of the new model, by position.
    """
    model = empty_model(dialect)
    graph = model.graph
    copy = graph.node.add()
    copy.CopyFrom(node)
    _rename(copy.input, (input_name(p) if i.type else "" for p, i in enumerate(inputs)))
    _rename(copy.output, (f"o{p}" if name else "" for p, name in enumerate(node.output)))
    for position, operand in enumerate(inputs):
        if position in values:
            constant = graph.initializer.add()
            constant.CopyFrom(values[position])
            constant.name = input_name(position)
        elif operand.type is not None:
            value = graph.input.add()
            value.name = input_name(position)
            write_type(value.type, operand.type)
    for name in copy.output:
        if name:
            graph.output.add().name = name
    return model


def empty_model(dialect: Dialect) -> onnx.ModelProto:
    """Return a model without operators."""
    # Version 4 is the first in which constants need not be inputs as well.
    model = onnx.ModelProto(ir_version=max(4, dialect.ir_version))
    for domain, version in dialect.opsets.items():
        model.opset_import.add(domain=domain, version=version)
    model.graph.name = "node"
    return model


def _rename(field: list[str], names: Iterable[str]) -> None:
    new = list(names)
    del field[:]
    field.extend(new)


def without_unread(
    node: onnx.NodeProto, read: Set[str], schema: onnx.defs.OpSchema | None
) -> onnx.NodeProto:
    """Return the node without the optional outputs that are never read."""
    unread = [
        position
        for position, name in enumerate(node.output)
        if name and name not in read and schema is not None and _is_optional(schema, position)
    ]
    if not unread:
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for position in unread:
        copy.output[position] = ""
    return copy


def _is_optional(schema: onnx.defs.OpSchema, position: int) -> bool:
    return (
        position < len(schema.outputs)
        and schema.outputs[position].option == onnx.defs.OpSchema.FormalParameterOption.Optional
    )


def attributes(node: onnx.NodeProto) -> dict[str, AttributeValue]:
    """Return the numbers and strings among a node's attributes; invalid UTF-8 as bytes."""
    kinds = onnx.AttributeProto
    found: dict[str, AttributeValue] = {}
    for attribute in node.attribute:
        if attribute.type == kinds.INT:
            found[attribute.name] = int(attribute.i)
        elif attribute.type == kinds.FLOAT:
            found[attribute.name] = float(attribute.f)
        elif attribute.type == kinds.STRING:
            found[attribute.name] = _text(attribute.s)
        elif attribute.type == kinds.INTS:
            found[attribute.name] = tuple(map(int, attribute.ints))
        elif attribute.type == kinds.FLOATS:
            found[attribute.name] = tuple(map(float, attribute.floats))
        elif attribute.type == kinds.STRINGS:
            found[attribute.name] = tuple(s.decode(errors="replace") for s in attribute.strings)
    return found


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
