"""The contents of a plan file, and its bytes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from arenite.planner.files import write_atomically
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import MovingPart, PermittedOverlap, Problem, UsageRecord
from arenite.planner.planfile.bands import Bands, bands_text
from arenite.planner.planfile.errors import StaleRecordsError, WrongModelError
from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import AliasKind, Boundary
from arenite.planner.programs.run import run_of
from arenite.planner.sizes import Dimension, Length, Tree, length_text
from arenite.planner.tensors import Memory

FORMAT = "arenite-plan"
VERSION = 2


@dataclass(frozen=True, slots=True)
class ModelReference:
    """The model a plan was made for.

    Attributes:
        name: File name without its folder.
        sha256: Hexadecimal digest of the file.
        dims: Values or ranges given to free dimensions, by name.
        shapes: Shapes given to inputs, by name.
        weight_budget: How much of the weights may be resident during a run, in bytes or per
            cent, such as `4194304` or `25%`; empty for no limit.
        values: Inputs that were fixed at a value, by name.
        activations: Type that results are stored as, such as `fp16`; empty for that of the model.
        cache: Type that caches are stored as, in the same way.
    """

    name: str
    sha256: str
    dims: Mapping[str, Length] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Length, ...]] = field(default_factory=dict)
    weight_budget: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    activations: str = ""
    cache: str = ""


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The contents of a plan file.

    Attributes:
        target: Name of the target whose records these are.
        boundary: Whether graph inputs and outputs lie in the arena.
        alignment: Bytes; individual records may state another.
        aliases: Kinds of sharing with which the records were derived.
        problem: The records; its steps are the order.
        plan: Their offsets.
        bands: How the program runs in bands, if it does; the steps of the problem are then turns.
        dimensions: Dimensions that sizes of records depend on.
    """

    model: ModelReference
    target: str
    boundary: Boundary
    alignment: int
    aliases: tuple[AliasKind, ...]
    problem: Problem
    plan: Plan
    bands: Bands | None = None
    dimensions: tuple[Dimension, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the file's bytes: one record a line, the same bytes for equal contents."""
        plan = self.plan
        budget, fixed = self.model.weight_budget, dict(sorted(self.model.values.items()))
        head = {
            "format": FORMAT,
            "version": VERSION,
            "model": {
                # A file name need not be valid Unicode; other bytes become "?".
                "name": self.model.name.encode(errors="replace").decode(),
                "sha256": self.model.sha256,
                "dims": {k: length_text(v) for k, v in sorted(self.model.dims.items())},
                "shapes": {
                    k: list(map(length_text, v)) for k, v in sorted(self.model.shapes.items())
                },
                **({"values": fixed} if fixed else {}),
                **({"weight_budget": budget} if budget else {}),
                **({"activations": kept} if (kept := self.model.activations) else {}),
                **({"cache": kept} if (kept := self.model.cache) else {}),
            },
            "target": self.target,
            "boundary": self.boundary.value,
            "alignment": self.alignment,
            "aliases": [kind.value for kind in self.aliases],
        }
        if self.dimensions:
            head["dimensions"] = {each.name: each.text for each in self.dimensions}
        totals = {
            "height": plan.height,
            "lower_bound": plan.lower_bound,
            "bound": "load" if plan.lower_bounds == self.problem.lower_bounds else "search",
            "optimal": plan.optimal,
            "strategy": {"name": plan.strategy, "parameters": dict(plan.parameters)},
        }
        lines = [f" {json.dumps(key)}: {_dump(value)}" for key, value in head.items()]
        lines.append(f' "memories": {_dump_lines(self._memories())}')
        lines += [f" {json.dumps(key)}: {_dump(value)}" for key, value in totals.items()]
        lines.append(f' "order": {_dump_lines(self.problem.steps)}')
        records = [
            self._record(record, offset)
            for record, offset in zip(self.problem.records, plan.offsets, strict=True)
        ]
        lines.append(f' "records": {_dump_lines(records)}')
        if self.bands is not None:
            lines.append(f' "bands": {bands_text(self.bands, self.problem.memories[0].name)}')
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    def _memories(self) -> list[dict[str, object]]:
        return [
            {
                "name": memory.name,
                "capacity": memory.capacity,
                "alignment": memory.alignment,
                "writable": memory.writable,
                "height": height,
                "lower_bound": bound,
            }
            for memory, height, bound in zip(
                self.problem.memories, self.plan.heights, self.plan.lower_bounds, strict=True
            )
        ]

    def _record(self, record: UsageRecord, offset: int) -> dict[str, object]:
        entry: dict[str, object] = {
            "name": record.name,
            "offset": offset,
            "size": record.size,
            "start": record.start,
            "end": record.end,
        }
        if record.expression is not None:
            entry["expression"] = record.expression
        if record.memory != self.problem.memories[0].name:
            entry["memory"] = record.memory
        if record.alignment != self.alignment:
            entry["alignment"] = record.alignment
        entry["tensors"] = list(record.tensors)
        if record.overlaps:
            entry["overlaps"] = {overlap.record: overlap.size for overlap in record.overlaps}
        if record.parts:
            entry["parts"] = [
                [each.tensor, each.begin, each.stop, each.start, each.end] for each in record.parts
            ]
        if record.outline:
            entry["outline"] = [
                [stair.offset, stair.size, stair.start, stair.end] for stair in record.outline
            ]
        return entry

    def check_digest(self, digest: str) -> None:
        """Check that the plan was made for the model file with this digest.

        Raises:
            WrongModelError: It was made for another.
        """
        if digest != self.model.sha256:
            raise WrongModelError(
                f"made for {self.model.name!r} with digest {self.model.sha256[:12]}..., the "
                f"model given has {digest[:12]}...; plan it again"
            )

    def check_run(self, program: Program) -> None:
        """Check that turns and rows are those of a program with the records of the plan.

        Raises:
            StaleRecordsError: Something of them differs.
        """
        if self.bands is None:
            return
        found, stated = run_of(program, self.problem, self.plan), self.bands.run
        for what, ours, theirs in (
            ("turns", found.turns, stated.turns),
            ("rows of tensors", found.tensors, stated.tensors),
            ("inputs and outputs", (found.inputs, found.outputs), (stated.inputs, stated.outputs)),
        ):
            if ours != theirs:
                raise StaleRecordsError(f"the {what} are not those of the model; plan it again")

    def check_against(
        self, digest: str, problem: Problem, dimensions: Sequence[Dimension] = ()
    ) -> None:
        """Check that the plan was made for this model file and these records.

        Args:
            digest: Hexadecimal SHA-256 of the model file.
            problem: The model's records under the same target, boundary and alignment.
            dimensions: The dimensions that the model's sizes depend on.

        Raises:
            WrongModelError: The digests differ.
            StaleRecordsError: A dimension or a record is missing, new or changed, or the memories
                differ in more than their capacity.
        """
        self.check_digest(digest)
        if set(dimensions) != set(self.dimensions):
            raise StaleRecordsError(
                f"the dimensions are {_ranges(self.dimensions)} here and {_ranges(dimensions)} in "
                "the model; plan it again"
            )
        if problem.steps != self.problem.steps:
            raise StaleRecordsError("the order of the operators is not the model's")
        if _kinds(problem.memories) != _kinds(self.problem.memories):
            raise StaleRecordsError("the memories are not those of the model; plan it again")
        stated = {record.name: _extent(record) for record in self.problem.records}
        derived = {record.name: _extent(record) for record in problem.records}
        for name in sorted(stated.keys() | derived.keys()):
            if stated.get(name) != derived.get(name):
                raise StaleRecordsError(
                    f"record {name!r} is {_describe(stated.get(name))} here and "
                    f"{_describe(derived.get(name))} in the model; plan it again"
                )


def _ranges(dimensions: Iterable[Dimension]) -> str:
    return ", ".join(map(str, dimensions)) or "none"


def _kinds(memories: Sequence[Memory]) -> list[Memory]:
    return [replace(memory, capacity=None) for memory in memories]


_Extent: TypeAlias = tuple[
    int, int, int, int, tuple[str, ...], tuple[PermittedOverlap, ...], str, tuple[Stair, ...],
    Tree | None, tuple[MovingPart, ...],
]  # fmt: skip


def _extent(record: UsageRecord) -> _Extent:
    return (
        record.size, record.start, record.end, record.alignment, record.tensors, record.overlaps,
        record.memory, record.outline, record.expression, record.parts,
    )  # fmt: skip


def _describe(extent: _Extent | None) -> str:
    if extent is None:
        return "absent"
    size, start, end, alignment, tensors, overlaps, memory, outline, expression, parts = extent
    may_overlap = "".join(f", {each.size} B of it over {each.record!r}" for each in overlaps)
    stairs = f", an outline of {len(outline)} stairs" if outline else ""
    moving = f", {len(parts)} of them moving" if parts else ""
    varies = "" if expression is None else f" by {_dump(expression)}"
    return (
        f"{size} B{varies} in steps [{start}, {end}) aligned to {alignment} with "
        f"{len(tensors)} tensors{moving}{may_overlap} in memory {memory!r}{stairs}"
    )


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _dump_lines(values: Sequence[object]) -> str:
    if not values:
        return "[]"
    return "[\n" + ",\n".join(f"  {_dump(value)}" for value in values) + "\n ]"


def write(path: Path, plan_file: PlanFile) -> None:
    """Write the plan file whole or not at all.

    Raises:
        OutputError: It cannot be written; an existing file is unchanged.
    """
    write_atomically(path, plan_file.to_bytes())
