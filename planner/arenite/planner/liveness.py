"""From a graph with an order to the records to place.

A tensor lives from the step that writes it to the last that reads it, its storage as
long as any tensor that lies in it. An operator's inputs and outputs are live together.
"""

from enum import StrEnum

from arenite.planner.graph import Graph, TensorKind
from arenite.planner.names import Names
from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.units import align_up

DEFAULT_ALIGNMENT = 16


class Boundary(StrEnum):
    """Who owns the memory of graph inputs and outputs."""

    INCLUDE = "include"
    """The arena, from step 0 to the last read and from the write to the end."""
    EXCLUDE = "exclude"
    """The caller, as in the tables of Pisarchyk and Lee."""


def liveness(
    graph: Graph,
    *,
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int = DEFAULT_ALIGNMENT,
    capacity: int | None = None,
) -> Problem:
    """Return the usage records of `graph` as it is ordered.

    A storage takes its bytes rounded up to `alignment`, as runtimes reserve them.
    Constants and tensors without elements take none. Records are in order of first use,
    those of one step in order of mention.

    Args:
        graph: Its operators run in the order they stand.
        boundary: Whether graph inputs and outputs lie in the arena.
        alignment: Bytes, a power of two, of every offset.
        capacity: Bytes the arena may have.

    Cost: O(tensors + operator operands).
    Source: Pisarchyk and Lee, arXiv 2001.03288, section 3 (tensor usage records).
    """
    storages = _storages(graph)
    lifetimes = _lifetimes(graph, storages)
    left_out: set[str] = set()
    if boundary is Boundary.EXCLUDE:
        left_out = {storages[name] for name in (*graph.inputs, *graph.outputs)}
    members: dict[str, list[str]] = {}
    for name, storage in storages.items():
        members.setdefault(storage, []).append(name)
    records: list[UsageRecord] = []
    for storage, (start, end) in lifetimes.items():
        tensor = graph.tensors[storage]
        if tensor.kind is TensorKind.CONSTANT or tensor.size == 0 or storage in left_out:
            continue
        records.append(
            UsageRecord(
                name=storage,
                size=align_up(tensor.size, alignment),
                start=start,
                end=end,
                alignment=alignment,
                tensors=tuple(members[storage]),
                layout=(tensor.dtype.bits, *tensor.shape),
            )
        )
    names = Names(graph.tensors)
    for step, operator in enumerate(graph.operators):
        if operator.scratch:
            records.append(
                UsageRecord(
                    name=names.take(f"{operator.name}/scratch"),
                    size=align_up(operator.scratch, alignment),
                    start=step,
                    end=step + 1,
                    alignment=alignment,
                )
            )
    records.sort(key=lambda record: record.start)
    steps = tuple(operator.name for operator in graph.operators)
    return Problem.of(records, steps, capacity=capacity)


def _storages(graph: Graph) -> dict[str, str]:
    """Return for each tensor the one in whose storage it lies."""
    return {name: graph.root(name)[0] for name in graph.tensors}


def _lifetimes(graph: Graph, storages: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Return for each storage in use its half-open lifetime, in order of first mention."""
    num_steps = max(1, len(graph.operators))
    lifetimes: dict[str, tuple[int, int]] = {}

    def extend(name: str, start: int, end: int) -> None:
        storage = storages[name]
        old_start, old_end = lifetimes.get(storage, (start, end))
        lifetimes[storage] = (min(old_start, start), max(old_end, end))

    for name in graph.inputs:
        extend(name, 0, 1)
    for tensor in graph.tensors.values():
        if tensor.kind is TensorKind.STATE:
            extend(tensor.name, 0, num_steps)
    for step, operator in enumerate(graph.operators):
        for name in (*operator.reads, *operator.writes):
            extend(name, step, step + 1)
    for name in graph.outputs:
        extend(name, num_steps - 1, num_steps)
    return lifetimes
