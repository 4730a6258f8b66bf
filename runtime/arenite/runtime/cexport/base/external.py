"""Weights outside addressable flash: where each lies there, and the calls that fetch them."""

import re
from dataclasses import dataclass, field

from arenite.planner import Array

_MARK = re.compile(r"@fetch (\d+)@")
_ALIGNMENT = 4


@dataclass(slots=True)
class ExternalWeights:
    """The weights of layers that have windows in the arena, one behind the other.

    Attributes:
        prefix: Of the names of the functions that fetch them.
        data: All weights, as the kernels read them, little-endian.
        of_vectors: What they are on a processor with vectors.
    """

    prefix: str
    data: bytearray = field(default_factory=bytearray)
    of_vectors: bytearray = field(default_factory=bytearray)
    _windows: dict[str, int] = field(default_factory=dict)
    _places: dict[int, str] = field(default_factory=dict)
    _begins: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
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
    def has_vectors(self) -> bool:
        """Whether a processor with vectors needs other bytes."""
        return self.data != self.of_vectors

    def add(self, window: str, array: Array, of_vectors: Array | None = None) -> None:
        """Put the weights of a layer behind those before, unless they are there already.

        Args:
            window: The tensor that they are fetched into.
            array: The weights.
            of_vectors: What they are on a processor with vectors, of the same size.
        """
        own, other = (
            each.astype(each.dtype.newbyteorder("<")).tobytes()
            for each in (array, array if of_vectors is None else of_vectors)
        )
        if (own, other) not in self._begins:
            for data, added in ((self.data, own), (self.of_vectors, other)):
                data += bytes(-len(data) % _ALIGNMENT) + added
            self._begins[own, other] = len(self.data) - len(own)
        self._places[self._number(window)] = f"{self._begins[own, other]}, {len(own)}"

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
