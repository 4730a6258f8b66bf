"""Estimated cycles of inferences on Cortex-M boards, from blocks of instructions that QEMU ran.

Of a Cortex-M4 the technical reference manual states the cycles of every instruction, and the sum
of them is the estimate. Of a Cortex-M7 and M55 no such table is published: `llvm-mca` has models
of them, and gives the cycles of each block that runs again and again; dual issue, latencies and
the beats of vectors are in it. Memory answers at once: flash and RAM have no wait states and
caches always hit. Taken branches are counted in QEMU, and each adds what `REFILL` states.
"""

import bisect
import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from typing import Final

from bench.arm.code import cycles_of, listing
from bench.arm.tools import compiled
from bench.boards.program import Program
from bench.boards.run import run
from bench.harness.inputs import CHECKOUT

REFILL: Final[Mapping[str, int]] = {"Cortex-M4": 2, "Cortex-M7": 0, "Cortex-M55": 2}
"""Cycles of a taken branch beyond its own. The Cortex-M4's manual states 1 to 3; a Cortex-M7
predicts branches; of the Cortex-M55 no figure is published, its low-overhead loops take none."""
_ARCHITECTURE: Final = {
    "Cortex-M4": "thumbv7em", "Cortex-M7": "thumbv7em", "Cortex-M55": "thumbv8.1m.main",
}  # fmt: skip
_ESTIMATED: Final = 0.95
"""Share of the instructions that `llvm-mca` estimates; the rest takes as many cycles for each."""
_LOOP_END: Final = 0xF00F
"""The first half of the instruction LE, which closes a low-overhead loop."""

_MEMORY: Final = re.compile(r"(v?)(ldr|str)")
_MULTIPLE: Final = re.compile(r"(?:v?ldm|v?stm|v?push|v?pop)")
_SLOW: Final = re.compile(r"(?:(vdiv|vsqrt)|(v(?:n?ml[as]|fn?m[as]))|([su]div)|(tb[bh]))")
_SLOW_CYCLES: Final = (14, 3, 12, 2)


def cycles_of_m4(instructions: Sequence[str]) -> int:
    """Return the cycles of instructions of a Cortex-M4 that run one after the other.

    Source: Arm Cortex-M4 technical reference manual, tables 3-1 and 7-1. All take one but these:
    a load 2, or 1 where another load or store follows; a store with an offset of registers 2;
    pairs 3; several registers 1 and one for each; VMLA and the like 3, VDIV and VSQRT 14, TBB 2,
    a division 2 to 12, here 12. What a branch adds is no part of it.
    """
    spent = 0
    for text, after in pairwise([*instructions, "nop"]):
        name, _, operands = text.strip().partition("\t")
        follows = _MEMORY.match(after.strip()) is not None
        if _MULTIPLE.match(name):
            spent += 1 + _num_registers(operands)
        elif found := _MEMORY.match(name):
            if name.startswith(("ldrd", "strd")):
                spent += 3
            elif found[2] == "ldr" or found[1]:
                spent += 1 if follows else 2
            else:
                spent += 2 if re.search(r"\[\w+, r", operands) else 1
        elif slow := _SLOW.match(name):
            spent += next(c for c, each in zip(_SLOW_CYCLES, slow.groups(), strict=True) if each)
        else:
            spent += 1
    return spent


