"""Let tensors keep the rows of the highest sizes, for steps that take rows wherever they lie.

The rows of a tensor that a step takes in one piece lie end to end at every size, so shorter ones
begin elsewhere. Such a tensor makes room for others either as its rows are made or as they are
used up (`rewrites.anchoring`). If every step that touches it takes it by rows, each row begins at
one byte at all sizes::

    highest size   |---- row 0 ----|---- row 1 ----|---- row 2 ----|
    smaller size   |- row 0 -|     |- row 1 -|     |- row 2 -|

So what the highest sizes need of it, and when, holds for all of them. A step that runs whole then
takes all rows at one turn.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from arenite.planner.operators.bands import Band, Pieces
from arenite.planner.programs.program import COMPUTE, Names, Program, Step
from arenite.planner.programs.row_places import RowPlaces, has_rows_of
from arenite.planner.programs.row_steps import RowStep, row_step
from arenite.planner.sizes import depends
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind, has_rows, row_bytes


def keepable(program: Program, by_rows: Collection[str]) -> frozenset[str]:
    """Return the storages of tensors of varying rows that every step can take by rows.

    Args:
        program: The program in bands, its storage shared.
        by_rows: Names of whole steps that can run by rows.

    Cost: O(tensors + operands of the steps + rows of the results of steps that run whole).
    """
    return frozenset(_Keeping(program, by_rows).roots)


def keep_rows(program: Program, by_rows: Collection[str], roots: Collection[str]) -> Program:
    """Return the program with the tensors of some storages taken by rows alone.

    Args:
        roots: Storages among those that `keepable` returns.
    """
    return _Keeping(program, by_rows).kept(roots)


class _Keeping:
    def __init__(self, program: Program, by_rows: Collection[str]) -> None:
        self._program = program
        self._pieces = RowPlaces(program).pieces.keys()
        members: dict[str, list[str]] = {}
        for name in program.tensors:
            root, _ = program.root(name)
            if name not in self._pieces:
                members.setdefault(root, []).append(name)
        cut = {program.root(name)[0] for name in self._pieces} - self._pieces
        ports = {port.tensor for port in (*program.inputs, *program.outputs)}
        self._root_of = {
            name: root
            for root in cut
            if all(self._lies_as(name, root) for name in members[root])
            for name in members[root]
        }
        self.roots = set(self._root_of.values()) - {self._root_of.get(name, "") for name in ports}
        self._row_steps: dict[str, RowStep] = {}
        self._leave_out(by_rows)

    def _lies_as(self, name: str, root: str) -> bool:
        """Tell whether a tensor has the rows of a storage that vary, at their places."""
        tensor, storage = self._program.tensors[name], self._program.tensors[root]
        return (
            tensor.kind is TensorKind.ACTIVATION
            and has_rows(tensor)
            and depends(row_bytes(tensor))
            and has_rows_of(tensor, storage, self._program.root(name)[1])
        )

    def _leave_out(self, by_rows: Collection[str]) -> None:
        """Leave out the storages of tensors that some step takes in one piece."""
        for step in self._program.steps:
            touched = self._touched(step)
            if not touched:
                continue
            if isinstance(step.operator, Band):
                taken = set(_positions_by_rows(step.operator, step))
            elif step.name in by_rows and step.lane == COMPUTE:
                found = row_step(self._program, step)
                taken = set() if found is None else _taken(found)
                if found is not None:
                    self._row_steps[step.name] = found
            else:
                taken = set()
            self.roots -= {self._root_of[name] for name in touched if name not in taken}

    def _touched(self, step: Step) -> list[str]:
        names = (*step.reads, *step.writes)
        return [name for name in names if self._root_of.get(name) in self.roots]

    def kept(self, roots: Collection[str]) -> Program:
        """Return the program with these storages taken by rows."""
        names = Names([*self._program.tensors, *(step.name for step in self._program.steps)])
        tensors = dict(self._program.tensors)
        rows: dict[str, str] = {}
        for name, root in self._root_of.items():
            if root in roots:
                tensor = tensors[name]
                rows[name] = names.take(f"{name}/all rows")
                tensors[rows[name]] = replace(
                    tensor, name=rows[name], kind=TensorKind.ACTIVATION, alias=Alias(name, 0)
                )
        steps: list[Step] = []
        for step in self._program.steps:
            if not any(name in rows for name in (*step.reads, *step.writes)):
                steps.append(step)
            elif isinstance(step.operator, Band):
                steps.append(_by_rows(step, step.operator, rows))
            else:
                band, more = self._one_turn(step, names)
                tensors |= {each.name: each for each in more}
                outputs = (*step.outputs, *(each.name for each in more))
                steps.append(_by_rows(replace(step, operator=band, outputs=outputs), band, rows))
        return replace(self._program, tensors=tensors, steps=tuple(steps))

    def _one_turn(self, step: Step, names: Names) -> tuple[Band, list[Tensor]]:
        """Return a whole step as one turn of all its rows, and the sums of their rows."""
        found = self._row_steps[step.name]
        sums = [
            Tensor(names.take(f"{step.name}/sums"), DType.UINT8, (size,))
            for size in (found.accumulators,)
            if size
        ]

        def operands(of: Iterable[str]) -> tuple[Pieces | None, ...]:
            shapes = self._program.tensors
            return tuple(Pieces(name, shapes[name].shape) if name else None for name in of)

        band = Band(
            step.operator,
            step.name,
            0,
            found.num_rows,
            operands(step.inputs),
            operands(step.outputs),
            tuple(p for p, name in enumerate(step.inputs) if name in found.overwritable),
            bool(sums),
            found.multiply_adds,
            working_memory=found.scratch,
        )
        return band, sums


def _taken(found: RowStep) -> set[str]:
    """Return the operands of a whole step that it takes by rows wherever it reads or writes."""
    positions = {reads.position for reads in found.reads}
    whole = {name for at, name in enumerate(found.step.inputs) if at not in positions}
    made = set() if found.accumulators else {found.result.name}
    return ({reads.tensor for reads in found.reads} | made) - whole


def _positions_by_rows(band: Band, step: Step) -> Iterator[str]:
    """Yield the operands that a band reads in one piece, and could read by rows."""
    place = 0
    whole: set[str] = set()
    found: set[str] = set()
    for position, pieces in enumerate(band.inputs):
        if pieces is not None and not pieces.firsts:
            by_rows = band.operator.reads_rows(position)
            (found if by_rows else whole).add(step.inputs[place])
        place += 1 if pieces is None else pieces.count
    yield from found - whole


def _by_rows(step: Step, band: Band, rows: Mapping[str, str]) -> Step:
    """Return a step that takes some tensors by their rows."""

    def changed(operands: tuple[Pieces | None, ...]) -> tuple[Pieces | None, ...]:
        return tuple(
            replace(each, firsts=(0,))
            if each is not None and not each.firsts and each.tensor in rows
            else each
            for each in operands
        )

    return replace(
        step,
        operator=replace(band, inputs=changed(band.inputs), outputs=changed(band.outputs)),
        inputs=tuple(rows.get(name, name) for name in step.inputs),
        outputs=tuple(rows.get(name, name) for name in step.outputs),
    )
