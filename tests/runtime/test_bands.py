"""Programs that run in bands of rows, beside the same programs run whole."""

import random

import numpy as np
import pytest

from arenite.runtime.session import Session
from support.banded_programs import Network, Sliding, in_bands
from support.running import PoisonedSession

SAME = Sliding((3, 3), padding=(1, 1, 1, 1))


def chain(type="float32", channels=5):
    """A convolution, a depthwise one and another, whose windows are not symmetric."""
    network = Network((17, 9, channels), type)
    network.conv(24, SAME)
    network.depthwise(Sliding((3, 3), strides=(2, 2), padding=(0, 1, 1, 0)))
    network.conv(7, Sliding((3, 2), dilations=(2, 1), padding=(3, 0, 1, 1)))
    return network


def feed(network, seed=0):
    """Return an input for a network."""
    draw = np.random.default_rng(seed)
    shape = (1, *network.shape)
    if network.type == "float32":
        return {"x": draw.standard_normal(shape).astype(np.float32)}
    limits = np.iinfo(network.type)
    return {"x": draw.integers(limits.min, limits.max + 1, shape).astype(network.type)}


def outputs(network, data, **options):
    """Return what a program makes of an input, whatever dead memory holds."""
    with PoisonedSession([data], **options) as session:
        return session.run(feed(network))["y"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("type", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("sizes", [(1,), (2,), (3,), (1, 4, 2), (99,)])
def test_bands_of_scattered_rows_make_the_bits_of_the_whole(sizes, type, threads):
    network = chain(type)
    turns = in_bands(network, sizes)
    banded = network.file(turns, scatter=random.Random(1))
    whole = outputs(network, network.file())
    assert np.array_equal(outputs(network, banded, threads=threads), whole)
