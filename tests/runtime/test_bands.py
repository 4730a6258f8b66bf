"""Programs that run in bands of rows, beside the same programs run whole."""

import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.runtime import Session
from support.banded_programs import Network, Sliding, file_of_root, in_bands
from support.running import PoisonedSession

SAME = Sliding((3, 3), padding=(1, 1, 1, 1))


def chain(dtype="float32", channels=5):
    """A convolution, a depthwise one and another, whose windows are not symmetric."""
    network = Network((17, 9, channels), dtype)
    network.conv(24, SAME)
    network.depthwise(Sliding((3, 3), strides=(2, 2), padding=(0, 1, 1, 0)))
    network.conv(7, Sliding((3, 2), dilations=(2, 1), padding=(3, 0, 1, 1)))
    return network


def feed(network, seed=0):
    """Return an input for a network."""
    draw = np.random.default_rng(seed)
    shape = (1, *network.shape)
    if network.dtype == "float32":
        return {"x": draw.standard_normal(shape).astype(np.float32)}
    limits = np.iinfo(network.dtype)
    return {"x": draw.integers(limits.min, limits.max + 1, shape).astype(network.dtype)}


def outputs(network, data, **options):
    """Return what a program makes of an input, whatever dead memory holds."""
    with PoisonedSession([data], **options) as session:
        return session.run(feed(network))["y"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("sizes", [(1,), (2,), (3,), (1, 4, 2), (99,)])
def test_bands_of_scattered_rows_make_the_bits_of_the_whole(sizes, dtype, threads):
    network = chain(dtype)
    turns = in_bands(network, sizes)
    banded = network.file(turns, scatter=random.Random(1))
    whole = outputs(network, network.file())
    assert np.array_equal(outputs(network, banded, threads=threads), whole)


def test_what_is_added_lies_row_by_row_too():
    network = Network((12, 6, 16))
    first = network.conv(16, SAME)
    second = network.depthwise(SAME, addend=first)
    network.conv(16, Sliding(), addend=second)
    network.product(16, addend=first)
    banded = network.file(in_bands(network, [2]), scatter=random.Random(2))
    assert np.array_equal(outputs(network, banded), outputs(network, network.file()))


def test_products_of_many_pixels_by_a_filter_that_no_cache_holds_are_those_of_bands():
    """Whole, pixels are read where they lie; in bands of few pixels they are copied first."""
    network = Network((16, 9, 384))
    network.conv(384, Sliding())
    banded = network.file(in_bands(network, [3]))
    whole = outputs(network, network.file())
    assert np.array_equal(outputs(network, banded), whole)
    assert np.array_equal(outputs(network, network.file(), threads=2), whole)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
def test_whole_steps_read_and_make_scattered_rows(dtype):
    network = chain(dtype)
    network.product(9)
    scattered = network.file(scatter=random.Random(3))
    assert np.array_equal(outputs(network, scattered), outputs(network, network.file()))


def test_rows_follow_one_another_in_bands_as_well():
    network = chain()
    banded = network.file(in_bands(network, [3]))
    assert np.array_equal(outputs(network, banded), outputs(network, network.file()))


def test_rows_may_be_made_from_the_last_to_the_first():
    network = chain()
    turns = [
        (step, row, 1)
        for step, layer in enumerate(network.layers)
        for row in reversed(range(network.extent(layer.result)[0]))
    ]
    banded = network.file(turns, scatter=random.Random(4))
    assert np.array_equal(outputs(network, banded), outputs(network, network.file()))


def test_rows_may_be_made_again():
    network = chain()
    turns = in_bands(network, [2])
    again = [each for turn in turns for each in (turn, turn)]
    banded = network.file(again, scatter=random.Random(5))
    assert np.array_equal(outputs(network, banded), outputs(network, network.file()))


def random_network(draw):
    """Return layers with windows of all kinds."""
    dtype = draw.choice(["float32", "float32", "int8", "uint8"])
    extents = draw.randint(1, 14), draw.randint(1, 9), draw.choice([1, 4, 8, 17])
    network = Network(extents, dtype, seed=draw.randrange(2**32))
    while len(network.layers) < draw.randint(1, 5) or not network.layers:
        rows, columns, channels = network.extent(network.last)
        kind = draw.choice(["conv", "conv", "depthwise", "product"])
        window = Sliding() if kind == "product" else random_window(draw)
        if min(window.extents(rows, columns)) < 1:
            continue
        outputs = channels if kind == "depthwise" else draw.choice([1, 4, 8, 17, 40])
        shape = (1, *window.extents(rows, columns), outputs)
        like = [
            layer.result for layer in network.layers
            if network.tensors[layer.result].shape == shape
        ]  # fmt: skip
        can_add = dtype == "float32" and like and draw.random() < 0.7
        addend = draw.choice(like) if can_add else None
        if kind == "conv":
            groups = draw.choice([n for n in (1, 1, 2, 4) if not channels % n and not outputs % n])
            network.conv(outputs, window, groups, addend)
        elif kind == "depthwise":
            network.depthwise(window, addend=addend)
        else:
            network.product(outputs, addend)
    return network


def random_window(draw):
    """Return a window whose padding is mostly not symmetric."""
    kernel = draw.randint(1, 4), draw.randint(1, 3)
    strides = draw.randint(1, 3), draw.randint(1, 2)
    dilations = draw.randint(1, 3), draw.randint(1, 2)
    return Sliding(kernel, strides, dilations, tuple(draw.randint(0, 3) for _ in range(4)))


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_random_layers_in_random_bands_make_the_bits_of_the_whole(seed):
    draw = random.Random(seed)
    network = random_network(draw)
    sizes = [draw.randint(1, 5) for _ in range(draw.randint(1, 4))]
    turns = in_bands(network, sizes, together=draw.randint(1, 3))
    scatter = draw if draw.random() < 0.9 else None
    banded = network.file(turns, scatter=scatter)
    whole = outputs(network, network.file())
    assert np.array_equal(outputs(network, banded, threads=draw.choice([1, 1, 2])), whole)


def many_turns():
    """Return a network as deep as MobileNet v2 is, of which each turn makes a row."""
    network = Network((112, 4, 2))
    for _ in range(12):
        network.conv(2, SAME)
    return network, in_bands(network, [1])


def test_bands_take_less_memory_and_a_program_of_many_turns_is_small():
    network, turns = many_turns()
    assert len(turns) == 12 * 112
    banded = network.file(turns, scatter=random.Random(6))
    (size,) = struct.unpack_from("<Q", banded, 16)
    with Session.of_pieces([banded], "banded") as session:
        assert session.arena_bytes < Session.of_pieces([network.file()], "whole").arena_bytes
    assert size < 200 * len(turns)


def test_a_profile_tells_of_steps_not_of_turns():
    network = chain()
    turns = in_bands(network, [1])
    with Session.of_pieces([network.file(turns, scatter=random.Random(7))], "banded") as session:
        session.run(feed(network))
        profile = session.profile()
    assert [each.name for each in profile] == ["s0", "s1", "s2"]
    assert all(each.backend == "arenite" and each.nanoseconds > 0 for each in profile)


def test_rows_that_lie_apart_cannot_be_looked_at_as_one_array():
    network = chain()
    data = network.file(in_bands(network, [1]), scatter=random.Random(8))
    with Session.of_pieces([data], "banded") as session:
        scattered = next(i for i, each in enumerate(network.tensors) if i and each.array is None)
        with pytest.raises(ValueError, match="rows of the tensor are not contiguous"):
            session._native.view(scattered)


def test_records_of_one_name_store_it_once():
    network, turns = many_turns()
    root, constants = network.root(turns, scatter=random.Random(6))
    apart = len(file_of_root(root, constants))
    for record in root["records"]:
        record["name"] = "row"
    assert len(file_of_root(root, constants)) < apart - 12 * len(root["records"])
