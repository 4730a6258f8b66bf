"""Attention of bytes beside the steps that it takes the place of, to the bit."""

import numpy as np
import pytest

from arenite.runtime import ProgramError, Session
from support.one_step import Given, constant, one_step
from support.row_programs import assert_bands_make_the_whole

QUERIES, KEYS, VALUES, RESULT = (0.03, -7), (0.05, 12), (0.02, 3), (0.011, -20)
SCORES, WEIGHTS, READ = (0.09, 5), (1 / 256, -128), (0.04, -60)
ROUNDINGS = np.array([*SCORES, *WEIGHTS], np.float32)


def of_bytes(shape, stated):
    return Given(shape, "int8", None, stated[:1], stated[1])


def rounded(sums, ratio, zero):
    """Return sums times a ratio as bytes, halves to the even one."""
    scaled = np.rint(sums.astype(np.float32) * np.float32(ratio)) + zero
    return np.clip(scaled, -128, 127).astype(np.int8)


def ratio(one, other, result):
    return np.float32(one[0]) * np.float32(other[0]) / np.float32(result[0])


def softmax(scores, stated, beta):
    """Return what the step of its own gives."""
    given, made = of_bytes(scores.shape, stated), of_bytes(scores.shape, WEIGHTS)
    fields = {"beta": beta}
    with Session.of_pieces(one_step("Softmax", fields, [given], [made]), "softmax") as session:
        return session.run({"i0": scores})["o0"]


def integers(array, stated, heads):
    """Return batches, heads, tokens and elements, as integers of 64 bits less the zero point."""
    if array.ndim == 3:
        *outer, columns = array.shape
        array = array.reshape(*outer, heads, columns // heads).transpose(0, 2, 1, 3)
    return array.astype(np.int64) - stated[1]


def attention(feeds, *, heads, key_heads, scale, table=None):
    """Return the result of products and a softmax of their own."""
    queries = integers(feeds["i0"], QUERIES, heads)
    keys, values = (
        np.repeat(integers(feeds[name], stated, key_heads), heads // key_heads, axis=1)
        for name, stated in (("i1", KEYS), ("i2", VALUES))
    )
    sums = queries @ keys.swapaxes(2, 3)
    scores = rounded(sums, ratio(QUERIES, KEYS, SCORES), SCORES[1])
    if table is not None:
        scores = table[scores.astype(np.int64) + 128]
    weights = softmax(scores, SCORES if table is None else READ, scale)
    sums = (weights.astype(np.int64) - WEIGHTS[1]) @ values
    made = rounded(sums, ratio(WEIGHTS, VALUES, RESULT), RESULT[1])
    return made.transpose(0, 2, 1, 3).reshape(*feeds["i0"].shape[:2], -1)


# Heads of queries and of keys; shapes of queries, keys and values; and the width of the result.
CASES = {
    "one head": (1, 1, [(1, 7, 5), (1, 9, 5), (1, 9, 3)], 3),
    "several heads": (4, 4, [(2, 37, 32), (2, 150, 32), (2, 150, 64)], 64),
    "large heads": (2, 2, [(1, 20, 512), (1, 65, 512), (1, 65, 512)], 512),
    "grouped heads by heads": (6, 2, [(2, 20, 48), (2, 2, 70, 8), (2, 2, 70, 16)], 96),
    "one query": (4, 4, [(1, 1, 64), (1, 4, 130, 16), (1, 4, 130, 16)], 64),
}  # fmt: skip
TABLE = np.random.default_rng(3).integers(-128, 128, 256).astype(np.int8)


def given(case, table=None):
    heads, key_heads, shapes, width = CASES[case]
    inputs = [
        of_bytes(shape, stated)
        for shape, stated in zip(shapes, (QUERIES, KEYS, VALUES), strict=True)
    ]
    inputs += [None, None, constant(ROUNDINGS)]
    if table is not None:
        inputs.append(constant(table, scales=READ[:1], zero_point=READ[1]))
    fields = {"heads": heads, "key_heads": key_heads, "scale": 0.5}
    return fields, inputs, of_bytes((*shapes[0][:2], width), RESULT)


def scratch_of(fields, inputs):
    keys = inputs[1].shape
    return 16 * fields["heads"] * keys[1 if len(keys) == 3 else 2]


def feeds_of(inputs):
    draw = np.random.default_rng(0)
    return {f"i{i}": draw.integers(-128, 128, inputs[i].shape).astype(np.int8) for i in range(3)}


def run(fields, inputs, output, feeds):
    pieces = one_step("Attention", fields, inputs, [output], scratch=scratch_of(fields, inputs))
    with Session.of_pieces(pieces, "attention") as session:
        return session.run(feeds)["o0"]


@pytest.mark.parametrize("table", [None, TABLE], ids=["scores", "looked up"])
@pytest.mark.parametrize("case", CASES)
def test_it_gives_the_bits_of_products_and_a_softmax(case, table):
    fields, inputs, output = given(case, table)
    feeds = feeds_of(inputs)
    made = run(fields, inputs, output, feeds)
    np.testing.assert_array_equal(made, attention(feeds, **fields, table=table))
    assert len(np.unique(made)) > 10


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", ["one head", "large heads"])
def test_bands_of_queries_give_the_bits_of_the_whole(case, threads):
    fields, inputs, output = given(case)
    assert_bands_make_the_whole(
        "Attention", fields, inputs, output, threads=threads, scratch=scratch_of(fields, inputs)
    )


def test_the_result_may_take_the_place_of_the_queries():
    fields, inputs, output = given("large heads")
    feeds = feeds_of(inputs)
    expected = run(fields, inputs, output, feeds)
    same = Given(output.shape, "int8", None, RESULT[:1], RESULT[1], same_as=0)
    np.testing.assert_array_equal(run(fields, inputs, same, feeds), expected)


@pytest.mark.parametrize(
    ("position", "other", "reason"),
    [
        (5, None, "not stated by a constant"),
        (5, constant(ROUNDINGS[:3]), "not stated by a constant"),
        (5, Given((4,)), "not stated by a constant"),
        (5, constant(ROUNDINGS * np.float32(0)), "a scale is not above 0"),
        (5, constant(ROUNDINGS + np.float32(0.5)), "no signed byte"),
        (6, constant(TABLE), "its table has no scale"),
        (1, Given((1, 9, 5), "float32"), "must all be int8"),
        (1, of_bytes((1, 0, 5), KEYS), "more keys than values"),
        (3, Given((1, 1, 1, 9)), "neither added to"),
    ],
)
def test_what_does_not_fit_is_refused(position, other, reason):
    fields, inputs, output = given("one head", TABLE)
    inputs[position] = other
    pieces = one_step("Attention", fields, inputs, [output], scratch=4096)
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces(pieces, "attention")


def test_too_little_working_memory_is_refused():
    fields, inputs, output = given("one head")
    pieces = one_step("Attention", fields, inputs, [output], scratch=16 * 9 - 1)
    with pytest.raises(ProgramError, match="working memory"):
        Session.of_pieces(pieces, "attention")
