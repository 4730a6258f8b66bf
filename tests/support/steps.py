"""Steps of a model, named by their operator as an importer would."""

from collections.abc import Mapping, Sequence

from arenite.planner.importers.onnx.operators import onnx_operator
from arenite.planner.importers.tflite.operators import SubgraphEntry, tflite_operator
from arenite.planner.operators.imported import AttributeValue, Imported
from arenite.planner.programs.program import Step


def operator(
    op_type: str, attributes: Mapping[str, AttributeValue] | None = None, scratch: int = 0
) -> Imported:
    """Return the operator of this name: TFLite's are written in capitals, ONNX's are not."""
    if attributes and "subgraph" in attributes:
        return SubgraphEntry(op_type, attributes)
    if not op_type.isupper():
        return onnx_operator(op_type, attributes, reserve=scratch)
    found = tflite_operator(op_type, attributes)
    return type(found)(op_type, found.attributes, scratch)


def step(
    name: str,
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    attributes: Mapping[str, AttributeValue] | None = None,
    scratch: int = 0,
) -> Step:
    """Return a step of the operator of this name."""
    return Step(name, operator(op_type, attributes, scratch), tuple(inputs), tuple(outputs))