def _num_registers(operands: str) -> int:
    """Return the length of a list such as `{r4, r5, lr}` or `{d8-d15}`."""
    listed = operands.partition("{")[2].partition("}")[0]
    count = 0
    for each in filter(None, listed.split(",")):
        numbers = [int(re.sub(r"\D", "", end) or 0) for end in each.split("-")]
        count += numbers[-1] - numbers[0] + 1
    return max(count, 1)


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that run one after the other.

    Attributes:
        function: Its name.
        code: The bytes.
        instructions: Their number.
        runs: How often it ran.
        jumps: How often another block than the one behind it came next.
    """

    function: str
    code: bytes
    instructions: int
    runs: int
    jumps: int


@dataclass(frozen=True, slots=True)
class Executed:
    """What the code of a model did on a board.

    Attributes:
        processor: The board's.
        num_runs: Inferences.
        blocks: All blocks of the model and of the compiler's libraries.
    """

    processor: str
    num_runs: int
    blocks: tuple[Block, ...]

    @property
    def instructions(self) -> int:
        """Instructions of an inference."""
        return sum(each.instructions * each.runs for each in self.blocks) // self.num_runs

    @property
    def jumps(self) -> int:
        """Taken branches of an inference that refill the pipeline."""
        return sum(each.jumps for each in self.blocks if _refills(each)) // self.num_runs

    def cycles(self) -> Counter[str]:
        """Return the estimated cycles of an inference by function.

        Raises:
            MissingInputsError: LLVM is not installed.
        """
        spent: Counter[str] = Counter()
        for each, cycles in self._estimates():
            jumps = each.jumps * _refills(each) * REFILL[self.processor]
            spent[each.function] += round(each.runs * cycles) + jumps
        return Counter({name: number // self.num_runs for name, number in spent.items()})

    def _estimates(self) -> list[tuple[Block, float]]:
        """Return all blocks, and the cycles of a run of each."""
        arch, processor = _ARCHITECTURE[self.processor], self.processor.lower()
        if self.processor == "Cortex-M4":
            return [
                (each, cycles_of_m4(listing(each.code, arch, processor).splitlines()))
                for each in self.blocks
            ]
        order = sorted(self.blocks, key=lambda each: -each.instructions * each.runs)
        sums = list(accumulate(each.instructions * each.runs for each in order))
        enough = sums[-1] * _ESTIMATED
        count = 1 + sum(1 for _ in takewhile(lambda each: each < enough, sums))
        hot, rest = order[:count], order[count:]
        codes = tuple(each.code for each in hot)
        found = cycles_of(codes, arch, processor, ("--call-latency=1",))  # of itself it has 100
        spent = sum(each.runs * cycles for each, cycles in zip(hot, found, strict=True))
        of_one = spent / sums[count - 1]
        return [
            *zip(hot, found, strict=True), *((each, each.instructions * of_one) for each in rest)
        ]  # fmt: skip


def _refills(block: Block) -> bool:
    """Tell whether what ends a block is no low-overhead loop."""
    return block.code[-4:-2] != _LOOP_END.to_bytes(2, "little")


@cache
def _plugin() -> Path:
    source = Path(__file__).parent / "host" / "blocks.c"
    made = CHECKOUT / "build" / "boards" / "blocks.so"
    return compiled(made, ["cc", "-O2", "-shared", "-fPIC", source])


def executed(program: Program, inputs: bytes) -> Executed:
    """Run a model and return what its code did, the board's own code left out.

    Raises:
        BoardError: It did not come to its end.
        MissingInputsError: QEMU loads no plugins, or there is no compiler.
    """
    written = program.path.with_suffix(".blocks")
    report = run(program, inputs, options=("-plugin", f"{_plugin()},out={written}"))
    own = {
        name
        for each in program.path.parent.glob("board_*.o")
        for _, name in _symbols(program, each)
    }
    symbols = sorted(_symbols(program, program.path))
    starts = [at for at, _ in symbols]
    blocks = []
    for line in written.read_text(encoding="ascii").splitlines():
        place, instructions, runs, jumps, code = line.split()
        index = bisect.bisect_right(starts, int(place, 16)) - 1
        name = symbols[index][1] if index >= 0 else ""
        if name and name not in own:
            blocks.append(
                Block(name, bytes.fromhex(code), int(instructions), int(runs), int(jumps))
            )
    return Executed(program.board.processor, report.runs, tuple(blocks))


def _symbols(program: Program, path: Path) -> list[tuple[int, str]]:
    """Return the addresses and names of the functions of a file."""
    listed = subprocess.run(
        [f"{program.board.tools}nm", "--defined-only", path],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = (line.split() for line in listed.splitlines())
    return [
        (int(at, 16) & ~1, name) for at, kind, name in rows if kind in "TtWw" and "$" not in name
    ]
