"""An algorithm for ExecuTorch's `MemoryPlanningPass` that places by a strategy of ours.

Nothing here imports ExecuTorch: a tensor specification is known by its fields.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

from arenite.planner import Memory, Plan, Problem, Strategy, UsageRecord, verify
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.placement import run
from arenite.planner.programs import CostedMemory, Traffic, traffic_of
from arenite.planner.units import align_up


class TensorSpec(Protocol):
    """The fields of `executorch.exir.tensor.TensorSpec` that a plan reads and writes.

    Attributes:
        lifetime: First and last node that refers to the tensor, both included.
        mem_id: Number of the memory, from 1; None until it is decided.
        mem_obj_id: Number of a shared object, for those who plan by objects.
        mem_offset: First byte in the memory.
        storage_base: The tensor that it lies inside, such as the operand that it is computed over.
        storage_base_offset: The byte of that tensor where it begins.
    """

    lifetime: list[int]
    mem_id: int | None
    mem_obj_id: int | None
    mem_offset: int | None
    storage_base: "TensorSpec | None"
    storage_base_offset: int

    def realign(self, new_alignment: int) -> int:
        """Set the alignment and return the bytes, rounded up to a multiple of it."""
        ...


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """Tensors that lie in the same place, as one record.

    Attributes:
        record: The record to place; None if it has no bytes.
        specs: Specifications of its tensors, each with its first byte in the record.
        mem_id: The memory that was chosen before; None if none was.
    """

    record: UsageRecord | None
    specs: tuple[tuple[TensorSpec, int], ...]
    mem_id: int | None


def storages(specs: Iterable[TensorSpec], alignment: int, graph: Any) -> list[TensorGroup]:
    """Return the storages that ExecuTorch wants placed, the earliest first.

    A tensor inside another (`storage_base`) shares the other's place,
    which then lives as long as either.

    Args:
        specs: One for each tensor; each is realigned, as the pass expects.
        alignment: Alignment of every offset.
        graph: The `torch.fx.Graph` that the specifications are of, for names.

    Raises:
        UnsupportedModelError: A tensor lies inside one that is not planned, or where the alignment
            does not allow it.
    """
    chosen = list(specs)
    names = {id(spec): f"tensor {index}" for index, spec in enumerate(chosen)}
    names |= dict(_names(graph))
    planned = {id(spec) for spec in chosen}
    groups: dict[int, list[tuple[TensorSpec, int]]] = {}
    for spec in chosen:
        root, inner = _root(spec)
        if id(root) not in planned:
            raise UnsupportedModelError(
                names[id(spec)], "is inside a tensor that ExecuTorch does not plan"
            )
        if inner % alignment:
            raise UnsupportedModelError(
                names[id(spec)],
                f"begins {inner} B inside another tensor, expected a multiple of {alignment}",
            )
        groups.setdefault(id(root), []).append((spec, inner))
    found = [_storage(names[root], group, alignment) for root, group in groups.items()]
    return sorted(found, key=_position)


def _root(spec: TensorSpec) -> tuple[TensorSpec, int]:
    """Return the tensor whose storage it is, and the byte of it where this one begins."""
    inner = 0
    while spec.storage_base is not None:
        inner += spec.storage_base_offset
        spec = spec.storage_base
    return spec, inner


def _storage(name: str, specs: list[tuple[TensorSpec, int]], alignment: int) -> TensorGroup:
    size = max(inner + spec.realign(alignment) for spec, inner in specs)
    chosen = [spec.mem_id for spec, _ in specs if spec.mem_id is not None]
    mem_id = min(chosen, default=None)
    if size == 0:
        return TensorGroup(None, tuple(specs), mem_id)
    record = UsageRecord(
        name,
        size,
        min(spec.lifetime[0] for spec, _ in specs),
        # ExecuTorch counts the last node that refers to a tensor among those of its life.
        max(spec.lifetime[1] for spec, _ in specs) + 1,
        alignment,
    )
    return TensorGroup(record, tuple(specs), mem_id)


def _position(storage: TensorGroup) -> tuple[int, int, int, str]:
    record = storage.record
    if record is None:
        return (0, 0, 0, "")
    return (record.start, record.end, -record.size, record.name)


def _names(graph: Any) -> Iterator[tuple[int, str]]:
    """Yield each specification's identity with the name of the first node that has it."""
    seen: set[int] = set()
    for node in graph.nodes:
        found = node.meta.get("spec")
        specs = found if isinstance(found, list | tuple) else [found]
        for index, spec in enumerate(specs):
            if spec is not None and id(spec) not in seen:
                seen.add(id(spec))
                yield id(spec), node.name if len(specs) == 1 else f"{node.name}:{index}"


