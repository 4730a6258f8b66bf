"""An IF runs as LiteRT runs it, for both verdicts."""

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")

from tflite import BuiltinOperator as Op
from tflite import TensorType

from arenite.planner.errors import UnsupportedModelError
from arenite.planner.importers import load
from arenite.runtime import Session
from support.running import build
from support.tflite_operator import Reference
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

HALF = np.full(4, 0.5, np.float32)
ADDED = ("AddOptions", {"FusedActivationFunction": 0})


def floats(name: str, data: bytes = b"", length: int = 4) -> TinyTensor:
    return TinyTensor(name, (length,), TensorType.FLOAT32, data)


VERDICT = TinyTensor("verdict", (1,), TensorType.BOOL)


def negated(name: str = "then") -> TinySubgraph:
    return TinySubgraph(
        [floats("x"), floats("y")], [TinyOperator(Op.NEG, [0], [1])], [0], [1], name
    )


def added() -> TinySubgraph:
    """Add a constant; the input is an output too."""
    tensors = [floats("x"), floats("half", HALF.tobytes()), floats("y")]
    return TinySubgraph(
        tensors, [TinyOperator(Op.ADD, [0, 1], [2], options=ADDED)], [0], [2], "else"
    )


def chosen(*branches: TinySubgraph) -> bytes:
    """`z = -relu(x) + relu(x)` or `relu(x) + 0.5 + relu(x)`: what is tested is read again."""
    main = TinySubgraph(
        [VERDICT, floats("x"), floats("r"), floats("y"), floats("z")],
        [
            TinyOperator(Op.RELU, [1], [2]),
            TinyOperator(Op.IF, [0, 2], [3], (1, 2)),
            TinyOperator(Op.ADD, [3, 2], [4], options=ADDED),
        ],
        [0, 1],
        [4],
    )
    return tiny_tflite(main, *branches)


BRANCHES = {
    "other operators": (negated(), added()),
    "nothing in one": (TinySubgraph([floats("x")], [], [0], [0], "then"), added()),
    "a constant": (
        TinySubgraph([floats("x"), floats("h", HALF.tobytes())], [], [0], [1]),
        added(),
    ),
}


@pytest.mark.parametrize("verdict", [False, True])
@pytest.mark.parametrize("branches", BRANCHES.values(), ids=BRANCHES)
def test_either_branch_is_that_of_litert(tmp_path, verdict, branches):
    path = tmp_path / "m.tflite"
    path.write_bytes(chosen(*branches))
    given = np.array([3, -1, 2, -5], np.float32)
    (expected,) = Reference(path).run([np.array([verdict]), given])
    with Session(build(path, tmp_path)) as session:
        (found,) = session.run({"verdict": np.array([verdict]), "x": given}).values()
    assert (found == expected).all()


def test_a_branch_that_takes_another_shape_is_refused(tmp_path):
    other = TinySubgraph(
        [floats("x", length=2), floats("y", length=2)],
        [TinyOperator(Op.NEG, [0], [1])],
        [0],
        [1],
        "then",
    )
    path = tmp_path / "m.tflite"
    path.write_bytes(chosen(other, added()))
    with pytest.raises(UnsupportedModelError, match=r"'then': its input 'x' is not 'r'"):
        load(path, weights=True)
