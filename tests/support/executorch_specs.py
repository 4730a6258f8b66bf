"""Stand-ins for what ExecuTorch hands to a planner, so that its package is not needed."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from arenite.planner.units import align_up


@dataclass(eq=False)
class Spec:
    """A tensor specification: as its counterpart, equal to itself alone."""

    nbytes: int
    lifetime: list[int]
    mem_id: int | None = None
    storage_base: "Spec | None" = None
    storage_base_offset: int = 0
    mem_obj_id: int | None = None
    mem_offset: int | None = None
    alignment: int = 16
    device: Any = None

    def realign(self, new_alignment: int) -> int:
        """Set the alignment and return the bytes, rounded up."""
        self.alignment = new_alignment
        return self.allocated_memory

    @property
    def allocated_memory(self) -> int:
        """Bytes, rounded up."""
        return align_up(self.nbytes, self.alignment)


@dataclass(frozen=True)
class Bank:
    """A memory of a device."""

    name: str
    size: int
    mem_id: int
    alignment: int | None = None


@dataclass
class GraphModule:
    """A graph of one node for each specification."""

    specs: list[Spec]
    input_mem_buffer_sizes: list[int] = field(default_factory=list)

    @property
    def graph(self) -> Any:
        """The graph, as far as its nodes have names and specifications."""
        nodes = [
            SimpleNamespace(name=f"node_{index}", meta={"spec": spec})
            for index, spec in enumerate(self.specs)
        ]
        return SimpleNamespace(nodes=nodes)


def overlapping(specs: list[Spec]) -> list[tuple[Spec, Spec]]:
    """Return the pairs that share bytes at a node, by ExecuTorch's closed lifetimes."""
    return [
        (one, other)
        for index, one in enumerate(specs)
        for other in specs[index + 1 :]
        if one.mem_id == other.mem_id
        and max(one.lifetime[0], other.lifetime[0]) <= min(one.lifetime[1], other.lifetime[1])
        and one.mem_offset is not None
        and other.mem_offset is not None
        and max(one.mem_offset, other.mem_offset)
        < min(one.mem_offset + one.allocated_memory, other.mem_offset + other.allocated_memory)
    ]