logger = logging.getLogger(__name__)

OnPlan: TypeAlias = Callable[[Problem, Plan], None]


class Bank(Protocol):
    """The fields of `executorch.exir.banked_memory_planning.Bank`: one memory of a device.

    Attributes:
        name: Unique among the banks.
        size: Bytes that the model may have of it.
        mem_id: ExecuTorch's number of the memory, at least 1.
        alignment: Alignment of its offsets; None for that of the graph.
    """

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def mem_id(self) -> int: ...
    @property
    def alignment(self) -> int | None: ...


class Placed(Protocol):
    """Records in several memories, and where they lie there."""

    @property
    def problem(self) -> Problem: ...
    @property
    def plan(self) -> Plan: ...


class SpreadRecords(Protocol):
    """Assigns records to memories: `arenite.strategies.memories.spread`."""

    def __call__(
        self,
        problem: Problem,
        memories: Sequence[CostedMemory],
        traffic: Sequence[Traffic],
        place: Callable[[Problem], Plan],
        pinned: Mapping[str, str] | None = None,
    ) -> Placed: ...


@dataclass(frozen=True, slots=True)
class MemoryPlanning:
    """The algorithm that `MemoryPlanningPass` calls once for each graph.

    Attributes:
        strategy: Places the tensors of one memory.
        banks: Memories to spread the tensors over, the most wanted first; () for one of any size.
        spread: Assigns the tensors to banks; None without banks.
        on_plan: Called with each problem and its plan.
    """

    strategy: Strategy
    banks: tuple[Bank, ...] = ()
    spread: SpreadRecords | None = None
    on_plan: OnPlan | None = None

    def __call__(
        self,
        alignment: int,
        specs: Iterable[TensorSpec],
        graph_module: Any,
        graph_signature: Any = None,
        extra_padding: int = 0,
    ) -> list[int]:
        """Give each specification its memory and its offset there; return the sizes of all.

        Args:
            alignment: Alignment of every offset, in bytes.
            specs: The tensors to place, with their lifetimes.
            graph_module: The `torch.fx.GraphModule` that they are of.
            graph_signature: Not looked at.
            extra_padding: Bytes that each memory gets on top: XNNPACK reads past its tensors.

        Returns:
            Bytes of each memory by its number, 0 for the constants.

        Raises:
            PlanError: The tensors do not fit, or the strategy fails.
            UnsupportedModelError: A tensor is where no plan of ours may put it.
        """
        alignment = max([alignment, *(bank.alignment or 1 for bank in self.banks)])
        # What branches and loops take of each memory stays theirs throughout: their results lie
        # there, and are handed on without a copy.
        inner = getattr(graph_module, "input_mem_buffer_sizes", None) or []
        bases = {number: align_up(size, alignment) for number, size in enumerate(inner) if size}
        found = storages(specs, alignment, graph_module.graph)
        if self.banks:
            _check_processor(found)
        steps = tuple(node.name for node in graph_module.graph.nodes)
        numbers = self._numbers(each.mem_id for each in found)
        taken = {name: bases.get(number, 0) + extra_padding for name, number in numbers.items()}
        problem, plan = self._planned(found, numbers, taken, steps)
        verify(problem, plan)
        heights = dict(zip(numbers.values(), plan.heights, strict=True))
        logger.info("%s: %s B by number of the memory", plan.strategy, heights)
        if self.on_plan is not None:
            self.on_plan(problem, plan)
        places = {
            record.name: (numbers[record.memory], offset)
            for record, offset in zip(problem.records, plan.offsets, strict=True)
        }
        for storage in found:
            _write(storage, places, bases)
        in_use = {number for number, height in heights.items() if height} | bases.keys()
        return [0] + [
            bases.get(number, 0) + heights.get(number, 0) + extra_padding
            if number in in_use
            else 0
            for number in range(1, max(in_use, default=1) + 1)
        ]

    def _numbers(self, chosen: Iterable[int | None]) -> dict[str, int]:
        """Return ExecuTorch's number of each memory by its name, the banks first."""
        numbers = {bank.name: bank.mem_id for bank in self.banks}
        others = {number for number in chosen if number is not None} - {*numbers.values()}
        if not numbers:
            others.add(1)
        return numbers | {f"memory {number}": number for number in sorted(others)}

    def _planned(
        self,
        found: Sequence[TensorGroup],
        numbers: Mapping[str, int],
        taken: Mapping[str, int],
        steps: tuple[str, ...],
    ) -> tuple[Problem, Plan]:
        """Return the records, each in a memory, and their plan.

        Args:
            found: Groups of tensors to place.
            numbers: The memories by name, the banks first.
            taken: By the name of a memory the bytes of it that are not to be had.
            steps: Names of the nodes.
        """
        names = {number: name for name, number in numbers.items()}
        homes = {
            each.record.name: names[each.mem_id]
            for each in found
            if each.record is not None and each.mem_id is not None
        }
        records = [each.record for each in found if each.record is not None]
        banks = [Memory(bank.name, max(bank.size - taken[bank.name], 0)) for bank in self.banks]
        memories = (*banks, *(Memory(name) for name in list(numbers)[len(banks) :]))
        if self.spread is None:
            problem = _problem(records, homes, steps, memories)
            return problem, run(self.strategy, problem)
        declared = {bank.name for bank in banks}
        inside = [each for each in records if homes.get(each.name, banks[0].name) in declared]
        offsets: dict[str, int] = {}
        # What counts is the bytes in the better memory; how much better it is does not matter.
        costed = [CostedMemory(bank, rank, rank) for rank, bank in enumerate(banks, 1)]
        unplaced = Problem.of(inside)
        placed = self.spread(
            unplaced, costed, traffic_of(unplaced, None), partial(run, self.strategy), homes
        )
        for record, offset in zip(placed.problem.records, placed.plan.offsets, strict=True):
            homes[record.name] = record.memory
            offsets[record.name] = offset
        problem = _problem(records, homes, steps, memories)
        for part in problem.by_memory()[len(banks) :]:
            plan = run(self.strategy, part)
            offsets |= zip((each.name for each in part.records), plan.offsets, strict=True)
        chosen = tuple(offsets[record.name] for record in problem.records)
        return problem, Plan.of(problem, chosen, self.strategy.name)


