"""Coding loses nothing, is close to the entropy, and refuses damage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from arenite.compression.coding import GAP_BITS, Layout, code, codes, decode, parse
from arenite.compression.errors import CodedError
from support.coded_programs import shared_weights


def entropy_bytes(symbols):
    counts = np.bincount(symbols)
    shares = counts[counts > 0] / symbols.size
    return symbols.size * float(-(shares * np.log2(shares)).sum()) / 8


@given(
    arrays.arrays(
        np.float32,
        st.integers(1, 400),
        elements=st.sampled_from([0.0, -0.0, 1.5, -2.25, 3e-41, math.inf, 0.1]),
    )
)
def test_every_bit_comes_back(weights):
    coded = code(weights)
    if coded is not None:
        assert decode(bytes(coded), weights.shape).tobytes() == weights.tobytes()


@pytest.mark.parametrize("density", [1.0, 0.6, 0.3, 0.1, 0.04, 0.001])
@pytest.mark.parametrize("num_values", [2, 16, 256])
def test_every_layout_comes_back_and_none_is_larger_than_a_bit_mask_and_indices(
    density, num_values
):
    weights = shared_weights((300, 784), density, num_values)
    coded = code(weights)
    assert decode(bytes(coded), weights.shape).tobytes() == weights.tobytes()
    assert coded.size == len(bytes(coded))
    num_filled = np.count_nonzero(weights)
    assert coded.size <= 16 + 4 * num_values + weights.size / 8 + num_filled + 40


def test_sparse_weights_get_gaps_and_dense_ones_an_index_each():
    assert code(shared_weights((1000, 100), 0.04, 32)).layout is Layout.GAPS
    assert code(shared_weights((1000, 100), 0.5, 32)).layout in (Layout.MASK, Layout.PLAIN)
    assert code(shared_weights((1000, 100), 1.0, 32)).layout is Layout.PLAIN


@pytest.mark.parametrize("num_values", [16, 32, 64, 256])
def test_indices_take_little_more_than_their_entropy(num_values):
    weights = shared_weights(1_000_000, 1.0, num_values)
    _, symbols = np.unique(weights, return_inverse=True)
    assert len(code(weights).indices) <= 1.015 * entropy_bytes(symbols)


def test_runs_of_zeros_longer_than_any_gap_are_bridged():
    weights = np.zeros(200_000, np.float32)
    weights[[0, 255, 511, 512, 70_000, 199_999]] = 1
    found = codes(weights)
    assert sorted({coded.gap_bits for coded in found}) == [0, *GAP_BITS]
    for coded in found:
        assert decode(bytes(coded), weights.shape).tobytes() == weights.tobytes()


def test_a_codebook_of_halves_takes_half():
    exact = code(np.tile(np.float32([0.5, 0.25, -1]), 500))
    single = code(np.tile(np.float32([0.1, 0.2, -1]), 500))
    assert single.size - exact.size == 3 * 2


def test_weights_of_too_many_values_and_weights_too_few_have_no_code():
    assert code(np.arange(1, 300, dtype=np.float32)) is None
    assert code(np.arange(300, dtype=np.float32)) is None
    assert code(np.float32([1.0])) is None
    assert code(np.zeros(0, np.float32)) is None


def test_all_zeros_have_a_code():
    weights = np.zeros((64, 64), np.float32)
    assert decode(bytes(code(weights)), (64, 64)).tobytes() == weights.tobytes()


@given(st.data())
def test_damaged_bytes_are_refused_or_decoded_but_never_a_crash(data):
    density = data.draw(st.sampled_from([1.0, 0.5, 0.05]))
    weights = shared_weights((40, 50), density, 16)
    damaged = bytearray(bytes(code(weights)))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    try:
        found = decode(bytes(damaged), weights.shape)
    except CodedError:
        return
    assert found.shape == weights.shape


def test_a_code_of_another_number_of_elements_is_refused():
    coded = bytes(code(shared_weights((10, 100), 1.0, 8)))
    with pytest.raises(CodedError, match="elements"):
        decode(coded, (10, 101))
    with pytest.raises(CodedError, match="too many"):
        decode(coded, (1 << 20, 1 << 20))


def test_a_later_version_and_truncation_are_named():
    coded = bytes(code(shared_weights((10, 100), 0.5, 8)))
    with pytest.raises(CodedError, match="version 9"):
        parse(b"\x09" + coded[1:])
    with pytest.raises(CodedError, match="truncated"):
        parse(coded[:10])


@pytest.mark.parametrize("density", [1.0, 0.4, 0.03])
def test_without_huffman_codes_a_symbol_is_a_byte(density):
    weights = shared_weights((100, 200), density, 32)
    smaller, larger = code(weights), code(weights, huffman=False)
    assert larger.size > smaller.size
    assert len(larger.indices) == larger.num_indices
    assert decode(bytes(larger), weights.shape).tobytes() == weights.tobytes()
