"""The type of every tensor, one operator at a time.

Each operator is checked and inferred by itself from the types of its inputs. As every dimension
is known by then, nothing is lost, and the cost stays linear. For an operator whose output size
depends on data, the largest size is stated.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import onnx
import onnx.checker
import onnx.helper
import onnx.shape_inference

from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from arenite.planner.importers.onnx.file import normal_domain
from arenite.planner.importers.onnx.node import Dialect, Operand, op_type, single_node_model
from arenite.planner.importers.onnx.runtime import RuntimeRefusalError, runtime_types
from arenite.planner.importers.onnx.types import TensorType, read_type, why_unsizable
from arenite.planner.importers.onnx.values import Values
from arenite.planner.tensors import DType

_Bound = Callable[[onnx.NodeProto, Sequence[Operand], Values], TensorType | None]


def bounded_type(
    node: onnx.NodeProto, inputs: Sequence[Operand], values: Values
) -> TensorType | None:
    """Return the largest type of the node's output; None if its type is known.

    Args:
        node: A node without subgraphs.
        inputs: One for each of the node's inputs.
    """
    bound = _BOUNDS.get(op_type(node))
    if bound is None or all(values.get(each.name) is not None for each in inputs if each.type):
        return None
    return bound(node, inputs, values)


def counted_axis(node: onnx.NodeProto, rank: int) -> int:
    """Return the axis of the output of such a node whose length a run counts."""
    if op_type(node) == "Compress":
        return next((each.i for each in node.attribute if each.name == "axis"), 0) % rank
    return 1 if op_type(node) == "NonZero" else 0


def _boxes(_node: onnx.NodeProto, inputs: Sequence[Operand], values: Values) -> TensorType | None:
    """Return the type of NonMaxSuppression with a row for each box, image and class."""
    if len(inputs) < 2 or inputs[1].type is None or len(inputs[1].type.shape) != 3:
        return None
    num_images, num_classes, num_boxes = inputs[1].type.shape
    most = 0  # of each class; the default of ONNX
    if len(inputs) > 2 and inputs[2].type is not None:
        stated = values.get(inputs[2].name)
        known = stated is not None and stated.size == 1
        most = (
            min(max(int(stated.item()), 0), num_boxes)
            if known and stated is not None
            else num_boxes
        )
    return TensorType(DType.INT64, (num_images * num_classes * most, 3))


def _places(
    _node: onnx.NodeProto, inputs: Sequence[Operand], _values: Values
) -> TensorType | None:
    """Return the type of NonZero with a column for each element."""
    if not inputs or inputs[0].type is None:
        return None
    shape = inputs[0].type.shape
    return TensorType(DType.INT64, (len(shape), math.prod(shape)))


def _slices(node: onnx.NodeProto, inputs: Sequence[Operand], _values: Values) -> TensorType | None:
    """Return the type of Compress with every slice of its input."""
    if len(inputs) < 2 or inputs[0].type is None or inputs[1].type is None:
        return None
    dtype, shape = inputs[0].type
    most = math.prod(inputs[1].type.shape)
    axis = next((each.i for each in node.attribute if each.name == "axis"), None)
    if axis is None:
        return TensorType(dtype, (min(math.prod(shape), most),))
    axis %= len(shape)
    return TensorType(dtype, (*shape[:axis], min(shape[axis], most), *shape[axis + 1 :]))


_BOUNDS: Mapping[str, _Bound] = {
    "Compress": _slices,
    "NonMaxSuppression": _boxes,
    "NonZero": _places,
}


class NodeChecker:
    """Checks the nodes of one model."""

    def __init__(self, dialect: Dialect) -> None:
        self._context = onnx.checker.C.CheckerContext()
        self._context.ir_version = dialect.ir_version
        self._context.opset_imports = dict(dialect.opsets)

    def check(self, node: onnx.NodeProto, name: str, inputs: Sequence[Operand]) -> None:
        """Check that the node has the operands and attributes that its operator requires.

        Raises:
            ModelFormatError: It does not.
        """
        self.check_definition(node, name)
        self._check_features(node, name, inputs)
        # onnx's inference reads out of bounds for some axes that do not exist.
        rank = max((len(operand.type.shape) for operand in inputs if operand.type), default=0)
        for attribute in node.attribute:
            if attribute.name in ("axis", "axes"):
                axes = attribute.ints or [attribute.i]
                limit = rank + len(axes)
                if not all(-limit <= axis < limit for axis in axes):
                    raise self.refusal(
                        node,
                        name,
                        f"{attribute.name}={list(axes)} is out of range for rank {rank}",
                    )

    def _check_features(self, node: onnx.NodeProto, name: str, inputs: Sequence[Operand]) -> None:
        """Check that a recurrent layer has weights for its input, which inference does not."""
        if op_type(node) not in ("GRU", "LSTM", "RNN"):
            return
        shapes = [each.type.shape if each.type else () for each in inputs[:2]]
        if all(len(shape) == 3 for shape in shapes) and shapes[0][2] != shapes[1][2]:
            raise self.refusal(
                node,
                name,
                f"its inputs do not fit: {inputs[0].name!r} has {shapes[0][2]} features, the "
                f"weights {inputs[1].name!r} are for {shapes[1][2]}",
            )

    def check_definition(self, node: onnx.NodeProto, name: str) -> None:
        """Check the number of operands and the attributes, which need no shapes.

        Raises:
            ModelFormatError: They are not those of the operator.
        """
        try:
            onnx.checker.check_node(node, self._context)
        except onnx.checker.ValidationError as error:
            raise self.refusal(node, name, error) from error

    def refusal(self, node: onnx.NodeProto, name: str, reason: object) -> ModelFormatError:
        """Return the error for a node."""
        text = " ".join(str(reason).split())
        return ModelFormatError(f"operator {name!r} ({op_type(node)}): {text}")


_MOST_REMEMBERED = 4096
"""Bytes of a node with the constants that it reads; larger ones hardly repeat."""
_HINTS = {
    "ai.onnx.ml.ZipMap": ": convert without it, with skl2onnx by options={'zipmap': False}",
    "ai.onnx.ml.TreeEnsembleClassifier": ": train it with integers as labels",
}
"""What to do about results that no arena holds, by the operator that makes them."""


class Inference:
    """Infers the types of an operator's outputs.

    Args:
        values: Known values, used only where the types of the inputs do not suffice.
    """

    def __init__(self, dialect: Dialect, values: Values) -> None:
        self._dialect = dialect
        self._values = values
        self._checker = NodeChecker(dialect)

    def output_types(
        self,
        node: onnx.NodeProto,
        name: str,
        inputs: Sequence[Operand],
        declared: Sequence[onnx.TypeProto | None],
        bound: TensorType | None = None,
    ) -> list[TensorType | None]:
        """Return the type of each output, None where the node leaves it out.

        What the onnx package infers comes first, then a bound, what the file declares, and what
        ONNX Runtime says.

        Args:
            inputs: One for each of the node's inputs.
            declared: The type of each output in the file.
            bound: The largest type of the first output, if how much there is depends on data.

        Raises:
            ModelFormatError: The node does not fit its operator's definition.
            UnsupportedModelError: A type cannot be known before the run or has no size.
            MissingDependencyError: ONNX Runtime is needed and absent.
        """
        wanted = [bool(output) for output in node.output]
        found: list[TensorType | None] = [None] * len(wanted)

        def complete(candidates: Sequence[TensorType | None]) -> bool:
            for position, candidate in enumerate(candidates):
                found[position] = found[position] or candidate
            return all(found[p] is not None for p, is_wanted in enumerate(wanted) if is_wanted)

        schema = self._dialect.schema(node)
        if schema is not None:
            self._checker.check(node, name, inputs)
            # Operators defined as functions of others are expanded; some definitions are loose.
            is_strict = schema.has_type_and_shape_inference_function
            # Without the elements of its shape, inference takes any for one that fits; scales
            # without elements stand beside sizes only where inference sees that there are none.
            given = self._constants(inputs) if op_type(node) in ("Expand", "Resize") else {}
            if complete(self._infer(node, name, inputs, given, is_strict)):
                return found
            constants = self._constants(inputs)
            if constants and complete(self._infer(node, name, inputs, constants, is_strict)):
                return found
        if complete(self._values.result_types(node, inputs)):
            return found
        if bound is not None and complete([bound]):
            return found
        if complete([read_type(proto) if proto is not None else None for proto in declared]):
            return found
        reason = "depends on values of the run"
        if schema is None or normal_domain(node.domain):
            model = single_node_model(node, self._dialect, inputs, self._constants(inputs))
            try:
                types = iter(runtime_types(model, f"{name!r} ({op_type(node)})"))
                if complete([next(types) if is_wanted else None for is_wanted in wanted]):
                    return found
            except RuntimeRefusalError as error:
                reason = str(error)
        raise self._unknown(node, name, inputs, found, reason)

    def _infer(
        self,
        node: onnx.NodeProto,
        name: str,
        inputs: Sequence[Operand],
        constants: dict[int, onnx.TensorProto],
        is_strict: bool,
    ) -> list[TensorType | None]:
        model = single_node_model(node, self._dialect, inputs, constants)
        _state_default(model.graph.node[0])
        try:
            results = iter(_inferred(model, is_strict))
        except onnx.shape_inference.InferenceError as error:
            raise self._checker.refusal(node, name, error) from error
        types: list[TensorType | None] = []
        for output in node.output:
            proto = next(results).type if output else onnx.TypeProto()
            reason = why_unsizable(proto)
            if reason is not None:
                kind = op_type(node)
                hint = _HINTS.get(kind, "")
                raise UnsupportedModelError(output, f"{reason}; {name!r} ({kind}) makes it{hint}")
            shape = [each.dim_value for each in proto.tensor_type.shape.dim]
            if any(length < 0 for length in shape):
                raise self._checker.refusal(
                    node,
                    name,
                    f"its inputs do not fit: output {output!r} would have shape {shape}",
                )
            types.append(read_type(proto))
        if op_type(node) == "Reshape":
            self._check_reshape(node, name, inputs[0].type, types[0])
        if op_type(node) == "Dropout" and len(types) == 2 and node.output[1]:
            # Before operator set 10 the mask had the type of the data, and is not inferred.
            types[1] = types[1] or types[0]
        return types

    def _check_reshape(
        self, node: onnx.NodeProto, name: str, source: TensorType | None, made: TensorType | None
    ) -> None:
        """Check that the input has as many elements as the output, which inference does not."""
        if source and made and math.prod(source.shape) != math.prod(made.shape):
            reason = f"its input has shape {list(source.shape)}, output {node.output[0]!r} would "
            reason += f"have shape {list(made.shape)}"
            raise self._checker.refusal(node, name, reason)

    def _constants(self, inputs: Sequence[Operand]) -> dict[int, onnx.TensorProto]:
        constants = {}
        for position, operand in enumerate(inputs):
            value = self._values.as_tensor(operand.name) if operand.type else None
            if value is not None:
                constants[position] = value
        return constants

    def _unknown(
        self,
        node: onnx.NodeProto,
        name: str,
        inputs: Sequence[Operand],
        found: Sequence[TensorType | None],
        reason: str,
    ) -> UnsupportedModelError:
        output = next(o for o, known in zip(node.output, found, strict=True) if o and not known)
        failures = [
            f"; {operand.name!r}: {self._values.failures[operand.name]}"
            for operand in inputs
            if operand.name in self._values.failures
        ]
        return UnsupportedModelError(
            output,
            f"its type is unknown before the run, operator {name!r} ({op_type(node)}): "
            f"{reason}{''.join(failures)}",
        )


def _inferred(model: onnx.ModelProto, is_strict: bool) -> Sequence[onnx.ValueInfoProto]:
    """Return the outputs of a model of one node, with their types.

    Models repeat their layers, and a range is looked at for each of its corners and more than
    once, so what was found for the same node is remembered.
    """
    model.graph.node[0].name = ""
    content = model.SerializeToString(deterministic=True)
    infer = _outputs if len(content) <= _MOST_REMEMBERED else _outputs.__wrapped__
    return infer(content, is_strict)


@functools.lru_cache(maxsize=4096)
def _outputs(model: bytes, is_strict: bool) -> Sequence[onnx.ValueInfoProto]:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=is_strict)
    return tuple(inferred.graph.output)


def _state_default(node: onnx.NodeProto) -> None:
    """Write out the attribute that the onnx package infers with another default than it defines.

    It sizes the result of an STFT as if both sides of the spectrum were kept.
    """
    if op_type(node) == "STFT" and all(each.name != "onesided" for each in node.attribute):
        node.attribute.append(onnx.helper.make_attribute("onesided", 1))