def _problem(
    records: Iterable[UsageRecord],
    homes: Mapping[str, str],
    steps: tuple[str, ...],
    memories: tuple[Memory, ...],
) -> Problem:
    home = memories[0].name
    placed = (replace(each, memory=homes.get(each.name, home)) for each in records)
    return Problem(tuple(placed), steps, memories)


def _check_processor(found: Iterable[TensorGroup]) -> None:
    """Return if all tensors are in memory of the processor, as banks are.

    Raises:
        UnsupportedModelError: Something lies in that of another device.
    """
    for storage in found:
        for spec, _ in storage.specs:
            device = getattr(getattr(spec, "device", None), "name", "CPU")
            if device != "CPU" and storage.record is not None:
                raise UnsupportedModelError(
                    storage.record.name,
                    f"is on {device}; banks are supported for the processor only",
                )


def _write(
    storage: TensorGroup, places: Mapping[str, tuple[int, int]], bases: Mapping[int, int]
) -> None:
    """Set the place of each specification of a storage."""
    number, offset = (storage.mem_id or 1, 0)
    if storage.record is not None:
        number, offset = places[storage.record.name]
    for spec, inner in storage.specs:
        spec.mem_id = number
        spec.mem_offset = bases.get(number, 0) + offset + inner
        spec.mem_obj_id = None


def memory_planning(
    strategy: Strategy,
    *,
    banks: Iterable[Bank] = (),
    spread: SpreadRecords | None = None,
    on_plan: OnPlan | None = None,
) -> MemoryPlanning:
    """Return a `memory_planning_algo` for ExecuTorch's `MemoryPlanningPass`.

    Example::

        MemoryPlanningPass(memory_planning_algo=memory_planning(find("best")))

    A tensor whose `mem_id` is chosen before stays in that memory, be it a bank or another. Nothing
    else goes to a memory that is no bank.

    Args:
        strategy: Places the tensors, such as `arenite.strategies.find("best")`.
        banks: Memories of the device as ExecuTorch's `Bank`s, the fastest first.
        spread: Assigns the tensors to banks, such as `arenite.strategies.memories.spread`.
        on_plan: Called with the problem and the plan of each graph, lower bound and all.

    Raises:
        ValueError: Only one of `banks` and `spread` is given.
    """
    known = tuple(banks)
    if bool(known) != (spread is not None):
        raise ValueError("give both `banks` and `spread`, or neither")
    return MemoryPlanning(strategy, known, spread, on_plan)
