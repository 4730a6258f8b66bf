"""From the nodes of an ONNX graph to steps and typed tensors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx

from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from arenite.planner.importers.onnx.binding import Binding
from arenite.planner.importers.onnx.file import normal_domain, opset_versions
from arenite.planner.importers.onnx.inference import Inference, bounded_type, counted_axis
from arenite.planner.importers.onnx.node import (
    Dialect,
    Operand,
    Origin,
    attributes,
    constant_tensor,
    op_type,
    without_unread,
)
from arenite.planner.importers.onnx.operators import FORMER_ATTRIBUTES, RANDOM, onnx_operator
from arenite.planner.importers.onnx.order import (
    constant_names,
    node_reads,
    ordered_nodes,
    subgraphs,
)
from arenite.planner.importers.onnx.ranged import Ranged
from arenite.planner.importers.onnx.stored import Store
from arenite.planner.importers.onnx.types import TensorType, read_dtype, why_no_dtype
from arenite.planner.importers.onnx.values import Values
from arenite.planner.operators.imported import AttributeValue
from arenite.planner.programs.program import Names, Step
from arenite.planner.sizes import Dimension


class Scope:
    """Maps the names of one ONNX graph to flat names, unique in the whole model.

    Args:
        parent: Scope of the enclosing graph, None for the outermost.
        wanted: Flat names that some of its tensors must get, by local name.
    """

    def __init__(self, parent: "Scope | None", wanted: dict[str, str] | None = None) -> None:
        self._parent = parent
        self._wanted = wanted or {}
        self._names: dict[str, str] = {}

    def claim(self, local: str) -> str | None:
        """Return the flat name that `local` must get, None if any will do."""
        return self._wanted.pop(local, None)

    def is_claimed(self, local: str) -> bool:
        """Tell whether a tensor to be defined is the output of a subgraph, made for outside."""
        return self._parent is not None and local in self._wanted

    def define(self, local: str, flat: str) -> None:
        self._names[local] = flat

    def find(self, local: str) -> str | None:
        """Return the flat name, looking outwards, None if nothing has that name."""
        if local in self._names or self._parent is None:
            return self._names.get(local)
        return self._parent.find(local)


# Operators that unpack weights, though the onnx package does not define them.
_UNPACKING = frozenset({"com.microsoft.DequantizeLinear", "com.microsoft.QuantizeLinear"})


class Walk:
    """One pass over a model's nodes that types every tensor and folds constants.

    Attributes:
        types: Type of every tensor met, by flat name, in order of definition.
        constants: Flat names of the tensors that are known before the run.
        values: Values of constants, on demand.
        bounded: Flat names of the tensors whose shape depends on data; their type is a bound.
        ranged: What depends on dimensions; None if every length is a number.
        operator_names: Names of operators in use.
        num_dead: Nodes left out because they contribute to no output.
        num_folded: Nodes left out because all their outputs are constant.

    Args:
        binding: Its inputs, with every dimension known.
        control_flow: Functions that import operators with subgraphs, by operator type.
        folder: Folder of its external data.
        weights: Whether the values of all constants will be needed.
        counts: Whether a length that depends on data is a dimension that each run counts;
            otherwise it is its bound.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        binding: Binding,
        control_flow: "Mapping[str, ControlFlow]",
        folder: Path,
        *,
        weights: bool = False,
        counts: bool = False,
    ) -> None:
        self.dialect = Dialect(model.ir_version, opset_versions(model))
        self.types: dict[str, TensorType] = {}
        self.constants: set[str] = set()
        self.values = Values(folder, self.dialect, weights=weights)
        self.num_counted = 0
        self.bounded: set[str] = set()
        self.ranged: Ranged | None = None
        self._store: Store | None = None
        if binding.ranges:
            self._vary(binding.ranges)
        self._counts = counts
        self._counting: dict[tuple[bytes | str, ...], tuple[Scope, str]] = {}
        self.operator_names = Names()
        self.num_dead = 0
        self.num_folded = 0
        self._binding = binding
        self._control_flow = control_flow
        self._graph = model.graph
        self._outputs = {output.name for output in model.graph.output}
        self._inference = Inference(self.dialect, self.values)
        self._unsizable: dict[str, str] = {}
        self._fixed: Mapping[str, TensorType] = {}
        own = dict.fromkeys(_defined_names(model.graph))
        self._tensor_names = Names(own)
        self._scope = Scope(None, {name: name for name in own})

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of the inputs, then those that steps count."""
        return self.ranged.ranges.dimensions if self.ranged else ()

    def run(self, fixed: Mapping[str, TensorType]) -> list[Step]:
        """Return the model's steps in the order they run.

        Args:
            fixed: Types of the constants that were inputs, each of one value in all elements.

        Raises:
            ModelError: The model cannot be planned.
            MissingDependencyError: ONNX Runtime is needed and absent.
        """
        for name, tensor_type in self._binding.inputs.items():
            self.define(self._scope, name, tensor_type)
        self._fixed = fixed
        steps = self.walk_graph(self._graph, self._scope)
        for output in self._graph.output:
            self.find(self._scope, output.name)
        return steps

    def walk_graph(self, graph: onnx.GraphProto, scope: Scope) -> list[Step]:
        """Return the steps of a graph whose inputs are defined in `scope`."""
        # Of two that have one name the last counts, as in ONNX Runtime.
        constants: dict[str, onnx.TensorProto | onnx.SparseTensorProto] = {
            **{tensor.name: tensor for tensor in graph.initializer},
            **{sparse.values.name: sparse for sparse in graph.sparse_initializer},
        }
        for name, constant in constants.items():
            self._define_constant(scope, name, constant)
        declared = {value.name: value.type for value in (*graph.value_info, *graph.output)}
        names = self._name_operators(graph)
        nodes, num_dead = ordered_nodes(graph)
        self.num_dead += num_dead
        read = {name for _, node in nodes for name in node_reads(node)}
        read.update(output.name for output in graph.output)
        steps: list[Step] = []
        for index, node in nodes:
            trimmed = without_unread(node, read, self.dialect.schema(node))
            steps += self._walk_node(trimmed, names[index], scope, declared)
        return steps

    def walk_operator(
        self,
        node: onnx.NodeProto,
        name: str,
        inputs: Sequence[Operand],
        scope: Scope,
        declared: Mapping[str, onnx.TypeProto] | None = None,
    ) -> list[Step]:
        """Return the step of a node without subgraphs, or nothing if it is constant."""
        known = declared or {}
        is_constant = all(operand.name in self.constants for operand in inputs if operand.type)
        bound = None if is_constant else bounded_type(node, inputs, self.values)
        types = self._inference.output_types(
            node,
            name,
            inputs,
            [self._binding.apply(known[o]) if o in known else None for o in node.output],
            bound,
        )
        varies = self.ranged is not None and any(map(self.ranged.depends, inputs))
        if varies and self.ranged is not None:
            is_output = op_type(node) != "Identity" and self._makes_output(node.output)
            if is_output and self._is_known(node, inputs):
                return self._of_known(node, name, inputs, scope)
            types = self.ranged.types(node, name, inputs, types)
        if self._counts and bound is not None:
            if self._counts_again(node, inputs, scope):
                return []
            types = [self._counted(node, each) for each in types]
        outputs = [
            Operand(self.define(scope, local, tensor_type) if tensor_type else "", tensor_type)
            for local, tensor_type in zip(node.output, types, strict=True)
        ]
        keeps_bound = bound is not None and not self._counts
        if keeps_bound or any(operand.name in self.bounded for operand in inputs):
            self.bounded.update(output.name for output in outputs if output.type)
        if varies and self.ranged is not None:
            self.ranged.note_zero(node, inputs, outputs)
        else:
            self._note_values(node, inputs, outputs)
        if self._folds(node, inputs, outputs) and (
            not varies or self.ranged is None or self.ranged.folds(node, inputs, outputs)
        ):
            if varies:
                self._note_values(node, inputs, outputs)
            self.values.add_weights(node, inputs, outputs)
            self.constants.update(output.name for output in outputs if output.type)
            self.num_folded += 1
            return []
        made: list[Step] = []
        if self._store is not None:
            counted = None
            if varies and op_type(node) == "Range":
                counted = self._store.counted(inputs, outputs[0])
            if counted is not None:
                return counted
            made, inputs = self._store.stored(node, inputs)
        operator = onnx_operator(
            op_type(node),
            self._attributes(node, inputs),
            origin=Origin(node, self.dialect),
            is_bound=bound is not None,
        )
        return [
            *made,
            Step(
                name,
                operator,
                tuple(operand.name for operand in inputs),
                tuple(operand.name for operand in outputs),
            ),
        ]

    def _new_tensor(self, hint: str, tensor_type: TensorType, *, is_constant: bool) -> str:
        """Return the flat name of a tensor that no node of the file makes."""
        name = self._tensor_names.take(hint)
        self.types[name] = tensor_type
        if is_constant:
            self.constants.add(name)
        return name

    def _counted(self, node: onnx.NodeProto, bound: TensorType | None) -> TensorType | None:
        """Return the type of an output of which a run makes as much as its data say."""
        if bound is None:
            return None
        axis = counted_axis(node, len(bound.shape))
        return (self.ranged or self._vary(())).counted_type(node.output[0], bound, axis)

    def _counts_again(self, node: onnx.NodeProto, inputs: Sequence[Operand], scope: Scope) -> bool:
        """Tell whether an earlier node counts the same, whose output this one's name becomes.

        Lengths of the two would be other dimensions, though they are equal in each run.
        """
        (local,) = node.output
        if scope.is_claimed(local) or self._makes_output(node.output):
            return False
        bare = onnx.NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
        key = (bare.SerializeToString(deterministic=True), *(each.name for each in inputs))
        earlier = self._counting.get(key)
        if earlier is None:
            self._counting[key] = (scope, local)
            return False
        scope.define(local, self.find(*earlier))
        return True

    def _vary(self, dimensions: Sequence[Dimension]) -> Ranged:
        """Let lengths depend on dimensions."""
        self.ranged = Ranged(dimensions, self.dialect, self.values.folder, self.values)
        self._store = Store(self.ranged, self._new_tensor)
        return self.ranged

    def define(self, scope: Scope, local: str, tensor_type: TensorType) -> str:
        """Return the flat name of a new tensor."""
        name = self.flat_name(scope, local)
        scope.define(local, name)
        self.types[name] = tensor_type
        return name

    def flat_name(self, scope: Scope, local: str) -> str:
        return scope.claim(local) or self._tensor_names.take(local)

    def find(self, scope: Scope, local: str) -> str:
        """Return the flat name of a tensor that exists.

        Raises:
            ModelFormatError: Nothing writes it.
            UnsupportedModelError: Its elements have no fixed size.
        """
        name = scope.find(local)
        if name is None:
            raise ModelFormatError(f"tensor {local!r} is read, but no node writes it")
        if name in self._unsizable:
            raise UnsupportedModelError(local, self._unsizable[name])
        return name

    def operands(self, node: onnx.NodeProto, scope: Scope) -> list[Operand]:
        """Return the inputs of the node, by position."""
        operands = []
        for local in node.input:
            name = self.find(scope, local) if local else ""
            operands.append(Operand(name, self.types[name] if name else None))
        return operands

    def _walk_node(
        self, node: onnx.NodeProto, name: str, scope: Scope, declared: Mapping[str, onnx.TypeProto]
    ) -> list[Step]:
        control_flow = self._control_flow.get(op_type(node))
        if control_flow is not None:
            return control_flow(self, node, name, scope)
        if any(subgraphs(node)):
            raise UnsupportedModelError(
                name, f"subgraphs of {op_type(node)} are unsupported, supported: If, Loop, Scan"
            )
        constant = constant_tensor(node)
        if constant is not None:
            self._define_constant(scope, node.output[0], constant)
            return []
        inputs = self.operands(node, scope)
        self._check_inference_mode(node, name, inputs)
        return self.walk_operator(node, name, inputs, scope, declared)

    def _define_constant(
        self, scope: Scope, local: str, tensor: onnx.TensorProto | onnx.SparseTensorProto
    ) -> None:
        is_sparse = isinstance(tensor, onnx.SparseTensorProto)
        code = tensor.values.data_type if is_sparse else tensor.data_type
        dtype = read_dtype(code)
        if any(dimension < 0 for dimension in tensor.dims):
            raise ModelFormatError(f"constant {local!r} has the shape {list(tensor.dims)}")
        if dtype is None:
            name = self.flat_name(scope, local)
            scope.define(local, name)
            self._unsizable[name] = why_no_dtype(code) or "no element type"
            return
        name = self.define(scope, local, TensorType(dtype, tuple(tensor.dims)))
        self.constants.add(name)
        if self.ranged is not None and name in self._fixed:
            self.types[name] = self._fixed[name]
            self.ranged.add_uniform(Operand(name, self.types[name]))
        if is_sparse:
            self.values.add_failure(name, "sparse constants are unsupported, store them dense")
        else:
            self.values.add_tensor(name, tensor)

    def _name_operators(self, graph: onnx.GraphProto) -> list[str]:
        """Return a unique name for each node; names in the file are unchanged."""
        names = [self.operator_names.take(node.name) if node.name else "" for node in graph.node]
        return [
            name or self.operator_names.take(f"{node.op_type}_{index}")
            for index, (name, node) in enumerate(zip(names, graph.node, strict=True))
        ]

    def _note_values(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        if _is_shape_query(node) and inputs[0].type and inputs[0].name not in self.bounded:
            shape = np.array(inputs[0].type.shape, np.int64)
            if node.op_type == "Size":
                value = np.asarray(shape.prod(dtype=np.int64))
            else:
                options = {attribute.name: attribute.i for attribute in node.attribute}
                value = shape[options.get("start") : options.get("end")]
            self.values.add_array(outputs[0].name, value)
        else:
            self.values.add_computation(node, inputs, outputs)

    def _folds(
        self, node: onnx.NodeProto, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> bool:
        """Tell whether all outputs of the node are constant and none is a graph output."""
        is_output = self._makes_output(output.name for output in outputs)
        return not is_output and self._is_known(node, inputs)

    def _makes_output(self, names: Iterable[str]) -> bool:
        return any(name in self._outputs for name in names)

    def _of_known(
        self, node: onnx.NodeProto, name: str, inputs: Sequence[Operand], scope: Scope
    ) -> list[Step]:
        """Return the steps of outputs of the model that are known before the run at each size."""
        known = onnx.NodeProto()
        known.CopyFrom(node)
        del known.output[:]
        known.output.extend(f"{each}/known" if each else "" for each in node.output)
        steps = self.walk_operator(known, name, inputs, scope)
        for source, output in zip(known.output, node.output, strict=True):
            if output:
                copy = onnx.NodeProto(op_type="Identity", input=[source], output=[output])
                label = self.operator_names.take(f"{name}/copy")
                steps += self.walk_operator(copy, label, self.operands(copy, scope), scope)
        return steps

    def _is_known(self, node: onnx.NodeProto, inputs: Sequence[Operand]) -> bool:
        """Tell whether what the node makes is known before the run, at each size."""
        if _is_shape_query(node):
            return not any(operand.name in self.bounded for operand in inputs)
        is_pure = not normal_domain(node.domain) and node.op_type not in RANDOM
        return (is_pure or op_type(node) in _UNPACKING) and all(
            operand.name in self.constants for operand in inputs if operand.type
        )

    def _attributes(
        self, node: onnx.NodeProto, inputs: Sequence[Operand]
    ) -> dict[str, AttributeValue]:
        """Return the node's attributes, including those that later versions made inputs."""
        found = attributes(node)
        for position, attribute in enumerate(FORMER_ATTRIBUTES.get(op_type(node), ()), 1):
            if position < len(inputs) and inputs[position].type:
                value = self.values.get(inputs[position].name)
                if self.ranged is not None and inputs[position].name in self.ranged.sized:
                    found[attribute] = tuple(self.ranged.sized[inputs[position].name].tolist())
                elif value is not None:
                    found[attribute] = tuple(int(each) for each in value.flat)
        return found

    def _check_inference_mode(
        self, node: onnx.NodeProto, name: str, inputs: Sequence[Operand]
    ) -> None:
        if op_type(node) != "Dropout" or len(inputs) < 3 or not inputs[2].type:
            return
        training = self.values.get(inputs[2].name)
        if training is None or training.any():
            raise UnsupportedModelError(
                name,
                "training_mode=true of Dropout is unsupported; export the model for inference",
            )


ControlFlow: TypeAlias = Callable[[Walk, onnx.NodeProto, str, Scope], list[Step]]
"""Imports a node with subgraphs: given its name and scope, returns its steps."""


def _is_shape_query(node: onnx.NodeProto) -> bool:
    return op_type(node) in ("Shape", "Size")


def _defined_names(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from constant_names(graph)
    yield from (name for node in graph.node for name in node.output if name)
