"""The emulated boards measure what they say: C written here, whose sizes and counts are known."""

from dataclasses import replace

import numpy as np
import pytest

from bench.boards.board import board as board_named
from bench.boards.program import BuildError, Subject, build, footprint
from bench.boards.run import CALIBRATION, BoardError, run

ARENA = 64
HEADER = """
#include <stdint.h>
int tiny_run(uint8_t *arena);
"""
SUMS = """
#include "tiny.h"
static const int8_t weights[16] = {3, -1, 2, 7, -5, 4, 1, 0, 9, -8, 6, -2, 5, -4, 8, -7};
int tiny_run(uint8_t *arena)
{
    for (int i = 0; i < 16; ++i)
        arena[16 + i] = (uint8_t)((int8_t)arena[i] * weights[i] + i);
    return 0;
}
"""
WEIGHTS = np.array([3, -1, 2, 7, -5, 4, 1, 0, 9, -8, 6, -2, 5, -4, 8, -7])


@pytest.fixture
def tiny(tmp_path):
    def make(source: str, **changes: object) -> Subject:
        (tmp_path / "tiny.h").write_text(HEADER)
        (tmp_path / "tiny.c").write_text(source)
        subject = Subject(
            [tmp_path / "tiny.c"], tmp_path / "tiny.h", "tiny_run(arena)", str(ARENA), "16",
            [("arena", "16")], [("arena + 16", "16")],
        )  # fmt: skip
        return replace(subject, **changes)

    return make


def body(text: str, before: str = "") -> str:
    """A network that does only this."""
    return f'#include "tiny.h"\n{before}\nint tiny_run(uint8_t *arena)\n{{\n{text}\n}}\n'


def test_every_output_of_every_run_arrives(board, tiny, tmp_path):
    inputs = np.random.default_rng(0).integers(-128, 128, (5, 16))
    program = build(board, tiny(SUMS), tmp_path)
    report = run(program, inputs.astype(np.int8).tobytes())
    report.require_sound()
    assert report.runs == 5
    assert report.outputs == (inputs * WEIGHTS + np.arange(16)).astype(np.int8).tobytes()


def test_instructions_are_counted(board, tiny, tmp_path):
    turns = 50_000
    addi = f'int n = {turns}; __asm__ volatile("1: addi %0, %0, -1\\nbnez %0, 1b"'
    arm = f'int n = {turns}; __asm__ volatile(".syntax unified\\n1: subs %0, %0, #1\\nbne 1b"'
    is_arm = board.architecture == "cortex_m"
    loop = f'{arm} : "+l"(n) : : "cc");' if is_arm else f'{addi} : "+r"(n));'
    flags = ("-std=gnu99", "-O2")
    program = build(board, tiny(body(f"{loop} return arena[0];"), flags=flags), tmp_path)
    report = run(program, bytes(16))
    a_few_ticks = 3 * 1_000_000_000 // board.clock_hz + 60
    assert report.calibration == pytest.approx(CALIBRATION, abs=a_few_ticks)
    assert report.instructions == pytest.approx(2 * turns, abs=a_few_ticks)


def test_a_count_that_is_longer_than_the_counter_takes_the_step_hook(tiny, tmp_path):
    board = board_named("mps3-an547")
    turns = 150_000_000  # of two instructions; the counter wraps after 524 million
    loop = f'{{ int n = {turns}; __asm__ volatile("1: subs %0, %0, #1\\nbne 1b" : "+l"(n)); }}'
    source = body(f"{loop} STEP(0); {loop} return arena[0];", '#include "counter.h"')
    subject = tiny(source, defines={"STEP(i)": "counter_poll()"}, flags=("-std=gnu99", "-O2"))
    report = run(build(board, subject, tmp_path), bytes(16))
    assert report.instructions == pytest.approx(4 * turns, rel=1e-6)


def test_the_stack_is_measured(board, tiny, tmp_path):
    source = body(
        "volatile uint8_t scratch[600]; for (int i = 0; i < 600; ++i) scratch[i] = arena[i % 16];"
        "arena[16] = scratch[599]; return 0;"
    )
    deep = run(build(board, tiny(source), tmp_path), bytes(16))
    assert 600 <= deep.stack <= 600 + 48
    shallow = run(build(board, tiny(SUMS), tmp_path), bytes(16))
    assert shallow.stack <= 48


