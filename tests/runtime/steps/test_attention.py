"""Attention beside NumPy, and by bands of queries beside the whole."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arenite.runtime import Session
from support.cache_rows import floats, rounded
from support.one_step import Given, one_step
from support.row_programs import assert_bands_make_the_whole


def by_heads(array, heads):
    """Return batches, heads, tokens and elements of batches, tokens and columns."""
    *outer, columns = array.shape
    return array.reshape(*outer, heads, columns // heads).transpose(0, 2, 1, 3)


def attention(feeds, *, heads, key_heads, scale, causal=False, window=0, softcap=0.0):
    """Return what attention is, in doubles."""
    queries, keys, values = (feeds[f"i{i}"].astype(np.float64) for i in range(3))
    batches, num_queries, _ = queries.shape
    queries = by_heads(queries, heads)
    keys, values = (
        each if each.ndim == 4 else by_heads(each, key_heads) for each in (keys, values)
    )
    group = heads // key_heads
    keys, values = (np.repeat(each, group, axis=1) for each in (keys, values))
    scores = scale * queries @ keys.transpose(0, 1, 3, 2)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if "i3" in feeds:
        scores = scores + feeds["i3"].astype(np.float64).transpose(0, 2, 1, 3)
    num_keys = keys.shape[2]
    lengths = np.clip(feeds.get("i4", np.full(batches, num_keys)), 0, num_keys)
    places = np.arange(num_keys)
    for batch, length in enumerate(lengths):
        own = length - num_queries + np.arange(num_queries)[:, None]
        seen = np.broadcast_to(places < length, (num_queries, num_keys))
        if causal:
            seen = seen & (places <= own)
        if window:
            seen = seen & (places > own - window)
        scores[batch] = np.where(seen, scores[batch], -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    mixed = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0) @ values
    return mixed.transpose(0, 2, 1, 3).reshape(batches, num_queries, heads * values.shape[3])


def kernel(heads, key_heads, **more):
    return {"heads": heads, "key_heads": key_heads, "scale": 0.3, **more}


def by_tokens(batches, count, width):
    return Given((batches, count, width))


# The kernel's fields, the inputs, and the width of the output.
CASES = {
    "one head": (kernel(1, 1), [(1, 7, 5), (1, 9, 5), (1, 9, 3)], 3),
    "several heads": (kernel(4, 4), [(2, 37, 32), (2, 150, 32), (2, 150, 64)], 64),
    "large heads": (kernel(2, 2), [(1, 6, 512), (1, 65, 512), (1, 65, 512)], 512),
    "grouped heads": (kernel(6, 2), [(2, 20, 48), (2, 70, 16), (2, 70, 32)], 96),
    "keys by heads": (kernel(6, 2), [(2, 20, 48), (2, 2, 70, 8), (2, 2, 70, 16)], 96),
    "one query": (kernel(4, 4), [(1, 1, 64), (1, 4, 130, 16), (1, 4, 130, 16)], 64),
    "one query, grouped heads": (kernel(8, 1), [(2, 1, 64), (2, 1, 70, 8), (2, 70, 24)], 192),
    "causal": (kernel(2, 2, causal=True), [(1, 70, 16), (1, 70, 16), (1, 70, 16)], 16),
    "causal behind earlier keys": (
        kernel(4, 2, causal=True), [(1, 9, 32), (1, 2, 80, 8), (1, 2, 80, 8)], 32),
    "a window": (
        kernel(2, 2, causal=True, window=5), [(1, 140, 8), (1, 150, 8), (1, 150, 8)], 8),
    "bounded scores": (kernel(2, 1, softcap=2.0), [(1, 9, 8), (1, 20, 4), (1, 20, 4)], 8),
    "a bounded query": (kernel(1, 1, softcap=2.0), [(1, 1, 8), (1, 20, 8), (1, 20, 8)], 8),
    "an addend for all": (
        kernel(2, 2), [(2, 20, 8), (2, 70, 8), (2, 70, 8), (1, 1, 1, 70)], 8),
    "an addend of each batch": (
        kernel(2, 2), [(2, 20, 8), (2, 70, 8), (2, 70, 8), (2, 1, 1, 70)], 8),
    "an addend of each score": (
        kernel(2, 2), [(2, 20, 8), (2, 70, 8), (2, 70, 8), (2, 20, 2, 70)], 8),
    "an addend of one query": (
        kernel(2, 1), [(1, 1, 8), (1, 70, 4), (1, 70, 4), (1, 1, 2, 70)], 8),
    "so many keys": (kernel(2, 2), [(3, 20, 8), (3, 70, 8), (3, 70, 8), None, (3,)], 8),
    "so many keys, causal": (
        kernel(2, 2, causal=True), [(3, 20, 8), (3, 2, 70, 4), (3, 2, 70, 4), None, (3,)], 8),
    "no queries": (kernel(2, 2), [(2, 0, 8), (2, 7, 8), (2, 7, 8)], 8),
    "no keys": (kernel(2, 2), [(2, 3, 8), (2, 0, 8), (2, 0, 8)], 8),
}  # fmt: skip
LENGTHS = np.array([70, 13, -4], np.int32)


def given(case):
    _, shapes, width = CASES[case]
    inputs = [
        None if shape is None else Given(shape, "int32" if len(shape) == 1 else "float32")
        for shape in shapes
    ]
    return inputs, Given((*shapes[0][:2], width))


def feeds_of(inputs):
    draw = np.random.default_rng(0)
    return {
        f"i{i}": LENGTHS if each.type == "int32" else draw.normal(0, 2, each.shape).astype("f4")
        for i, each in enumerate(inputs)
        if each is not None
    }


def run(fields, inputs, output, feeds):
    with Session.of_pieces(
        one_step("Attention", fields, inputs, [output]), "attention"
    ) as session:
        return session.run(feeds)["o0"]


@pytest.mark.parametrize("case", CASES)
def test_attention_is_what_it_is_in_doubles(case):
    inputs, output = given(case)
    feeds = feeds_of(inputs)
    made = run(CASES[case][0], inputs, output, feeds)
    np.testing.assert_allclose(made, attention(feeds, **CASES[case][0]), rtol=1e-5, atol=1e-5)


def test_scores_that_hide_every_key_give_zeros():
    inputs = [by_tokens(1, 20, 8), by_tokens(1, 70, 8), by_tokens(1, 70, 8), Given((1, 20, 1, 70))]
    feeds = feeds_of(inputs)
    feeds["i3"][:, 3] = -np.inf
    feeds["i3"][:, :, :, :66] = -np.inf  # of a whole block and a part of the next
    made = run(kernel(2, 2), inputs, by_tokens(1, 20, 8), feeds)
    np.testing.assert_array_equal(made[0, 3], np.zeros(8))
    np.testing.assert_allclose(made, attention(feeds, **kernel(2, 2)), rtol=1e-5, atol=1e-5)


def test_what_is_no_number_stays_so():
    inputs = [by_tokens(1, 20, 8), by_tokens(1, 70, 8), by_tokens(1, 70, 8)]
    feeds = feeds_of(inputs)
    feeds["i0"][0, 4, 0] = np.nan
    made = run(kernel(2, 2), inputs, by_tokens(1, 20, 8), feeds)
    bad = np.isnan(made)
    assert bad[0, 4, :4].all()
    assert bad.sum() == 4


def test_the_result_may_take_the_place_of_the_queries():
    inputs, output = given("causal")
    feeds = feeds_of(inputs)
    expected = run(CASES["causal"][0], inputs, output, feeds)
    same = Given(output.shape, same_as=0)
    np.testing.assert_array_equal(run(CASES["causal"][0], inputs, same, feeds), expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", [
    "one head", "large heads", "causal", "a window", "bounded scores", "one query",
    "causal behind earlier keys",
])  # fmt: skip
def test_bands_of_queries_give_the_bits_of_the_whole(case, threads):
    inputs, output = given(case)
    assert_bands_make_the_whole("Attention", CASES[case][0], inputs, output, threads=threads)


HALVED = [case for case in CASES if not case.startswith("no ")]


def with_halves(inputs, positions):
    """Return inputs, those at the positions as 16-bit floats."""
    return [
        replace(each, type="float16") if i in positions else each for i, each in enumerate(inputs)
    ]


@pytest.mark.parametrize("positions", [(1, 2), (1,), (2,)], ids=["both", "keys", "values"])
@pytest.mark.parametrize("case", HALVED)
def test_keys_and_values_of_16_bits_are_what_they_are_in_32(case, positions):
    inputs, output = given(case)
    feeds = feeds_of(inputs)
    feeds |= {f"i{i}": feeds[f"i{i}"].astype(np.float16) for i in positions}
    exact = feeds | {f"i{i}": feeds[f"i{i}"].astype(np.float32) for i in positions}
    made = run(CASES[case][0], with_halves(inputs, positions), output, feeds)
    expected = run(CASES[case][0], inputs, output, exact)
    if case == "large heads":  # sums of values begin anew where all do not fit the memory
        np.testing.assert_allclose(made, expected, rtol=0, atol=1e-5)
    else:
        np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("positions", [(1, 2), (1,), (2,)], ids=["both", "keys", "values"])
@pytest.mark.parametrize("case", HALVED)
def test_attention_to_8_bits_is_that_to_what_they_stand_for(case, positions):
    fields = CASES[case][0]
    inputs, output = given(case)
    feeds = feeds_of(inputs)
    exact = dict(feeds)
    for i in positions:
        columns = feeds[f"i{i}"].shape[-1]
        width = columns if feeds[f"i{i}"].ndim == 4 else columns // fields["key_heads"]
        heads = feeds[f"i{i}"].reshape(*feeds[f"i{i}"].shape[:-1], columns // width, width)
        kept = rounded(heads)
        exact[f"i{i}"] = floats(kept, width).reshape(feeds[f"i{i}"].shape)
        feeds[f"i{i}"] = kept.reshape(*feeds[f"i{i}"].shape[:-1], -1)
        inputs[i] = Given(feeds[f"i{i}"].shape, "int8")
    made = run(fields, inputs, output, feeds)
    expected = run(fields, given(case)[0], output, exact)
    if case == "large heads":  # sums of values begin anew where all do not fit the memory
        np.testing.assert_allclose(made, expected, rtol=0, atol=1e-5)
    else:
        np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "case", ["large heads", "causal", "causal behind earlier keys", "a window"]
)
def test_bands_give_the_bits_of_the_whole_on_16_bit_keys_and_values(case, threads):
    inputs, output = given(case)
    assert_bands_make_the_whole(
        "Attention", CASES[case][0], with_halves(inputs, (1, 2)), output, threads=threads
    )


@pytest.mark.parametrize("vectors", ["avx2", "any"])
def test_every_kind_of_vectors_converts_keys_and_values(vectors):
    files = [__file__, str(Path(__file__).with_name("test_cache_rows.py"))]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    subprocess.run(
        [*command, "-k", "what_they_are_in_32 or stand_for or of_numpy"],
        env=os.environ | {"ARENITE_VECTORS": vectors}, check=True,
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(1, 20, 2, 70), (1, 20, 1, 70), (1, 1, 2, 70)], ids=str)
def test_bands_find_the_rows_of_an_addend(shape):
    inputs = [by_tokens(1, 20, 8), by_tokens(1, 70, 8), by_tokens(1, 70, 8), Given(shape)]
    apart = (0, 3) if shape[1] > 1 else (0,)
    for seed in range(3):
        assert_bands_make_the_whole(
            "Attention", kernel(2, 2), inputs, by_tokens(1, 20, 8), apart=apart, seed=seed
        )


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_places_by_bands(interleaved):
    fields = {"heads": 3, "interleaved": interleaved}
    inputs = [by_tokens(1, 9, 30), by_tokens(1, 9, 4), by_tokens(1, 9, 4)]
    for seed in range(3):
        feeds, made = assert_bands_make_the_whole(
            "Rotary", fields, inputs, by_tokens(1, 9, 30), apart=(0, 1, 2), seed=seed
        )
    x = feeds["i0"].reshape(9, 3, 10)
    pairs = (x[..., 0:8:2], x[..., 1:8:2]) if interleaved else (x[..., :4], x[..., 4:8])
    turn = feeds["i1"][0, :, None] + 1j * feeds["i2"][0, :, None]
    turned = turn * (pairs[0] + 1j * pairs[1])
    made = made.reshape(9, 3, 10)
    np.testing.assert_array_equal(made[..., 8:], x[..., 8:])
    one, two = (made[..., 0:8:2], made[..., 1:8:2]) if interleaved else (
        made[..., :4], made[..., 4:8]
    )  # fmt: skip
    np.testing.assert_allclose(one + 1j * two, turned, rtol=1e-5, atol=1e-5)
