"""Which storages each step of a program touches, and how long each lives.

Derivation, orders, bands and schedules go by this. What checks them (`verify`, `timing.check` and
the tests' oracle) derives lifetimes on its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from arenite.planner.programs.program import Program
from arenite.planner.tensors import TensorKind


class Lifetime(NamedTuple):
    """Steps during which a storage lives, half-open.

    Attributes:
        start: Index of the first step that touches it; -1 if it lives before all steps.
        end: Index after the last step that touches it; above the number of steps if it lives on.
    """

    start: int
    end: int

    def among(self, num_steps: int) -> "Lifetime":
        """Return the part of it in a run of so many steps, at least one step."""
        return Lifetime(max(0, self.start), max(1, min(self.end, num_steps)))


@dataclass(frozen=True, slots=True)
class Uses:
    """The storages of a program, constants aside.

    Attributes:
        reads: For each step the storages that it reads, in the order of its operands.
        writes: For each step the storages that it writes.
        given: Storages that live before the first step: inputs and states.
        kept: Storages that live after the last step: states and outputs.
        spans: First and last step of storages that live longer than steps touch them.
    """

    reads: tuple[tuple[str, ...], ...]
    writes: tuple[tuple[str, ...], ...]
    given: tuple[str, ...]
    kept: tuple[str, ...]
    spans: tuple[tuple[str, int, int], ...] = ()

    @classmethod
    def of(cls, program: Program, *, by_tensor: bool = False) -> Self:
        """Return the uses of a program in its order.

        Args:
            by_tensor: Whether each tensor counts on its own, whatever storage it lies in.

        Cost: O(tensors + operands of the steps).
        """
        owner_of: Mapping[str, str] = {
            name: name if by_tensor else program.root(name)[0] for name in program.tensors
        }

        def owners(names: Iterable[str]) -> tuple[str, ...]:
            owned = dict.fromkeys(owner_of[name] for name in names)
            kinds = program.tensors
            return tuple(each for each in owned if kinds[each].kind is not TensorKind.CONSTANT)

        states = [each.name for each in program.tensors.values() if each.kind is TensorKind.STATE]
        spans = program.numbered_spans()

        def without_span(names: Iterable[str]) -> Iterator[str]:
            return (name for name in names if name not in spans)

        return cls(
            tuple(owners(step.reads) for step in program.steps),
            tuple(owners(step.writes) for step in program.steps),
            owners((*without_span(program.input_tensors), *states)),
            owners((*states, *without_span(program.output_tensors))),
            tuple((owner, *span) for name, span in spans.items() for owner in owners((name,))),
        )

    def touched(self) -> Iterator[tuple[str, ...]]:
        """Yield for each step the storages that it reads or writes, each once."""
        for read, written in zip(self.reads, self.writes, strict=True):
            yield tuple(dict.fromkeys((*read, *written)))

    def lifetimes(self) -> dict[str, Lifetime]:
        """Return the lifetime of each storage, in order of first mention."""
        num_steps = len(self.reads)
        found = dict.fromkeys(self.given, Lifetime(-1, 0))
        for number, storages in enumerate(self.touched()):
            for each in storages:
                start = found[each].start if each in found else number
                found[each] = Lifetime(start, number + 1)
        for each, first, last in self.spans:
            own = found.get(each, Lifetime(first, last + 1))
            found[each] = Lifetime(min(own.start, first), max(own.end, last + 1))
        for each in self.kept:
            start = found[each].start if each in found else num_steps - 1
            found[each] = Lifetime(start, num_steps + 1)
        return found