@pytest.mark.parametrize("used", ["0xA7", "0x59"])
def test_a_frame_that_is_full_of_the_paint_is_seen(tiny, tmp_path, used):
    source = body(f"volatile uint8_t s[400]; for (int i = 0; i < 400; ++i) s[i] = {used}; "
                  "arena[16] = s[7]; return 0;")  # fmt: skip
    report = run(build(board_named("mps2-an386"), tiny(source), tmp_path), bytes(32))
    assert report.stack >= 400


def test_variables_are_read_from_the_program(board, tiny, tmp_path):
    before = "static volatile uint32_t set[3] = {1, 2, 3}; static volatile uint8_t zero[20];"
    text = "arena[16] = zero[3] = (uint8_t)set[1]; return zero[4];"
    program = build(board, tiny(body(text, before)), tmp_path)
    found = footprint(program)
    assert (found.data, found.bss, found.variables) == (12, 20, 32)
    assert run(program, bytes(16)).runs == 1
    found = footprint(build(board, tiny(SUMS), tmp_path))
    assert (found.data, found.bss, found.variables, found.constants) == (0, 0, 0, 16)
    assert 20 <= found.text <= 120
    assert found.flash == found.text + found.constants + found.library


def test_what_a_library_takes_counts_as_flash(tiny, tmp_path):
    source = body("float x = arena[0]; arena[16] = (uint8_t)expf(x / arena[1]); return 0;",
                  "#include <math.h>")  # fmt: skip
    found = footprint(build(board_named("lm3s6965evb"), tiny(source), tmp_path))
    assert found.library > 500
    assert found.variables == 0
    assert found.data > 0, "the library's exponential keeps an error number"


@pytest.mark.parametrize("place", [-1, ARENA])
def test_a_byte_written_beside_the_arena_is_noticed(board, tiny, tmp_path, place):
    program = build(board, tiny(body(f"arena[{place}] ^= 1; return 0;")), tmp_path)
    report = run(program, bytes(16))
    assert report.canaries_harmed == 1
    with pytest.raises(BoardError, match="1 B round the arena were overwritten"):
        report.require_sound()


@pytest.mark.parametrize("name", ["microbit", "mps2-an386"])
def test_a_stack_that_overflows_is_noticed(tiny, tmp_path, name):
    board = board_named(name)
    deep = 16 * 1024 + 200 if name == "mps2-an386" else 16 * 1024 - 280
    source = body(f"volatile uint8_t s[{deep}]; for (int i = {deep}; i-- > 0;) s[i] = 1; "
                  "arena[16] = s[7]; return 0;")  # fmt: skip
    report = run(build(board, tiny(source), tmp_path), bytes(16))
    assert report.stack_overflowed
    with pytest.raises(BoardError, match="the stack overflowed: it has 16"):
        report.require_sound()


def test_an_arena_that_the_board_has_no_room_for_is_refused(tiny, tmp_path):
    subject = tiny(SUMS, arena_bytes=str(16 * 1024 - 300))
    with pytest.raises(BuildError, match=r"stack|region"):
        build(board_named("microbit"), subject, tmp_path)


def test_a_fault_is_told(board, tiny, tmp_path):
    trap = "__builtin_trap(); return arena[0];"
    with pytest.raises(BoardError, match="the processor took a fault"):
        run(build(board, tiny(body(trap)), tmp_path), bytes(16))


def test_a_run_that_fails_is_told(tiny, tmp_path):
    program = build(board_named("mps2-an386"), tiny(body("return arena[0];")), tmp_path)
    with pytest.raises(BoardError, match="says that it failed"):
        run(program, bytes([1] * 16))


def test_inputs_that_end_within_a_run_are_told(tiny, tmp_path):
    program = build(board_named("mps2-an386"), tiny(SUMS), tmp_path)
    with pytest.raises(BoardError, match="the inputs end within a run"):
        run(program, bytes(24))


def test_a_run_without_an_end_is_ended(tiny, tmp_path):
    program = build(board_named("mps2-an386"), tiny(body("for (;;) { arena[0] ^= 1; }")), tmp_path)
    with pytest.raises(BoardError, match="not done after"):
        run(program, bytes(16), time_limit_s=1)
