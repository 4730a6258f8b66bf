"""What ExecuTorch plans, as usage records.

Nothing here imports ExecuTorch: a tensor specification is known by the fields that it has.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from arenite.planner.errors import UnsupportedModelError
from arenite.planner.problem import UsageRecord


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
class Storage:
    """Tensors that lie in the same place, as one record.

    Attributes:
        record: What is placed; None if it has no bytes.
        specs: Whose place it is, each with the byte of it that it starts at.
        mem_id: The memory that somebody has chosen before; None if it is open.
    """

    record: UsageRecord | None
    specs: tuple[tuple[TensorSpec, int], ...]
    mem_id: int | None


def storages(specs: Iterable[TensorSpec], alignment: int, graph: Any) -> list[Storage]:
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
                names[id(spec)], "it lies inside a tensor that ExecuTorch does not plan"
            )
        if inner % alignment:
            raise UnsupportedModelError(
                names[id(spec)],
                f"it begins {inner} B inside another tensor, a multiple of {alignment} expected",
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


def _storage(name: str, specs: list[tuple[TensorSpec, int]], alignment: int) -> Storage:
    size = max(inner + spec.realign(alignment) for spec, inner in specs)
    chosen = [spec.mem_id for spec, _ in specs if spec.mem_id is not None]
    mem_id = min(chosen, default=None)
    if size == 0:
        return Storage(None, tuple(specs), mem_id)
    record = UsageRecord(
        name,
        size,
        min(spec.lifetime[0] for spec, _ in specs),
        # ExecuTorch counts the last node that refers to a tensor among those of its life.
        max(spec.lifetime[1] for spec, _ in specs) + 1,
        alignment,
    )
    return Storage(record, tuple(specs), mem_id)


def _position(storage: Storage) -> tuple[int, int, int, str]:
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
