"""Systems: several models in one program, and the orders in which they may run.

The steps of the models stand one after another. A section says which other orders there are::

    sequence    its parts one after another
    maybe       the same, or none of them
    repeat      the same, any number of times
    any_order   its parts one after another in any order
    at_once     its parts at the same time: on threads, or in turns of some steps each
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class SectionKind(StrEnum):
    """How the parts of a section run."""

    SEQUENCE = "sequence"
    MAYBE = "maybe"
    REPEAT = "repeat"
    ANY_ORDER = "any_order"
    AT_ONCE = "at_once"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a schedule.

    Attributes:
        kind: How its parts run.
        parts: Names of stages, and sections, in the order of the program.
    """

    kind: SectionKind
    parts: "tuple[Part, ...]"

    def __str__(self) -> str:
        """Return it in words: `sequence (a, repeat (b))`."""
        return f"{self.kind} ({', '.join(map(str, self.parts))})"

    def stages(self) -> Iterator[str]:
        """Yield the names of its stages, in the order of the program."""
        for part in self.parts:
            if isinstance(part, str):
                yield part
            else:
                yield from part.stages()

    def sections(self) -> "Iterator[Section]":
        """Yield this section and all in it, each before its parts."""
        yield self
        for part in self.parts:
            if isinstance(part, Section):
                yield from part.sections()


Part: TypeAlias = str | Section


@dataclass(frozen=True, slots=True)
class Stage:
    """A model of a system: some steps of the program, inputs and outputs of its own.

    Attributes:
        name: Unique in the system.
        num_steps: Number of its steps, after those of the stages before it.
        num_inputs: Number of its inputs among those of the program, in the same order.
        num_outputs: Number of its outputs.
        reads: Names of outputs of earlier stages that it reads, where they lie.
        keeps: Names of its outputs that stay until the schedule ends.
    """

    name: str
    num_steps: int
    num_inputs: int
    num_outputs: int
    reads: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """The models of a program and their schedule.

    Attributes:
        stages: In the order of their steps.
        schedule: Names each stage once, in the same order.
    """

    stages: tuple[Stage, ...]
    schedule: Section
