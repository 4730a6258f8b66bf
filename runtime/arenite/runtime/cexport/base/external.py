"""Weights outside addressable flash: where each lies there, and the calls that fetch them."""

import re
from dataclasses import dataclass, field

from arenite.planner import Array
from arenite.runtime.cexport.base.orders import (
    INSTRUCTION_SETS,
    InstructionSet,
    Orders,
    in_each_order,
    little_endian,
)

_MARK = re.compile(r"@fetch (\d+)@")
_ALIGNMENT = 4


@dataclass(slots=True)
class ExternalWeights:
    """The weights of layers that have windows in the arena, one behind the other.

    Attributes:
        prefix: Of the names of the functions that fetch them.
        data: All weights, as portable kernels read them, little-endian.
        orders: What they are for each instruction set.
    """

    prefix: str
    data: bytearray = field(default_factory=bytearray)
    orders: dict[InstructionSet, bytearray] = field(
        default_factory=lambda: {each: bytearray() for each in INSTRUCTION_SETS}
    )
    _windows: dict[str, int] = field(default_factory=dict)
    _places: dict[int, str] = field(default_factory=dict)
    _begins: dict[tuple[bytes, ...], int] = field(default_factory=dict)
    _pending: str = ""

    @property
    def num_bytes(self) -> int:
        """Bytes of all weights."""
        return len(self.data)

    @property
    def is_used(self) -> bool:
        """Whether a run fetches anything."""
        return bool(self._windows)

    @property
    def others(self) -> dict[InstructionSet, bytes]:
        """The bytes for the instruction sets that need others than portable C."""
        return {each: bytes(data) for each, data in self.orders.items() if data != self.data}

    def add(self, window: str, array: Array, orders: Orders | None = None) -> None:
        """Put the weights of a layer behind those before, unless they are there already.

        Args:
            window: The tensor that they are fetched into.
            array: The weights.
            orders: What they are for some instruction sets, of the same size.
        """
        each = tuple(map(little_endian, in_each_order(array, orders)))
        size = len(each[0])
        if each not in self._begins:
            for data, added in zip((self.data, *self.orders.values()), each, strict=True):
                data += bytes(-len(data) % _ALIGNMENT) + added
            self._begins[each] = len(self.data) - size
        self._places[self._number(window)] = f"{self._begins[each]}, {size}"

    def started(self, window: str, place: str, _size: int) -> list[str]:
        """Return the calls that begin to fill a window at a place.

        One fetch goes on at a time, so the one before is awaited. Where the weights lie is known
        when their layer is written: `filled` states it.
        """
        before = self.awaited(self._pending)
        self._pending = window
        mark = f"@fetch {self._number(window)}@"
        return [*before, f"{self.prefix}_fetch_start({place}, {mark});"]

    def awaited(self, *names: str) -> list[str]:
        """Return the call that ends the fetch into one of some tensors, if it goes on."""
        if not self._pending or self._pending not in names:
            return []
        self._pending = ""
        return [f"{self.prefix}_fetch_wait();"]

    def filled(self, call: str) -> str:
        """Return a call with the places of the weights, which are known by now."""
        return _MARK.sub(lambda mark: self._places[int(mark[1])], call)

    def _number(self, window: str) -> int:
        return self._windows.setdefault(window, len(self._windows))
