"""Steps with false operands or scales far apart: each is refused, or computed in its bounds."""

import subprocess
import sys

import numpy as np
import pytest

from arenite.runtime import ProgramError, Session
from support.one_step import Given, constant, one_step

HUGE = 2**40
Q = {"scales": [0.5]}
BIAS = constant(np.zeros(4096, np.int32))
FILTER = np.ones((4096, 1, 1, 2), np.int8)
PACKED = constant(np.zeros((256, 2, 64), np.int8), scales=[1.0])
TWO_SCALES = constant(np.ones(2, np.float32))
SOURCE, RESULT = Given((1, 1, 1, 2), "int8", **Q), Given((1, 1, 1, 4096), "int8", **Q)
SCALES = {
    "Conv2D": lambda: one_step(
        "Conv2D", {"kernel": [1, 1]}, [SOURCE, PACKED, BIAS, None, TWO_SCALES], [RESULT]
    ),
    "Conv2D in groups": lambda: one_step(
        "Conv2D", {"groups": 2, "kernel": [1, 1]},
        [Given((1, 1, 1, 4), "int8", **Q), PACKED, BIAS, None, TWO_SCALES], [RESULT],
    ),
    "DepthwiseConv2D": lambda: one_step(
        "DepthwiseConv2D", {},
        [
            Given((1, 3, 3, 4096), "int8", **Q),
            constant(np.ones((1, 3, 3, 4096), np.int8), scales=[0.5]), BIAS, None, TWO_SCALES,
        ],
        [RESULT],
    ),
    "FullyConnected": lambda: one_step(
        "FullyConnected", {},
        [Given((1, 2), "int8", **Q), PACKED, BIAS, None, TWO_SCALES],
        [Given((1, 4096), "int8", **Q)],
    ),
    "TransposedConv2D": lambda: one_step(
        "TransposedConv2D", {}, [SOURCE, constant(FILTER, scales=[0.5, 0.5], axis=3), BIAS],
        [RESULT],
    ),
}  # fmt: skip
IMAGES = {
    "Unary": lambda: one_step(
        "Unary", {"function": "absolute"}, [Given((2, 3, 4096), "int8", scales=[0.5, 0.5])],
        [Given((2, 3, 4096), "int8", **Q)],
    ),
    "Pool2D": lambda: one_step(
        "Pool2D", {"kind": "maximum", "window": [2, 2]},
        [Given((1, 2, 2, 4096), "int8", scales=[0.5, 0.5], axis=1)],
        [Given((1, 1, 1, 4096), "int8", **Q)],
    ),
    "Conv2D": lambda: one_step(
        "Conv2D", {"kernel": [1, 1]},
        [
            Given((1, 1, 1, 2), "int8", scales=[0.5, 0.5], axis=3), PACKED, BIAS, None,
            constant(np.ones(4096, np.float32)),
        ],
        [RESULT],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SCALES)
def test_weights_have_the_scales_of_their_output_channels(kind):
    with pytest.raises(
        ProgramError, match=r"scales (that )?are not (those of its|one for each) output channel"
    ):
        Session.of_pieces(SCALES[kind](), kind)


@pytest.mark.parametrize("kind", IMAGES)
def test_images_have_one_scale(kind):
    with pytest.raises(ProgramError, match=r"a scale for each channel|one scale each"):
        Session.of_pieces(IMAGES[kind](), kind)


EMPTY = {
    "InstanceNorm": lambda: one_step(
        "InstanceNorm", {"epsilon": 1.0}, [Given((HUGE, 0, 16)), Given((16,)), Given((16,))],
        [Given((HUGE, 0, 16))],
    ),
    "MatMul": lambda: one_step(
        "MatMul", {}, [Given((HUGE, 0, 4)), Given((4, 4))], [Given((HUGE, 0, 4))], scratch=256
    ),
    "CumulativeSum": lambda: one_step(
        "CumulativeSum", {"axis": 1}, [Given((HUGE, 0))], [Given((HUGE, 0))]
    ),
    "Gather": lambda: one_step(
        "Gather", {"axis": 1}, [Given((HUGE, 1, 0)), Given((1,), "int32")], [Given((HUGE, 1, 0))]
    ),
    "Resize2D": lambda: one_step(
        "Resize2D", {"row_low": [0], "column_low": [0]}, [Given((HUGE, 1, 1, 0))],
        [Given((HUGE, 1, 1, 0))],
    ),
}  # fmt: skip
RUN = """
import sys
from arenite.runtime import Session
with Session(sys.argv[1]) as session:
    session.invoke()
"""


@pytest.mark.parametrize("kind", EMPTY)
def test_a_step_without_elements_ends_at_once(kind, tmp_path):
    path = tmp_path / "empty.arena"
    path.write_bytes(b"".join(EMPTY[kind]()))
    subprocess.run([sys.executable, "-c", RUN, path], check=True, timeout=20)


LAYERS = {
    "an Lstm without sequences": (
        "its output is empty",
        lambda: one_step(
            "Lstm", {},
            [
                Given((HUGE, 0, 1)), *(constant(np.zeros(s, np.float32)) for s in (
                    (1, 1, 1, 64), (1, 1, 1, 64), (1, 1, 64))), None, None,
            ],
            [Given((HUGE, 1, 0, 1)), Given((1, 0, 1)), Given((1, 0, 1))], scratch=64,
        ),
    ),
    "an Lstm with weights of other units": (
        "weights do not fit",
        lambda: one_step(
            "Lstm", {},
            [
                Given((2, 1, 1)), *(constant(np.zeros(s, np.float32)) for s in (
                    (1, 1, 1, 64), (1, 1, 2, 48), (1, 1, 64))), None, None,
            ],
            [Given((2, 1, 1, 2)), Given((1, 1, 2)), Given((1, 1, 2))], scratch=4096,
        ),
    ),
    "an Svdf whose sizes wrap": (
        "state does not fit",
        lambda: one_step(
            "Svdf", {},
            [
                Given((2**44, 0)), Given((2**20, 0)), Given((2**20, 1)), None, Given((0,)),
            ],
            [Given((0,))],
        ),
    ),
    "fewer rows than the result has": (
        "what it keeps and adds is not as long as its result",
        lambda: one_step("Append", {}, [Given((4, 2)), Given((1, 2))], [Given((6, 2))]),
    ),
    "more new rows than are kept": (
        "what it adds is longer than its result",
        lambda: one_step("Append", {}, [Given((4, 2)), Given((5, 2))], [Given((4, 2))]),
    ),
    "new rows where the result is": (
        "what it adds shares bytes with its result",
        lambda: one_step("Append", {}, [Given((4, 2)), Given((4, 2))], [Given((4, 2), same_as=1)]),
    ),
    "new rows of another type": (
        "its operands differ in type",
        lambda: one_step("Append", {}, [Given((4, 2)), Given((1, 2), "int8")], [Given((4, 2))]),
    ),
    "no new rows": (
        "it has too few or too many inputs",
        lambda: one_step("Append", {}, [Given((4, 2))], [Given((4, 2))]),
    ),
    "a move of more elements than there are": (
        "larger than its target",
        lambda: one_step(
            "Copy", {"moves": [{"shape": [HUGE], "input_strides": [0], "output_strides": [0]}]},
            [Given((4,))], [Given((4,))],
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_sizes_that_do_not_fit_are_refused(name):
    reason, make = LAYERS[name]
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces(make(), name)


MOVES = {
    "itself": [{"shape": [3], "output_start": 1}],
    "another": [{"shape": [2]}, {"shape": [2], "input_start": 2, "output_start": 4},
                {"shape": [1], "output_start": 3}],
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_a_move_that_reads_what_a_move_writes_is_refused(name):
    strides = {"input_strides": [1], "output_strides": [1]}
    kernel = {"moves": [move | strides for move in MOVES[name]]}
    pieces = one_step("Copy", kernel, [Given((6,))], [Given((6,), same_as=0)])
    with pytest.raises(ProgramError, match="a move reads bytes that a move writes"):
        Session.of_pieces(pieces, name)


@pytest.mark.parametrize("same_as", [None, 0])
def test_new_rows_follow_those_that_are_kept(same_as):
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    pieces = one_step(
        "Append", {}, [Given((3, 2)), Given((2, 2))], [Given((3, 2), same_as=same_as)]
    )
    with Session.of_pieces(pieces, "appended") as session:
        made = session.run({"i0": rows[:3], "i1": rows[3:]})["o0"]
    np.testing.assert_array_equal(made, rows[2:])


def test_a_move_within_one_tensor_keeps_its_order():
    moves = [
        {"shape": [4], "input_strides": [1], "output_strides": [1]},
        {"shape": [2], "input_strides": [-1], "output_strides": [1], "input_start": 1,
         "output_start": 4},
    ]  # fmt: skip
    pieces = one_step("Copy", {"moves": moves}, [Given((6,))], [Given((6,), same_as=0)])
    with Session.of_pieces(pieces, "within") as session:
        made = session.run({"i0": np.arange(6, dtype=np.float32)})["o0"]
    assert made.tolist() == [0, 1, 2, 3, 1, 0]


@pytest.mark.parametrize(("source", "result", "expected"), [(1.0, 1.0, 0), (3e38, 1e-38, -128)])
def test_nothing_times_infinity_is_the_lowest(source, result, expected):
    image = Given((1, 4, 4, 32), "int8", scales=[source])
    mean = Given((1, 1, 1, 32), "int8", scales=[result])
    kernel = {"function": "mean", "axes": [1, 2]}
    data = b"".join(one_step("Reduce", kernel, [image], [mean], scratch=4096))
    with Session.of_pieces([data], "far apart") as session:
        made = session.run({"i0": np.zeros((1, 4, 4, 32), np.int8)})["o0"]
    assert (made == expected).all()
