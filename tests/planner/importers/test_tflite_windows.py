from pathlib import Path

import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")

from tflite import BuiltinOperator as Op

from arenite.planner.importers.tflite import read_tflite
from support.shared_material import shared
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite


def attributes(path: Path, op_type: str) -> dict[str, object]:
    """Return the attributes of the first operator of a type."""
    graph = read_tflite(path)
    return dict(
        next(each.operator.attributes for each in graph.steps if each.operator.label == op_type)
    )


@pytest.mark.parametrize(
    ("op_type", "expected"),
    [
        ("DEPTHWISE_CONV_2D", {"auto_pad": "SAME_UPPER", "strides": (2, 2), "dilations": (1, 1)}),
        ("AVERAGE_POOL_2D", {"auto_pad": "VALID", "strides": (2, 2), "kernel_shape": (3, 3)}),
    ],
)
def test_operators_with_a_window_say_how_it_slides(op_type, expected):
    assert attributes(shared("models/tflite/person_detect.tflite"), op_type) == expected


def test_an_operator_whose_options_are_missing_has_no_attributes(tmp_path):
    path = tmp_path / "tiny.tflite"
    chain = TinySubgraph(
        [TinyTensor("x"), TinyTensor("y")], [TinyOperator(Op.MAX_POOL_2D, [0], [1])], [0], [1]
    )
    path.write_bytes(tiny_tflite(chain))
    assert attributes(path, "MAX_POOL_2D") == {}
