"""Strips of columns, worked out by hand."""

from dataclasses import dataclass

import pytest

from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.operators.strips import WideLayer, in_strips
from arenite.planner.operators.windows import Sliding, Window
from arenite.planner.tensors import DType, Tensor


@dataclass(frozen=True)
class Windowed(Operator):
    """A square window over an image."""

    kernel: int = 1
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: int = 1

    def sliding(self, operands):
        _, rows, columns, _ = operands.source.shape
        counts = operands.result.shape[1:3]
        return Sliding(
            Window(rows, counts[0], self.kernel, self.strides[0], self.dilation, self.padding[0]),
            Window(
                columns, counts[1], self.kernel, self.strides[1], self.dilation, self.padding[3]
            ),
            row_axis=1, channel_axis=3, groups=1,
        )  # fmt: skip

    def multiply_adds(self, operands):
        return operands.result.num_elements * self.kernel**2

    def with_window(self, row_stride, padding):
        return Windowed(self.kernel, (row_stride, self.strides[1]), padding, self.dilation)


def image(name, rows, columns, channels):
    return Tensor(name, DType.INT8, (1, rows, columns, channels))


def layer(name, source, result, **window):
    return WideLayer(name, Windowed(**window), Operands((source,), (result,)))


X, A, B, C = image("x", 6, 8, 2), image("a", 6, 8, 12), image("b", 3, 4, 12), image("c", 3, 4, 2)
EXPAND = layer("expand", X, A)
DEPTHWISE = layer("depthwise", A, B, kernel=3, strides=(2, 2), padding=(0, 1, 1, 0))
PROJECT = layer("project", B, C)


@pytest.fixture
def found():
    return in_strips([EXPAND, DEPTHWISE, PROJECT], 2)


def test_each_strip_reads_what_its_window_covers(found):
    left, right = found.strips
    assert (left.first, left.read_from, right.first, right.read_from) == (0, 0, 2, 4)
    assert [each.source.shape[2] for each in left.layers] == [5, 5, 2]
    assert [each.source.shape[2] for each in right.layers] == [4, 4, 2]


def test_padding_is_where_the_image_ends(found):
    left, right = (strip.layers[1].operator for strip in found.strips)
    assert left.padding == (0, 0, 1, 0)
    assert right.padding == (0, 1, 1, 0)


def test_rows_that_windows_share_are_there_twice(found):
    assert found.blocks == ((0, 3), (2, 5), (4, 6))
    expand, depthwise, project = found.strips[0].layers
    assert (expand.source.shape[1], expand.result.shape[1]) == (8, 8)
    assert (depthwise.source.shape[1], depthwise.result.shape[1]) == (8, 3)
    assert project.result.shape[1] == 3
    assert depthwise.operator.strides == (3, 2)


def test_what_is_made_again_is_counted_again(found):
    operands = Operands((X,), (C,))
    expand = 8 * (5 + 4) * 12
    assert found.multiply_adds(operands) == expand + 9 * 3 * 4 * 12 + 3 * 4 * 2
    assert found.turns_a_row(operands) == 6


def test_scratch_is_what_lies_between_two_layers(found):
    assert found.row_scratch(Operands((X,), (C,))) == 3 * 5 * 12 + 2 * 12


def test_a_row_depends_on_the_rows_under_its_window(found):
    region = ((0, 1), (1, 3), (0, 4), (0, 2))
    read = found.input_region(Operands((X,), (C,)), 0, region)
    assert read == ((0, 1), (2, 6), (0, 8), (0, 2))


def test_two_windows_make_the_rows_of_the_upper_one_again():
    halved, kept = image("p", 4, 4, 3), image("q", 4, 4, 3)
    upper = layer("upper", image("x", 8, 8, 1), halved, kernel=3, strides=(2, 2),
                  padding=(0, 1, 1, 0))  # fmt: skip
    lower = layer("lower", halved, kept, kernel=3, padding=(1, 1, 1, 1))
    found = in_strips([upper, lower], 4)
    assert found.blocks == ((0, 5), (0, 7), (2, 8), (4, 8))
    # The last row of `p` reaches into the padding for two rows of `q`, so the second is apart.
    above, below = found.strips
    assert (above.rows, below.rows, found.num_across) == (range(3), range(3, 4), 1)
    assert above.taken == (
        (0, 1, 2, 2, 3, 4), (0, 1, 2, 2, 3, 4, 4, 5, 6), (2, 3, 4, 4, 5, 6, 6, 7)
    )  # fmt: skip
    assert [each.firsts for each in above.layers] == [(0, 2, 5, 8), (0, 1, 2, 3)]
    assert [each.operator.padding for each in above.layers] == [(0, 1, 1, 0), (1, 1, 0, 1)]
    assert [each.operator.padding for each in below.layers] == [(0, 1, 1, 0), (0, 1, 1, 1)]
    assert found.multiply_adds(Operands((upper.operands.source,), (kept,))) == (
        (10 + 4) * 4 * 3 * 9
    )


@pytest.mark.parametrize(
    "layers",
    [
        [EXPAND, PROJECT],
        # Both windows read rows of `a` and of `b` more than once.
        [EXPAND, DEPTHWISE, layer("again", B, image("c", 2, 4, 2), kernel=2)],
        [EXPAND, WideLayer("other", Operator(), Operands((A,), (B,)))],
        # Its first row reads nothing but padding; its second reaches into padding, too.
        [layer("far", X, image("a", 7, 8, 2), padding=(1, 0, 0, 0))],
        [layer("deep", X, image("a", 8, 8, 2), kernel=5, padding=(4, 2, 2, 2))],
    ],
    ids=[
        "no window",
        "two windows behind a layer",
        "none at all",
        "on padding",
        "two rows reach into it",
    ],
)
def test_what_cannot_run_in_strips_is_none(layers):
    assert in_strips(layers, 2) is None
