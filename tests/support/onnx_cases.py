"""Cases of the onnx package's own tests of operators."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx


@dataclass(frozen=True)
class OnnxCase:
    """A model of one node, inputs, and the outputs that the package expects."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]


def onnx_cases(module: str, kind: str) -> Iterator[OnnxCase]:
    """Yield the cases of an operator.

    Args:
        module: Where the package has them.
        kind: The class that makes them.
    """
    found = importlib.import_module(f"onnx.backend.test.case.node.{module}")
    cases: list[OnnxCase] = []

    def record(node: onnx.NodeProto, inputs: Any, outputs: Any, name: str, **options: Any) -> None:
        cases.append(_case(node, inputs, outputs, name, options))

    with patch.object(found, "expect", record):
        made = getattr(found, kind)
        for each in sorted(vars(made)):
            if each.startswith("export"):
                getattr(made, each)()
    yield from cases


def _case(
    node: onnx.NodeProto, inputs: Any, outputs: Any, name: str, options: dict[str, Any]
) -> OnnxCase:
    read = [each for each in node.input if each]
    made = [each for each in node.output if each]
    feeds = {key: np.asarray(array) for key, array in zip(read, inputs, strict=True)}
    expected = {key: np.asarray(array) for key, array in zip(made, outputs, strict=True)}

    def values(arrays: dict[str, np.ndarray]) -> list[onnx.ValueInfoProto]:
        return [
            onnx.helper.make_tensor_value_info(
                key, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for key, array in arrays.items()
        ]

    opsets = options.get("opset_imports") or [onnx.helper.make_opsetid("", 24)]
    graph = onnx.helper.make_graph([node], name, values(feeds), values(expected))
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return OnnxCase(name, model, feeds, expected)
