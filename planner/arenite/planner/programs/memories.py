"""Records in several memories: costs of access, and which record is where."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arenite.planner.errors import ModelError
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.programs.program import Program
from arenite.planner.tensors import Memory


@dataclass(frozen=True, slots=True)
class CostedMemory:
    """A memory and the costs of its bytes, relative to those of other memories.

    Attributes:
        read: Cost of reading a byte.
        write: Cost of writing a byte.

    Raises:
        ModelError: A cost is below 0 or not finite.
    """

    memory: Memory
    read: float = 1.0
    write: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.read < math.inf and 0 <= self.write < math.inf):
            raise ModelError(
                f"memory {self.memory.name!r}: a byte costs {self.read:g} to read and "
                f"{self.write:g} to write; finite numbers that are not below 0 expected"
            )


def costed(
    stated: Iterable[tuple[Memory, float | None, float | None]],
) -> tuple[CostedMemory, ...]:
    """Return memories; a byte costs 1 in the first, 2 in the second and so on, unless stated.

    Args:
        stated: Each memory, and the costs of reading and writing a byte if they are known.
    """
    return tuple(
        CostedMemory(memory, *(position if cost is None else cost for cost in costs))
        for position, (memory, *costs) in enumerate(stated, 1)
    )


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of a record that the steps of one run read and write."""

    read: int
    written: int

    def cost_in(self, memory: CostedMemory) -> float:
        """Return the cost of the traffic in a memory."""
        return self.read * memory.read + self.written * memory.write


def traffic_of(problem: Problem, program: Program | None) -> tuple[Traffic, ...]:
    """Return the traffic of each record.

    A step reads and writes each of its tensors once, whole; scratch it writes once and reads
    once. So it is with records of which no program is known.

    Args:
        program: Program of the records; None for records alone.
    """
    if program is None:
        return tuple(Traffic(record.size, record.size) for record in problem.records)
    read = dict.fromkeys(program.tensors, 0)
    written = dict(read)
    for step in program.steps:
        for name in step.reads:
            read[name] += program.tensors[name].size
        for name in step.writes:
            written[name] += program.tensors[name].size
    return tuple(
        Traffic(sum(map(read.__getitem__, names)), sum(map(written.__getitem__, names)))
        if (names := [name for name in record.tensors if name in read])
        else Traffic(record.size, record.size)
        for record in problem.records
    )


def cost_of(
    problem: Problem, memories: Sequence[CostedMemory], traffic: Sequence[Traffic]
) -> float:
    """Return the cost of reading and writing all records where they lie."""
    by_name = {each.memory.name: each for each in memories}
    return sum(
        each.cost_in(by_name[record.memory])
        for each, record in zip(traffic, problem.records, strict=True)
    )


def excess_of(
    problem: Problem, memories: Sequence[CostedMemory], traffic: Sequence[Traffic]
) -> float:
    """Return the cost of reading and writing beyond 1 a byte, at least 0 for each."""
    beyond = [
        replace(each, read=max(0.0, each.read - 1), write=max(0.0, each.write - 1))
        for each in memories
    ]
    return cost_of(problem, beyond, traffic)


def assigned(
    problem: Problem, memories: Sequence[Memory], memory_of: Mapping[str, str]
) -> Problem:
    """Return the problem with its records in these memories.

    Records of different memories overlap no more; each is aligned to no less than its memory.

    Args:
        memory_of: Name of each record's memory, by the record's name.

    Raises:
        ModelError: A record is left out, or its memory is unknown.
    """
    by_name = {memory.name: memory for memory in memories}
    for record in problem.records:
        if memory_of.get(record.name) not in by_name:
            raise ModelError(f"record {record.name!r} is assigned to an unknown memory")
    held: dict[str, set[str]] = {name: set() for name in by_name}
    for record in problem.records:
        held[memory_of[record.name]].add(record.name)
    records = (
        in_memory(record, by_name[memory_of[record.name]], held[memory_of[record.name]])
        for record in problem.records
    )
    return Problem(tuple(records), problem.steps, tuple(memories))


def in_memory(record: UsageRecord, memory: Memory, held: Container[str]) -> UsageRecord:
    """Return a record as it lies in a memory.

    Args:
        held: Names of the records there, which it may overlap.
    """
    return replace(
        record,
        memory=memory.name,
        alignment=max(record.alignment, memory.alignment),
        overlaps=tuple(each for each in record.overlaps if each.record in held),
    )


def in_memories(program: Program, problem: Problem) -> Program:
    """Return a program whose tensors lie where the records say; others lie in the first memory."""
    memory_of = {name: record.memory for record in problem.records for name in record.tensors}
    first = problem.memories[0].name
    tensors = {
        name: replace(tensor, memory=memory_of.get(name, first))
        for name, tensor in program.tensors.items()
    }
    return replace(program, tensors=tensors, memories=problem.memories)
