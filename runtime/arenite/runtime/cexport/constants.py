"""The constants of an exported model: each array once, under a name."""

from dataclasses import dataclass, field

import numpy as np

from arenite.planner.program import Array


@dataclass(slots=True)
class Constants:
    """Arrays by name, in the order in which steps ask for them.

    Attributes:
        prefix: Of every name.
        arrays: The arrays.
    """

    prefix: str
    arrays: dict[str, Array] = field(default_factory=dict)
    _known: dict[tuple[str, bytes], str] = field(default_factory=dict)

    def add(self, array: Array, hint: str) -> str:
        """Return the name of an array, that of an equal one if there is one already.

        Args:
            array: Its elements; it may not be empty.
            hint: What it is, as part of its name.
        """
        array = np.ascontiguousarray(array)
        key = array.dtype.name, array.tobytes()
        if key not in self._known:
            name = f"{self.prefix}_{hint}"
            number = 1
            while name in self.arrays:
                number += 1
                name = f"{self.prefix}_{hint}_{number}"
            self._known[key] = name
            self.arrays[name] = array
        return self._known[key]

    @property
    def num_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())
