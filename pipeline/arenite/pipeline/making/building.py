"""From a model to a placed program: whole, or in bands of rows where they cost nothing."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.memories import spread_over
from arenite.pipeline.base.observing import SearchLimits
from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.placing import Outcome, check_bound, check_capacity, may_fit, place
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.programs import compile_by_plan, with_callers, write_loaded
from arenite.pipeline.making.subranges import (
    may_have_subranges,
    middle_above,
    narrowed,
    whole_within,
)
from arenite.pipeline.targets.arenite import compiled_for
from arenite.pipeline.targets.compiling import (
    Compiled,
    Lowered,
    Tune,
    lower_model,
    rules,
    runs_by_rows,
)
from arenite.planner import Boundary, Derivation, Plan, Problem, Rules, Strategy, derive
from arenite.planner.programs import CostedMemory, RowStep, steps_by_rows
from arenite.planner.sizes import Dimension
from arenite.runtime import SessionMemory
from arenite.runtime.program import Assembly, Code, Weights
from arenite.runtime.rewrites import Kernels, has_slower_tiles, steps_by_tiles
from arenite.strategies import bands_for_cache, find


@dataclass(frozen=True, slots=True)
class Built:
    """A program and its plan.

    Attributes:
        compiled: The program, its kernels chosen.
        height: Bytes of the plan by which every step runs whole, without working memory of tiles.
        subranges: Programs of the lower parts of a range of sizes, and their plans.
    """

    compiled: Compiled
    outcome: Outcome
    height: int
    subranges: tuple[tuple[Compiled, Plan], ...] = ()

    @property
    def plan(self) -> Plan:
        """The offsets, with the proof."""
        return self.outcome.plan

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena that the program takes."""
        return self.outcome.plan.height

    @property
    def parts(self) -> list[tuple[tuple[Dimension, ...], int]]:
        """The dimensions of each subrange, with their ranges, and its height."""
        return [(part.program.dimensions, plan.height) for part, plan in self.subranges]

    def write(self, output: Path, code: Code | None = None) -> SessionMemory:
        """Write the program file, once it was loaded, and return the bytes a session holds.

        Args:
            code: Codes weights, as `code_of` does; None to store them as they are.

        Raises:
            UnloadableError: No session runs the program; nothing is written.
            OutputError: The file cannot be written.
        """
        return write_loaded(output, self.compiled.source.name, self.assemble(code))

    def assemble(self, code: Code | None = None) -> Assembly:
        """Combine the program with its plan.

        Args:
            code: Codes weights; there are no subranges then, which would decode them again.
        """
        weights = Weights()
        whole = self.compiled.assemble(self.plan, code, weights)
        if code is not None:
            return whole
        parts = [part.assemble(plan, None, weights) for part, plan in self.subranges]
        return whole.with_subranges(parts, weights)

    @classmethod
    def of(cls, compiled: Compiled, outcome: Outcome, height: int | None = None) -> Self:
        """Return a program with its kernels chosen, and its plan with their working memory.

        Args:
            height: Height of the plan by which every step runs whole; None if this is it.
        """
        compiled, plan = compiled.tiled(outcome.plan)
        return cls(
            compiled,
            replace(outcome, plan=plan),
            outcome.plan.height if height is None else height,
        )

    def with_subranges(self, parts: Iterable[tuple[Compiled, Plan]]) -> Self:
        """Return the program with those for lower sizes, ascending, that add no weights."""
        made, size = self, self.compiled.assemble(self.plan).weights_size
        for part in parts:
            more = replace(made, subranges=(*made.subranges, part))
            made = made if more.assemble().weights_size > size else more
        return made

    def is_better_than(self, other: Self) -> bool:
        """Tell whether the arena is smaller or convolutions are quicker, and neither is worse."""
        ours, theirs = self.compiled.program, other.compiled.program
        height, other_height = self.outcome.plan.height, other.outcome.plan.height
        if height > other_height or has_slower_tiles(ours, theirs):
            return False
        return height < other_height or has_slower_tiles(theirs, ours)


def build_model(
    model: Path,
    reading: Reading | None = None,
    *,
    strategy: Strategy | None = None,
    capacity: int | None = None,
    memories: Sequence[CostedMemory] = (),
    kernels: Kernels = Kernels.QUICK,
    tune: Tune | None = None,
    is_whole: bool = False,
) -> Built:
    """Return the program of a model with its plan, which `Built.write` writes.

    Steps that hand each other more than a cache holds run in bands of rows, if the arena is then
    smaller or has room for quicker kernels. But for the rounding of these, outputs are the same.

    Args:
        model: An ONNX or TFLite model.
        strategy: Places the records; `best` by default.
        capacity: Most bytes that the arena may take; None for no limit.
        memories: Memories to spread the records over; one by default. Every step then runs whole.
        tune: Measures kernels; None to go by a table.

    Raises:
        ModelError: The model cannot be read or run.
        WeightBudgetError: The budget of its weights cannot be met.
        PlanError: There is no plan.
        OptionsError: Options exclude each other.
    """
    reading, strategy = reading or Reading(), strategy or find("best")
    if reading.boundary is Boundary.EXCLUDE and (memories or reading.ranges):
        raise OptionsError("--boundary exclude goes without --memory and ranges of sizes")
    if memories:
        compiled = compiled_for(reading, model, kernels=kernels, tune=tune)
        source, outcome, _ = spread_over(compiled.source, memories, strategy, reading.limits)
        return Built.of(replace(compiled, source=source), outcome)
    built, whole = _build(
        lower_model(model, reading), reading, strategy=strategy, capacity=capacity,
        kernels=kernels, tune=tune, is_whole=is_whole,
    )  # fmt: skip
    if not may_have_subranges(built.compiled) or built.outcome.interrupted:
        return built
    return _with_subranges(model, reading, built, whole, strategy, kernels)


