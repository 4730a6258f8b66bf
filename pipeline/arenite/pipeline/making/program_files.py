"""Program files that are looked at rather than run."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from arenite.pipeline.base.ranges import along, sizes_text
from arenite.pipeline.making.schedule_checks import check_system
from arenite.planner import Problem, UsageRecord
from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement import Rectangle, UndefinedSizeError, WrongHeightError, verify_sizes
from arenite.planner.planfile import WrongModelError
from arenite.planner.programs import Names, Run, verify_run
from arenite.planner.sizes import Dimension, Tree, highest_sizes
from arenite.runtime import Session
from arenite.runtime.program import Root, rectangles_of, root_of, run_of


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A program that the core has accepted.

    Attributes:
        root: The root table of its schema.
        run: The rows that its turns touch.
        rectangles: The bytes and turns of its records.
    """

    root: Root
    run: Run
    rectangles: tuple[Rectangle, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the program of a file whose bytes have their checksums.

        Raises:
            ProgramError: The core refuses it, or its bytes are not those that were written.
            MissingDependencyError: A step needs ONNX Runtime, which is absent.
        """
        with Session(path, check=True) as session:
            return cls.of(session)

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return the program of a session."""
        return cls._of_root(root_of(session.flatbuffer()))

    @classmethod
    def _of_root(cls, root: Root) -> Self:
        return cls(root, run_of(root), tuple(rectangles_of(root)))

    @property
    def subranges(self) -> tuple[Self, ...]:
        """Programs of the lower parts of its range of sizes, ascending."""
        return tuple(map(self._of_root, self.root.get("subranges", ())))

    @property
    def inner(self) -> tuple[Self, ...]:
        """Programs that its steps run."""
        return tuple(map(self._of_root, self.root.get("inner", ())))

    @property
    def digest(self) -> str:
        """Hexadecimal digest of the model that it was made of."""
        return str(self.root["digest"])

    @property
    def heights(self) -> Mapping[str, int]:
        """Bytes of each memory, by name."""
        return {memory["name"]: memory["size"] for memory in self.root["memories"]}

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Dimensions that its sizes depend on."""
        return tuple(
            Dimension(
                each["name"],
                each["low"],
                each["high"],
                each.get("step", 1),
                grows=each.get("grows_by", -1) >= 0,
            )
            for each in self.root.get("dimensions", ())
        )

    @property
    def parts(self) -> list[tuple[tuple[Dimension, ...], int]]:
        """The dimensions of each subrange, with their ranges, and its height."""
        return [(each.dimensions, sum(each.heights.values())) for each in self.subranges]

    @property
    def num_steps(self) -> int:
        """Number of steps."""
        return len(self.root["steps"])

    def check(self) -> None:
        """Check that its turns find the rows that they read, and the sizes of its memories.

        Its subranges are checked in the same way, and so are the programs that its steps run.

        Of a program for a range of sizes, that no tensor is larger at any of them than at the
        highest, for which it is planned, and that the turns of some smaller ones find their rows,
        too. Of a program of several models, that none overwrites what another needs in any order
        that the schedule allows.

        Raises:
            InvalidPlanError: By the subclass of the first rule broken.
        """
        is_system = check_system(self.root)
        if not is_system:
            verify_run(self.run, self.rectangles)
        verify_sizes(Problem(tuple(_sized(self.root))), self.dimensions)
        for sizes in [] if is_system else self._lower_sizes():
            self.check_at(sizes)
        used: Counter[str] = Counter()
        for each in self.rectangles:
            used[each.memory] = max(used[each.memory], each.offset + each.size)
        for memory, height in self.heights.items():
            if used[memory] != height:
                raise WrongHeightError(
                    f"memory {memory!r}: {height} B stated, {used[memory]} B used"
                )
        for part in (*self.subranges, *self.inner):
            part.check()

    def check_at(self, sizes: Mapping[str, int]) -> None:
        """Check that its turns find the rows that they read at some sizes of its range.

        Args:
            sizes: Values of all its dimensions.

        Raises:
            InvalidPlanError: By the subclass of the first rule broken.
        """
        try:
            verify_run(run_of(self.root, sizes), self.rectangles)
        except InvalidPlanError as error:
            raise type(error)(f"at {sizes_text(sizes)}: {error}", error.records) from error

    def _lower_sizes(self) -> list[dict[str, int]]:
        """Return the lowest sizes, some in the middle, and the lowest of each dimension alone."""
        highest = highest_sizes(self.dimensions)
        alone = [{**highest, each.name: each.low} for each in self.dimensions]
        found = [*along(self.dimensions, _WALKED_SIZES), *alone[:_WALKED_SIZES]]
        return [each for n, each in enumerate(found) if each != highest and each not in found[:n]]

    def check_model(self, path: Path, model: Path, digest: str) -> None:
        """Check that it was made of a model file.

        Raises:
            WrongModelError: It was made of another.
        """
        if digest != self.digest:
            raise WrongModelError(
                f"made of a model with digest {self.digest[:12]}..., {model.name!r} has "
                f"{digest[:12]}...; build it again",
                path=path,
            )

    def regions(self) -> Sequence["TurnsByRows"]:
        """Return the stretches of turns by rows, in order."""
        found: list[TurnsByRows] = []
        turns = self.run.turns
        start = 0
        while start < len(turns):
            stop = start
            while stop < len(turns) and turns[stop].rows:
                stop += 1
            if stop > start:
                found.append(TurnsByRows.of(self, range(start, stop)))
            start = max(stop, start + 1)
        return found

    def live_at(self, turn: int) -> Mapping[str, int]:
        """Return the bytes that are live at a turn, by the name of the record."""
        found: Counter[str] = Counter()
        for each in self.rectangles:
            if each.start <= turn < each.end:
                found[each.name] += each.size
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def binding(self) -> int | None:
        """Return the first turn at which most bytes are live, None if none are at any."""
        changes: Counter[int] = Counter()
        for each in self.rectangles:
            changes[each.start] += each.size
            changes[each.end] -= each.size
        load, most, binding = 0, 0, None
        for turn in sorted(changes):
            load += changes[turn]
            if load > most:
                most, binding = load, turn
        return binding


_WALKED_SIZES = 3
"""Sizes at which turns are walked, from the lowest to the highest."""
_SIGNS = {"add": "+", "multiply": "*", "divide": "/", "maximum": "max", "minimum": "min"}
_MOST_NODES = 4096
_MOST_LEVELS = 256


def _sized(root: Root) -> Iterator[UsageRecord]:
    """Yield each tensor whose shape depends on sizes, as a record of its own.

    Raises:
        UndefinedSizeError: An expression is too large to be checked.
    """
    names = [each["name"] for each in root.get("dimensions", ())]
    trees: list[tuple[Tree, int, int]] = []  # with their operands and levels
    for each in root.get("expressions", ()):
        a, b = each.get("a", 0), each.get("b", 0)
        operation = each.get("operation", "constant")
        if operation == "constant":
            trees.append((a, 1, 1))
        elif operation == "dimension":
            trees.append((names[a], 1, 1))
        else:
            (one, count, levels), (other, other_count, other_levels) = trees[a], trees[b]
            # Parts that are used twice are there twice.
            count = min(1 + count + other_count, _MOST_NODES + 1)
            trees.append(((_SIGNS[operation], one, other), count, 1 + max(levels, other_levels)))
    shapes: dict[int, list[Tree]] = {}
    for each in root.get("axes", ()):
        tensor, (tree, count, levels) = each.get("tensor", 0), trees[each.get("expression", 0)]
        name = root["tensors"][tensor]["name"]
        if count > _MOST_NODES or levels > _MOST_LEVELS:
            raise UndefinedSizeError(
                f"tensor {name!r}: an expression has more than {_MOST_NODES} operands or "
                f"{_MOST_LEVELS} levels",
                [name],
            )
        shape = shapes.setdefault(tensor, list(root["tensors"][tensor]["shape"]))
        shape[each.get("axis", 0)] = tree
    names_in_use = Names(())
    for tensor, lengths in shapes.items():
        stated = root["tensors"][tensor]
        bytes_each = 1 if stated["type"] == "boolean" else np.dtype(stated["type"]).itemsize
        size = math.prod(stated["shape"]) * bytes_each
        if size:
            name = names_in_use.take(stated["name"])
            yield UsageRecord(name, size, 0, 1, expression=("*", *lengths, bytes_each))


@dataclass(frozen=True, slots=True)
class TurnsByRows:
    """Turns one after another that each make rows of a step: a region, or several.

    Attributes:
        start: The first turn.
        stop: The turn after the last.
        first: Name of the step of the first turn.
        last: Name of the step of the last.
        num_steps: Steps that have turns among them.
        rows: Rows that most of the turns of the last step make.
        most_rows: Most rows that a turn makes.
    """

    start: int
    stop: int
    first: str
    last: str
    num_steps: int
    rows: int
    most_rows: int

    @classmethod
    def of(cls, program: ProgramFile, turns: range) -> Self:
        """Return a description of some turns of a program."""
        some = program.run.turns[turns.start : turns.stop]
        last = some[-1].step
        usual = Counter(turn.rows for turn in some if turn.step == last)
        return cls(
            turns.start,
            turns.stop,
            some[0].step,
            last,
            len({turn.step for turn in some}),
            min(usual, key=lambda rows: (-usual[rows], rows)),
            max(turn.rows for turn in some),
        )
