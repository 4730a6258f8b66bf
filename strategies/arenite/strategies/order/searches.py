"""Orders found by search over the sets of executed operators.

The load between two steps follows from the set of operators executed so far, whatever
their order, so of all orders of one set only the one with the least peak matters.
"""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import Order, Program, Rules, ShouldStop
from arenite.planner.programs import never
from arenite.strategies.order.memory_graph import UNLIMITED, MemoryGraph

DEFAULT_MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class GreedyByMemory:
    """Run whichever ready operator leaves the least peak, then the least load."""

    name: ClassVar[str] = "greedy"
    complexity: ClassVar[str] = "O(n x ready)"
    source: ClassVar[str] = "beam of width 1"

    def __call__(self, program: Program, rules: Rules) -> Order:
        return Beam(width=1)(program, rules)


@dataclass(frozen=True, slots=True)
class Beam:
    """Keep the sets of executed operators with the least peak, then load.

    Attributes:
        width: Sets kept at each step.
        max_bytes: Memory for the tables of sets; fewer sets are kept if it is short.
        max_work: Words of sets that may be touched, a few nanoseconds each; the remaining steps
            run in the program's order or depth first.
    """

    name: ClassVar[str] = "beam"
    complexity: ClassVar[str] = "O(n x width x ready)"
    source: ClassVar[str] = (
        "beam over downsets, after SERENITY (Ahn et al. 2020), arXiv 2003.02369"
    )

    width: int = 200
    max_bytes: int = DEFAULT_MAX_BYTES
    max_work: int = UNLIMITED

    def __call__(self, program: Program, rules: Rules) -> Order:
        return self.search(program, rules, never)

    def search(self, program: Program, rules: Rules, should_stop: ShouldStop) -> Order:
        return self.of(MemoryGraph.of(program, rules), should_stop)

    def of(self, memory: MemoryGraph, should_stop: ShouldStop) -> Order:
        result = memory.beam(self.width, self.max_bytes, should_stop, self.max_work)
        return memory.order(result.order, proved=result.optimal)


@dataclass(frozen=True, slots=True)
class OptimalOrder:
    """Prove the least peak by dynamic programming over downsets.

    A beam finds an order first; the exact search then visits only sets that an order with
    a lower peak could pass through. Operators that raise neither peak nor load run at
    once, so chains cost nothing. If the limit of sets or memory is reached, the proof is given
    up and wider beams look for a lower peak. When stopped, it returns the best order so far. The
    search is limited by counts, not by time: unless stopped, it gives the same order for the
    same program.

    Attributes:
        width: Sets that the first beam keeps at each step.
        widened: Widths of the beams that follow if the exact search gives up.
        max_kept: Operators times width beyond which a wider beam is not tried.
        max_states: Sets the exact search may visit before it gives up the proof.
        max_bytes: Memory for the tables of sets; without room for more the exact search gives
            up the proof, and a beam keeps fewer sets.
    """

    name: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "exponential in the graph's width, at most O(max_states x ready)"
    source: ClassVar[str] = (
        "SERENITY (Ahn et al. 2020), arXiv 2003.02369, section 3; bound and safe moves ours"
    )

    width: int = 200
    widened: tuple[int, ...] = (2_000, 8_000)
    max_kept: int = 4_000_000
    max_states: int = 2_000_000
    max_bytes: int = DEFAULT_MAX_BYTES

    def __call__(self, program: Program, rules: Rules) -> Order:
        return self.search(program, rules, never)

    def search(self, program: Program, rules: Rules, should_stop: ShouldStop) -> Order:
        memory = MemoryGraph.of(program, rules)
        result = memory.beam(self.width, self.max_bytes, should_stop)
        given = memory.given()
        if given.peak < result.peak:
            result = given
        if not memory.is_proved(result):
            result = memory.exact(result, self.max_states, self.max_bytes, should_stop)
        for width in self.widened:
            fits = width * len(memory.names) <= self.max_kept
            if memory.is_proved(result) or not fits or should_stop():
                break
            wider = memory.beam(width, self.max_bytes, should_stop)
            if wider.peak < result.peak or wider.optimal:
                result = wider
        return memory.order(result.order, proved=memory.is_proved(result))
