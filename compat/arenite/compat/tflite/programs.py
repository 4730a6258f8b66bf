"""The programs of a TFLite model, for the shapes to which its inputs are resized.

The first three shapes have a program each, then one is built for a range of sizes. A model that
cannot be built for a range has a program for each shape.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from arenite.compat.cache import Model, RefusedError, open_program
from arenite.compat.sizes import Lengths, ranges_of
from arenite.planner import AreniteError
from arenite.runtime import Session

Shape = tuple[int, ...]
_MOST_FIXED = 3


@dataclass(slots=True)
class Programs:
    """The programs of a model, built when they are needed.

    Attributes:
        model: The model.
        threads: Number of threads that run kernels.
    """

    model: Model
    threads: int
    _seen: list[Lengths] = field(default_factory=list)
    _range: dict[str, int | str] | None = None
    _takes_ranges: bool = True

    def open(self, shapes: Mapping[str, Shape], resized: Collection[str]) -> Session:
        """Return a session for these shapes of the inputs.

        Args:
            shapes: Of all inputs, by name.
            resized: Inputs that have another shape than in the file.

        Raises:
            RefusedError: The model does not take these shapes, or cannot be run.
            UnavailableError: A package that it needs is missing, or there is no space.
        """
        if resized and self.model.suffix == Model.ARENA:
            raise RefusedError(f"{self.model.name} has the sizes that it was built for")
        if found := self._open_ranged(shapes):
            return found
        options = {"shapes": {name: shapes[name] for name in resized}} if resized else {}
        return open_program(self.model, options, threads=self.threads)

    def _open_ranged(self, shapes: Mapping[str, Shape]) -> Session | None:
        """Return a session of a program for a range; None for the first shapes, or without one."""
        lengths = {
            f"{name}:{axis}": length
            for name, shape in shapes.items()
            for axis, length in enumerate(shape)
        }
        if lengths not in self._seen:
            self._seen.append(lengths)
        if len(self._seen) <= _MOST_FIXED or not self._takes_ranges:
            return None
        varied = [name for name in lengths if len({each[name] for each in self._seen}) > 1]
        known = [] if self._range is None else [self._range]
        for ranges in (*known, *ranges_of(self._seen, varied)):
            stated = {
                name: [ranges.get(f"{name}:{axis}", length) for axis, length in enumerate(shape)]
                for name, shape in shapes.items()
            }
            try:
                found = open_program(self.model, {"shapes": stated}, threads=self.threads)
                found.resize({name: lengths[name] for name in ranges})
            except AreniteError:
                continue
            self._range = ranges
            return found
        self._takes_ranges = False
        return None
