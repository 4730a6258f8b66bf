"""The type of every tensor, one operator at a time.

Each operator is inferred by itself from the types of its inputs. As every dimension is known
by then, nothing is lost, and the cost stays linear.
"""

from collections.abc import Sequence

import onnx
import onnx.helper
import onnx.shape_inference

from arenite.planner.errors import UnsupportedModelError
from arenite.planner.importers.onnx.checks import NodeChecker
from arenite.planner.importers.onnx.file import normal_domain
from arenite.planner.importers.onnx.node import Dialect, Operand, op_type, single_node_model
from arenite.planner.importers.onnx.runtime import RuntimeRefusalError, runtime_types
from arenite.planner.importers.onnx.types import TensorType, read_type, why_unsizable
from arenite.planner.importers.onnx.values import Values


class Inference:
    """Infers the types of an operator's outputs.

    Args:
        dialect: Operator set versions of the model.
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
            node: A node without subgraphs.
            name: Name of the operator.
            inputs: One for each of the node's inputs.
            declared: What the file says about each output.
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
            if complete(self._infer(node, name, inputs, {}, is_strict)):
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
        reason = "it depends on values that only the run computes"
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
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=is_strict)
        except onnx.shape_inference.InferenceError as error:
            raise self._checker.refusal(node, name, error) from error
        types: list[TensorType | None] = []
        results = iter(inferred.graph.output)
        for output in node.output:
            proto = next(results).type if output else onnx.TypeProto()
            reason = why_unsizable(proto)
            if reason is not None:
                raise UnsupportedModelError(output, reason)
            types.append(read_type(proto))
        if op_type(node) == "Dropout" and len(types) == 2 and node.output[1]:
            # Before operator set 10 the mask had the type of the data, and is not inferred.
            types[1] = types[1] or types[0]
        return types

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
            f"operator {name!r} ({op_type(node)}) makes it with a type not known before the run: "
            f"{reason}{''.join(failures)}",
        )


def _state_default(node: onnx.NodeProto) -> None:
    """Write out the attribute that the onnx package infers with another default than it defines.

    It sizes the result of an STFT as if both sides of the spectrum were kept.
    """
    if op_type(node) == "STFT" and all(each.name != "onesided" for each in node.attribute):
        node.attribute.append(onnx.helper.make_attribute("onesided", 1))
