"""Counting instructions on emulated ARM processors."""

import shutil

import pytest

from bench.arm.code import cycles_of, kinds
from bench.arm.emulation import Block, Counted
from bench.contests.arm import _short

FMLA, ADD, LDR, STR_Q, SUBS, B_NE = (
    bytes.fromhex(each)
    for each in ("20cc224e", "2000028b", "0000c03d", "0000803d", "200c0071", "c1ffff54")
)
"""fmla v0.4s, v1.4s, v2.4s; add x0, x1, x2; ldr q0, [x0]; str q0, [x0]; subs w0, w1, #3; b.ne"""


def counted(*blocks: Block) -> Counted:
    return Counted("aarch64", "cortex-a72", blocks, 2, (1 << 20, 3 << 20))


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("20cc224e", "multiplies"),  # fmla v0.4s, v1.4s, v2.4s
        ("2094824e", "multiplies"),  # sdot v0.4s, v1.16b, v2.16b
        ("2020722f", "multiplies"),  # umlal v0.4s, v1.4h, v2.h[3]
        ("20b4a26e", "multiplies"),  # sqrdmulh v0.4s, v1.4s, v2.4s
        ("20d4224e", "other vector"),  # fadd v0.4s, v1.4s, v2.4s
        ("209c1d0f", "other vector"),  # sqrshrn v0.4h, v1.4s, #3
        ("0000c03d", "loads"),  # ldr q0, [x0]
        ("200080b9", "loads"),  # ldrsw x0, [x1]
        ("00000058", "loads"),  # ldr x0, .
        ("000440ad", "loads"),  # ldp q0, q1, [x0]
        ("0000803d", "stores"),  # str q0, [x0]
        ("e007bfa9", "stores"),  # stp x0, x1, [sp, #-16]!
        ("c0035fd6", "branches"),  # ret
        ("200c029b", "scalar"),  # madd x0, x1, x2, x3
    ],
)
def test_an_instruction_has_the_kind_that_the_manual_gives_it(word, kind):
    assert kinds(bytes.fromhex(word)) == {kind: 1}


def test_an_inference_is_a_run_without_start_loading_and_end():
    found = counted(
        Block("a", FMLA + LDR + B_NE, 3, (5, 10, 8, 1)), Block("b", ADD, 1, (0, 7, 4, 9))
    )
    assert found.starting == 15
    assert found.per_run == (3 * 8 + 4) // 2
    assert found.loading == 3 * 10 + 7 - found.per_run
    assert found.kinds() == {"multiplies": 4, "loads": 4, "branches": 4, "scalar": 2}
    assert found.added_bytes == 2 << 20


@pytest.mark.skipif(shutil.which("llvm-mca-19") is None, reason="needs llvm-19")
def test_a_chain_of_additions_takes_the_latency_of_each():
    chained = FMLA * 4
    slow, fast = cycles_of((chained, ADD * 4), "aarch64", "cortex-a72")
    assert slow > 3 * 4 > 4 > fast > 1


@pytest.mark.skipif(shutil.which("llvm-mca-19") is None, reason="needs llvm-19")
def test_hot_functions_come_first_with_their_cycles():
    found = counted(
        Block("cold", ADD, 1, (0, 0, 2, 0)),
        Block("hot", LDR + STR_Q + SUBS + B_NE, 4, (0, 0, 1000, 0)),
    )
    (first, number, spent), (second, _, unknown) = found.functions()
    assert (first, number, second, unknown) == ("hot", 2000, "cold", None)
    assert spent is not None
    assert found.cycles() == round(spent * found.per_run)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("void N_NEON::multiply<1ul, false, 5ul>(Tile const&)", "`multiply<1, false, 5>`"),
        ("DotRows<1ul>::make(unsigned long) const", "`DotRows<1>::make`"),
        (
            "void part<sum<int>(int)::{lambda(int)#1}>(sum<int>(int))",
            "`part<sum<int>::{lambda#1}>`",
        ),
        ("libc.so.6", "`libc.so.6`"),
    ],
)
def test_a_function_is_named_without_result_and_parameters(function, name):
    assert _short(function) == name
