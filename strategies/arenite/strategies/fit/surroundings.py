"""What the surroundings of a region need, for every region that begins at a step."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from arenite.planner.program import Program
from arenite.planner.rewrites.bands.geometry import RowStep
from arenite.planner.rewrites.bands.regions import Boundary
from arenite.planner.tensors import TensorKind


@dataclass(frozen=True, slots=True)
class Storage:
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


def storages(program: Program, outside: Container[str] = ()) -> dict[str, Storage]:
    """Return what lives in the arena, by the tensor that owns the storage.

    Args:
        program: The program.
        outside: Tensors that the caller holds; they take no bytes of the arena.
    """
    found: dict[str, Storage] = {}
    forever = len(program.steps) + 1

    def extend(name: str, start: int, stop: int) -> None:
        root = program.root(name)[0]
        tensor = program.tensors[root]
        if tensor.kind is TensorKind.CONSTANT or tensor.size == 0:
            return
        size = 0 if root in outside else tensor.size
        old = found.get(root, Storage(size, start, stop))
        found[root] = Storage(size, min(old.start, start), max(old.stop, stop))

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


def boundaries(
    program: Program,
    steps: Sequence[RowStep | None],
    lives: dict[str, Storage],
    start: int,
) -> Iterator[Boundary]:
    """Yield what surrounds the regions that begin at a step, from the shortest to the longest.

    Args:
        program: The program.
        steps: How each step runs row by row.
        lives: The program's storages.
        start: Index of the first step.

    Cost: O(storages), and O(what the region has made and still needs) for each region.
    """
    entering = {root: life.size for root, life in lives.items() if life.start < start < life.stop}
    around = sum(entering.values())
    by_row: dict[str, set[str]] = {}
    whole: set[str] = set()
    made: list[str] = []
    for index in range(start, len(steps)):
        each = steps[index]
        if each is None:
            return
        in_rows = {reads.tensor for reads in each.reads}
        for name in each.step.reads:
            root, _ = program.root(name)
            life = lives.get(root)
            is_plain = root == name and name in in_rows
            if life is not None and life.start >= start and not is_plain:
                return
            if name in in_rows:
                by_row.setdefault(root, set()).add(name)
            else:
                whole.add(root)
        result = each.result.name
        if program.root(result)[0] != result:
            return
        stop = index + 1
        made = [root for root in (*made, result) if root in lives and lives[root].stop > stop]
        consumed = [
            name
            for root, names in by_row.items()
            if root in entering and lives[root].stop <= stop and root not in whole
            for name in names
            if len(names) == 1 and program.tensors[name].size == entering[root]
        ]
        carried = around - sum(program.tensors[name].size for name in consumed)
        yield Boundary(frozenset(consumed), frozenset(made), carried)
