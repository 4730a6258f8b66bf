"""Which parts of a program could run in bands of rows, and what each of them would need."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from arenite.planner.program import Program
from arenite.planner.rewrites.bands.geometry import RowStep, row_step
from arenite.planner.rewrites.bands.walk import Boundary, Region, Walk, walk
from arenite.planner.tensors import TensorKind


@dataclass(frozen=True, slots=True)
class _Storage:
    """Bytes that live from the step that makes them to the last that needs them.

    Attributes:
        size: Bytes.
        start: Index of the first step that writes them; -1 before all steps.
        stop: Index after the last step that needs them; above the number of steps if the
            caller or the next run does.
    """

    size: int
    start: int
    stop: int


def _anything(_step: RowStep) -> bool:
    return True


@dataclass(slots=True)
class Regions:
    """The regions of a program, with what their surroundings need of them.

    Attributes:
        program: The program, none of its storage shared yet.
        is_allowed: Whether a step that could run row by row may.
        steps: How each step runs row by row; None if it cannot.
    """

    program: Program
    is_allowed: Callable[[RowStep], bool] = _anything
    steps: tuple[RowStep | None, ...] = ()
    _storages: dict[str, _Storage] = field(default_factory=dict)
    _boundaries: dict[tuple[int, int], Boundary | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = (row_step(self.program, step) for step in self.program.steps)
        self.steps = tuple(
            each if each is not None and self.is_allowed(each) else None for each in found
        )
        self._storages = _storages(self.program)

    def stops_after(self, start: int) -> Iterator[int]:
        """Yield the ends of regions that could begin at a step."""
        for index in range(start, len(self.steps)):
            if self.steps[index] is None:
                return
            yield index + 1

    def walk(self, region: Region, limit: int | None = None) -> Walk | None:
        """Return how a region runs, None if its steps cannot run in bands together."""
        boundary = self.boundary(region.start, region.stop)
        if boundary is None:
            return None
        steps = [step for step in self.steps[region.start : region.stop] if step is not None]
        return walk(region, steps, self.program.tensors, boundary, limit)

    def boundary(self, start: int, stop: int) -> Boundary | None:
        """Return what surrounds a region, None if its steps cannot run in bands together."""
        if (start, stop) not in self._boundaries:
            self._boundaries[start, stop] = self._boundary(start, stop)
        return self._boundaries[start, stop]

    def _boundary(self, start: int, stop: int) -> Boundary | None:
        by_row: dict[str, set[str]] = {}
        whole: set[str] = set()
        for each in self.steps[start:stop]:
            assert each is not None
            in_rows = {reads.tensor for reads in each.reads}
            for name in each.step.reads:
                root, _ = self.program.root(name)
                if self._is_made(root, start, stop) and (root != name or name not in in_rows):
                    return None
                if name in in_rows:
                    by_row.setdefault(root, set()).add(name)
                else:
                    whole.add(root)
            if self.program.root(each.result.name)[0] != each.result.name:
                return None
        consumed: list[str] = []
        carried = 0
        for root, storage in self._storages.items():
            if not storage.start < start < storage.stop:
                continue
            names = by_row.get(root, set())
            dies = storage.stop <= stop and len(names) == 1 and root not in whole
            name = next(iter(names), "")
            if dies and self.program.tensors[name].size == storage.size:
                consumed.append(name)
            else:
                carried += storage.size
        kept = [
            root
            for root, storage in self._storages.items()
            if start <= storage.start < stop < storage.stop
        ]
        return Boundary(frozenset(consumed), frozenset(kept), carried)

    def _is_made(self, root: str, start: int, stop: int) -> bool:
        storage = self._storages.get(root)
        return storage is not None and start <= storage.start < stop


def _storages(program: Program) -> dict[str, _Storage]:
    found: dict[str, _Storage] = {}
    forever = len(program.steps) + 1

    def extend(name: str, start: int, stop: int) -> None:
        root = program.root(name)[0]
        tensor = program.tensors[root]
        if tensor.kind is TensorKind.CONSTANT or tensor.size == 0:
            return
        old = found.get(root, _Storage(tensor.size, start, stop))
        found[root] = _Storage(tensor.size, min(old.start, start), max(old.stop, stop))

    for name in program.input_tensors:
        extend(name, -1, 0)
    for tensor in program.tensors.values():
        if tensor.kind is TensorKind.STATE:
            extend(tensor.name, -1, forever)
    for index, step in enumerate(program.steps):
        for name in (*step.reads, *step.writes):
            extend(name, index, index + 1)
    for name in program.output_tensors:
        extend(name, len(program.steps) - 1, forever)
    return found
