"""The container of weights."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.compression.coding import pack, unpack
from arenite.compression.errors import CodedError


@pytest.fixture(scope="module")
def tensors():
    random = np.random.default_rng(0)
    codebook = np.float32([0, -0.7, 0.31, 1.25])
    return {
        "weights": codebook[random.integers(0, 4, (300, 64))],
        "bias": random.standard_normal(300).astype(np.float16).astype(np.float32),
        "scale/größe": random.standard_normal((3, 5)).astype(np.float32),
        "scalar": np.float32(2.5),
        "empty": np.zeros((0, 4), np.float32),
    }


def test_tensors_come_back_in_order_with_every_bit(tensors):
    found = unpack(pack(tensors))
    assert list(found) == list(tensors)
    for name, tensor in tensors.items():
        assert found[name].shape == np.shape(tensor)
        assert found[name].tobytes() == np.asarray(tensor).tobytes()


def test_each_tensor_takes_its_smallest_form(tensors):
    only = {name: len(pack({name: tensor})) for name, tensor in tensors.items()}
    assert only["weights"] < 300 * 64 * 2 / 8 * 1.05
    assert only["bias"] < 300 * 2 + 30
    assert only["scale/größe"] < 15 * 4 + 40


@given(st.data())
def test_damaged_bytes_are_refused_or_read_but_never_a_crash(tensors, data):
    damaged = bytearray(pack(tensors))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CodedError):
        unpack(bytes(damaged))


@pytest.mark.parametrize("cut", [0, 5, 9, 20, -1])
def test_truncation_is_refused(tensors, cut):
    with pytest.raises(CodedError):
        unpack(pack(tensors)[:cut])


def test_what_follows_the_last_tensor_is_refused(tensors):
    with pytest.raises(CodedError, match="bytes follow"):
        unpack(pack(tensors) + b"x")