def _with_subranges(
    model: Path,
    reading: Reading,
    built: Built,
    whole: Problem,
    strategy: Strategy,
    kernels: Kernels,
) -> Built:
    """Return a program in bands with others for its lower sizes, which fit into its arena.

    The first runs whole; one behind it, up to the middle of the sizes above, in bands of its own.

    Args:
        whole: The records if every step runs whole.
    """
    banded, room = built.compiled, built.arena_bytes
    index, part = whole_within(
        model, reading, whole, banded, room, strategy=strategy, kernels=kernels
    )
    parts = [] if part is None else [part]
    tuning = banded.tuning
    middle = middle_above(index, banded.program.dimensions)
    part_reading = narrowed(reading, banded.program, middle) if middle > index else None
    if part_reading is not None:
        other, _ = _build(
            lower_model(model, part_reading, part_of=banded.program), part_reading,
            strategy=strategy, capacity=None,
            kernels=kernels, tune=None if tuning is None else lambda _: tuning, is_whole=False,
        )  # fmt: skip
        if other.arena_bytes <= room:
            parts.append((other.compiled, other.plan))
    return built.with_subranges(parts)


def build_lowered(
    lowered: Lowered,
    reading: Reading,
    *,
    strategy: Strategy,
    capacity: int | None = None,
    kernels: Kernels = Kernels.QUICK,
    tune: Tune | None = None,
    is_whole: bool = False,
) -> Built:
    """Return the program of a model that is lowered already, in one memory, without subranges.

    Other arguments and errors are those of `build_model`.
    """
    return _build(
        lowered, reading, strategy=strategy, capacity=capacity, kernels=kernels, tune=tune,
        is_whole=is_whole,
    )[0]  # fmt: skip


def _build(
    lowered: Lowered,
    reading: Reading,
    *,
    strategy: Strategy,
    capacity: int | None,
    kernels: Kernels,
    tune: Tune | None,
    is_whole: bool,
) -> tuple[Built, Problem]:
    """Return a program, and the records if every step runs whole."""
    tuning = None if tune is None else tune(lowered.program)
    order = order_finder(reading.order_name or "best", reading.limits)
    counted = replace(rules(capacity), boundary=reading.boundary)
    ordered = derive(lowered.program, counted, order)
    found = lowered.ahead(ordered, counted)
    in_rows = partial(_in_bands, lowered, ordered, replace(counted, outlines=True), reading.limits)
    if not _may_fit(found) and (is_whole or not _may_fit(in_rows())):
        check_bound(found.problem)
    outcome = place(strategy, found.problem, reading.limits)
    compiled = replace(lowered.compiled(found), kernels=kernels, tuning=tuning)
    built = Built.of(*_with_callers(compiled, outcome, counted))
    by_tiles = steps_by_tiles(built.compiled.program)
    banded = None if is_whole or outcome.interrupted else in_rows(by_tiles)
    if banded is not None:
        outcome = place(strategy, banded.problem, reading.limits)
        compiled = replace(
            lowered.compiled(banded), kernels=kernels, tuning=tuning, room=built.height
        )
        other = Built.of(*_with_callers(compiled, outcome, counted), built.height)
        built = other if other.is_better_than(built) else built
    check_capacity(built.compiled.source.problem, built.outcome, strategy)
    return built, found.problem


def build_by_plan(model: Path, plan_path: Path, reading: Reading | None = None) -> Built:
    """Return the program of a model by a plan file.

    Errors are those of `compile_by_plan`.
    """
    return Built.of(*compile_by_plan(model, plan_path, reading))


def build_program(
    model: Path, output: Path, *, reading: Reading, strategy: Strategy | None = None
) -> Compiled:
    """Write the program of a model, planned, and return it."""
    built = build_model(model, reading, strategy=strategy)
    built.write(output)
    return built.compiled


def _in_bands(
    lowered: Lowered,
    ordered: Derivation,
    counted: Rules,
    limits: SearchLimits,
    whole: Container[str] = (),
) -> Derivation | None:
    """Return a model in bands, and its records; None if nothing is gained by them in time.

    Args:
        whole: Names of steps that run whole.
    """
    program = lowered.in_order(ordered)

    def may_run(each: RowStep) -> bool:
        return each.step.name not in whole and runs_by_rows(program, each)

    is_over = limits.is_over()
    in_rows = bands_for_cache(program, may_run, is_over)
    if in_rows is None or is_over():
        return None
    if program.dimensions:
        counted = replace(counted, by_rows=steps_by_rows(program, may_run))
    return lowered.ahead(derive(in_rows, counted), counted)


def _with_callers(
    compiled: Compiled, outcome: Outcome, counted: Rules
) -> tuple[Compiled, Outcome]:
    """Return the program with a memory for inputs and outputs that the caller keeps, if any."""
    if counted.boundary is Boundary.INCLUDE:
        return compiled, outcome
    program, problem, plan = with_callers(
        compiled.program, compiled.source.problem, outcome.plan, counted.alignment
    )
    source = replace(compiled.source, program=program, problem=problem)
    return replace(compiled, source=source), replace(outcome, plan=plan)


def _may_fit(found: Derivation | None) -> bool:
    """Tell whether there may be a plan within the capacity."""
    return found is not None and may_fit(found.problem)
