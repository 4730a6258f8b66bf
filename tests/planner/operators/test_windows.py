"""What of an image a region of the result depends on, against naive kernels."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.operators.operator import Operands
from arenite.planner.tensors import DType, Tensor
from support.sliding_kernels import CHANNELS_FIRST, CHANNELS_LAST, Kernel, images, kernels
from support.tiny_graphs import operator


def operands_of(kernel: Kernel) -> Operands:
    layout = kernel.op_type in CHANNELS_LAST
    shapes = [kernel.source.shape(layout), *([kernel.weights] if kernel.weights else [])]
    inputs = tuple(Tensor(f"i{i}", DType.INT8, shape) for i, shape in enumerate(shapes))
    return Operands(inputs, (Tensor("y", DType.INT8, kernel.result.shape(layout)),))


@st.composite
def regions(draw, shape):
    """A box of at least one element within a tensor of this shape."""
    starts = [draw(st.integers(0, length - 1)) for length in shape]
    return tuple(
        (start, draw(st.integers(start + 1, n))) for start, n in zip(starts, shape, strict=True)
    )


def box(indices):
    """The smallest region that has all these indices; None if there are none."""
    columns = list(zip(*indices, strict=True))
    return tuple((min(each), max(each) + 1) for each in columns) if columns else None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_region_holds_every_element_that_is_read_and_no_more_without_gaps(data):
    kernel = data.draw(kernels(data.draw(images()), CHANNELS_LAST + CHANNELS_FIRST))
    operands = operands_of(kernel)
    result, source = operands.result.shape, operands.source.shape
    region = data.draw(regions(result))
    made = operator(kernel.op_type, kernel.attributes)
    found = made.input_region(operands, 0, region)
    read = {
        address
        for index in np.ndindex(*(stop - start for start, stop in region))
        for address in kernel.reads[
            int(
                np.ravel_multi_index(
                    [i + r[0] for i, r in zip(index, region, strict=True)], result
                )
            )
        ]
    }
    needed = box([np.unravel_index(address, source) for address in read])
    assert all(0 <= start <= stop <= n for (start, stop), n in zip(found, source, strict=True))
    if needed is None:
        return
    assert all(f[0] <= n[0] and n[1] <= f[1] for f, n in zip(found, needed, strict=True))
    if kernel.attributes["dilations"] == kernel.attributes["strides"] == (1, 1):
        assert found == tuple((int(a), int(b)) for a, b in needed)


@settings(deadline=None)
@given(st.data())
def test_all_of_the_weights_is_read(data):
    kernel = data.draw(kernels(data.draw(images()), ("CONV_2D", "DEPTHWISE_CONV_2D", "Conv")))
    operands = operands_of(kernel)
    region = data.draw(regions(operands.result.shape))
    found = operator(kernel.op_type, kernel.attributes).input_region(operands, 1, region)
    assert math.prod(stop - start for start, stop in found) == math.prod(kernel.weights)
