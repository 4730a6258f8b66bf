"""Cycles of Cortex-M processors, estimated from blocks of instructions."""

import shutil

import pytest

from bench.boards.cycles import Block, Executed, cycles_of_m4

LLVM = pytest.mark.skipif(shutil.which("llvm-mca-19") is None, reason="needs llvm-19")


@pytest.mark.parametrize(
    ("instructions", "cycles"),
    [
        (["smlad\tr5, r2, r3, r5", "smull\tr0, r1, r2, r3", "sxtb16\tr2, r0"], 3),
        (["ldr\tr0, [r1], #4", "adds\tr0, #1"], 3),
        (["ldr\tr0, [r1]", "ldrb\tr2, [r3]", "adds\tr0, #1"], 4),  # loads side by side
        (["str\tr0, [r1, #4]", "strb.w\tr0, [r1, r2]", "b\t#-4"], 4),
        (["push.w\t{r4, r5, r6, lr}", "vpush\t{d8, d9}", "ldm.w\tr0, {r1-r4}"], 5 + 3 + 5),
        (["ldrd\tr0, r1, [sp]", "strd\tr0, r1, [sp]"], 6),
        (["vdiv.f32\ts0, s1, s2", "vmla.f32\ts0, s1, s2", "vldr\ts0, [r0]", "nop"], 14 + 3 + 3),
        (["sdiv\tr0, r1, r2", "mla\tr0, r1, r2, r3"], 13),
    ],
)
def test_an_instruction_of_a_cortex_m4_takes_what_its_manual_states(instructions, cycles):
    assert cycles_of_m4(instructions) == cycles


LOOP = bytes.fromhex("51f8040b00f10100fad1")
"""ldr r0, [r1], #4; add.w r0, r0, #1; bne: 4 cycles, and 2 more where it is taken."""


@LLVM
def test_cycles_are_those_of_the_blocks_and_of_taken_branches():
    found = Executed("Cortex-M4", 2, (Block("f", LOOP, 3, 10, 6), Block("g", LOOP, 3, 2, 0)))
    assert found.instructions == (30 + 6) // 2
    assert found.jumps == 3
    assert found.cycles() == {"f": (40 + 12) // 2, "g": 4}


@LLVM
def test_a_core_that_issues_two_instructions_takes_fewer_cycles():
    m4, m7 = (
        Executed(f"Cortex-{each}", 1, (Block("f", LOOP, 3, 1000, 0),)).cycles()["f"]
        for each in ("M4", "M7")
    )
    assert m7 < m4
