"""Refuse a node that breaks its operator's definition, before a library trips over it."""

from collections.abc import Sequence

import onnx
import onnx.checker

from arenite.planner.errors import ModelFormatError
from arenite.planner.importers.onnx.node import Dialect, Operand, op_type


class NodeChecker:
    """Checks the nodes of one model.

    Args:
        dialect: Operator set versions of the model.
    """

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
        # onnx's inference reads out of bounds for some axes that do not exist.
        rank = max((len(operand.type.shape) for operand in inputs if operand.type), default=0)
        for attribute in node.attribute:
            if attribute.name in ("axis", "axes"):
                axes = attribute.ints or [attribute.i]
                limit = rank + len(axes)
                if not all(-limit <= axis < limit for axis in axes):
                    raise self.refusal(
                        node, name, f"its {attribute.name} {list(axes)} are beyond rank {rank}"
                    )

    def check_definition(self, node: onnx.NodeProto, name: str) -> None:
        """Check what needs no shapes: the number of operands and the attributes.

        Raises:
            ModelFormatError: They are not those of the operator.
        """
        try:
            onnx.checker.check_node(node, self._context)
        except onnx.checker.ValidationError as error:
            raise self.refusal(node, name, error) from error

    def refusal(self, node: onnx.NodeProto, name: str, reason: object) -> ModelFormatError:
        """Return the error that says what is wrong with a node."""
        text = " ".join(str(reason).split())
        return ModelFormatError(f"operator {name!r} ({op_type(node)}): {text}")
