"""Products with weights in blocks by rows, and program files that state blocks falsely."""

import math

import numpy as np
import pytest

from arenite.runtime import IndexRangeError, ProgramError, Session
from support.one_step import Given, constant, one_step
from support.row_programs import assert_bands_make_the_whole

RNG = np.random.default_rng(3)


def weights(bits, block, inputs, outputs, scales="float32", zeros="uint8"):
    """Return random operands of blocks, and the weights that they are as numpy computes them."""
    blocks, panels, together = -(-inputs // block), -(-outputs // 16), 32 // bits
    words = RNG.integers(0, 1 << 32, (panels, blocks, block // together, 16), dtype=np.uint32)
    scale = RNG.random((panels, blocks, 16)).astype(scales)
    zero = (RNG.random((panels, blocks, 16)) * 15).astype(zeros)
    codes = np.stack(
        [words >> np.uint32(bits * i) & ((1 << bits) - 1) for i in range(together)], 3
    )
    codes = codes.reshape(panels, blocks, block, 16).astype(np.float64)
    dense = (codes - zero[:, :, None]) * scale[:, :, None]
    dense = dense.transpose(0, 3, 1, 2).reshape(16 * panels, blocks * block)
    coded = words.view(np.uint8).reshape(panels, blocks, block // together, 64)
    return [constant(coded), constant(scale), constant(zero)], dense[:outputs, :inputs]


@pytest.mark.parametrize("shape", [(1, 9, 70), (1, 60, 2, 70)])
@pytest.mark.parametrize(
    ("bits", "block", "scales", "zeros"),
    [(4, 16, "float16", "uint8"), (4, 64, "float32", "float32"), (8, 32, "float32", "uint8")],
)
def test_bands_of_rows_give_the_same_bits(bits, block, scales, zeros, shape):
    operands, dense = weights(bits, block, 70, 85, scales, zeros)
    bias = RNG.random(85).astype(np.float32)
    feeds, made = assert_bands_make_the_whole(
        "BlockProduct", {"bits": bits, "block": block}, [Given(shape), *operands, constant(bias)],
        Given((*shape[:-1], 85)),
    )  # fmt: skip
    wanted = feeds["i0"].astype(np.float64) @ dense.T + bias
    np.testing.assert_allclose(made, wanted, atol=1e-5 * np.abs(wanted).max(), rtol=0)


def product(bits=4, block=32, rows=2, change=None):
    """Return a program of one product of 64 inputs and 40 outputs with a changed operand."""
    operands, _ = weights(4, 32, 64, 40)
    inputs = [Given((rows, 64)), *operands, constant(np.zeros(40, np.float32))]
    if change is not None:
        position, operand = change
        inputs[position] = operand
    return one_step("BlockProduct", {"bits": bits, "block": block}, inputs, [Given((rows, 40))])


CODES = np.zeros((3, 2, 4, 64), np.uint8)
TERMS = np.zeros((3, 2, 16), np.float32)
WRONG = {
    "bits of no kernel": {"bits": 5},
    "no bits": {"bits": 0},
    "blocks of any length": {"block": 48},
    "long blocks": {"block": 512},
    "blocks of no weights": {"block": 0},
    "twice the bits": {"bits": 8},
    "half the blocks": {"block": 64},
    "few panels": {"change": (1, constant(CODES[:2]))},
    "few words": {"change": (1, constant(CODES[:, :, :2]))},
    "codes with a sign": {"change": (1, constant(CODES.astype(np.int8)))},
    "few scales": {"change": (2, constant(TERMS[:, :1]))},
    "scales of another type": {"change": (2, constant(TERMS.astype(np.int32)))},
    "few zero points": {"change": (3, constant(TERMS[:2].astype(np.uint8)))},
    "zero points of 16 bits": {"change": (3, constant(TERMS.astype(np.float16)))},
    "a short bias": {"change": (4, constant(np.zeros(39, np.float32)))},
    "another number of inputs": {"change": (0, Given((2, 65)))},
    "other rows": {"change": (0, Given((3, 64)))},
    "rows of halves": {"change": (0, Given((2, 64), "float16"))},
}


@pytest.mark.parametrize("kind", WRONG)
def test_blocks_that_do_not_fit_are_refused(kind):
    Session.of_pieces(product(), "fitting").close()
    with pytest.raises(ProgramError, match=r"BlockProduct"):
        Session.of_pieces(product(**WRONG[kind]), kind)


def test_an_index_beyond_a_table_of_blocks_is_refused():
    operands, dense = weights(8, 16, 40, 33)
    pieces = one_step(
        "BlockGather", {"bits": 8, "block": 16, "rows": 33},
        [Given((3,), "int64"), *operands], [Given((3, 40))],
    )  # fmt: skip
    with Session.of_pieces(pieces, "table", guard=True) as session:
        made = session.run({"i0": np.array([0, -1, 17])})["o0"]
        np.testing.assert_allclose(made, dense[[0, -1, 17]], rtol=1e-6)
        with pytest.raises(IndexRangeError, match="index 33"):
            session.run({"i0": np.array([0, 33, 1])})
    for rows in (0, 32, 1 << 31):
        pieces = one_step(
            "BlockGather", {"bits": 8, "block": 16, "rows": rows},
            [Given((3,), "int64"), *operands], [Given((3, 40))],
        )  # fmt: skip
        with pytest.raises(ProgramError, match="BlockGather"):
            Session.of_pieces(pieces, "table")


def rounded(rows, block):
    """Return rows of which each block is rounded to integers from -127 to 127 times a scale."""
    padded = np.zeros((*rows.shape[:-1], -(-rows.shape[-1] // block) * block), np.float32)
    padded[..., : rows.shape[-1]] = rows
    grouped = padded.reshape(*padded.shape[:-1], -1, block)
    scale = np.abs(grouped).max(-1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    made = np.rint(grouped * inverse).astype(np.float64) * scale
    return made.reshape(padded.shape)[..., : rows.shape[-1]]


@pytest.mark.parametrize("shape", [(1, 1, 70), (1, 9, 70), (1, 60, 2, 70)])
@pytest.mark.parametrize(
    ("bits", "block", "zeros"), [(4, 16, "uint8"), (4, 32, "float32"), (8, 32, "uint8")]
)
def test_rows_are_rounded_where_a_step_has_memory_for_it(bits, block, zeros, shape):
    operands, dense = weights(bits, block, 70, 85, "float16", zeros)
    row = -(-70 // block) * (block + 8)
    feeds, made = assert_bands_make_the_whole(
        "BlockProduct", {"bits": bits, "block": block}, [Given(shape), *operands],
        Given((*shape[:-1], 85)), scratch=min(48, math.prod(shape[:-1])) * row,
    )  # fmt: skip
    wanted = rounded(feeds["i0"], block) @ dense.T
    np.testing.assert_allclose(made, wanted, atol=3e-6 * np.abs(wanted).max(), rtol=0)
    exact = feeds["i0"].astype(np.float64) @ dense.T
    assert np.abs(exact - wanted).max() > 1e-4 * np.abs(exact).max()


def test_memory_for_less_than_a_rounded_row_is_refused():
    operands, _ = weights(4, 32, 64, 40)
    given, made = [Given((2, 64)), *operands], [Given((2, 40))]
    kernel = {"bits": 4, "block": 32}
    with pytest.raises(ProgramError, match="its working memory has 79 B; it needs 80"):
        Session.of_pieces(one_step("BlockProduct", kernel, given, made, scratch=79), "short")


def test_rows_of_large_and_of_no_numbers_are_rounded():
    operands, _ = weights(4, 32, 64, 40)
    program = one_step(
        "BlockProduct", {"bits": 4, "block": 32}, [Given((4, 64)), *operands],
        [Given((4, 40))], scratch=4 * 80,
    )  # fmt: skip
    rows = np.zeros((4, 64), np.float32)
    rows[1], rows[2, 3], rows[3, 40] = 1e-40, np.nan, np.inf
    with Session.of_pieces(program, "numbers") as session:
        (made,) = session.run({"i0": rows}).values()
    assert not made[0].any()
    assert np.abs(made[1]).max() < 1e-35
    assert np.isnan(made[2]).all()
    assert not np.isfinite(made[3]).any()
