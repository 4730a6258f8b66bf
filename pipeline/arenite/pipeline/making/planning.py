"""A model to a plan of its memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.pipeline.base.errors import OptionsError, UnloadableError
from arenite.pipeline.base.memories import spread_over
from arenite.pipeline.base.placing import Outcome, Placed, check_bound, check_capacity, place
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.base.text import both, distance, plural
from arenite.pipeline.making.programs import held_bytes
from arenite.pipeline.targets.choice import ARENITE, Chosen, choose_as_written, choose_target
from arenite.pipeline.targets.compiling import Compiled
from arenite.planner import DEFAULT_ALIGNMENT, Plan, PlanFile, Problem, Source, Strategy, planfile
from arenite.planner.placement import verify_sizes
from arenite.planner.planfile import ModelReference
from arenite.planner.programs import CostedMemory
from arenite.runtime import SessionMemory
from arenite.strategies import Spread, find


@dataclass(frozen=True, slots=True)
class PlannedModel(Placed):
    """A model and the plan of its memory.

    Attributes:
        chosen: The model, read for a target.
        outcome: The plan, and how it was found.
        held: Bytes that a session of our runtime holds; None for another target.
        spread: Cost of several memories; None for one.
    """

    chosen: Chosen
    outcome: Outcome
    held: SessionMemory | None = None
    spread: Spread | None = None

    @property
    def source(self) -> Source:
        """The program and its records, in the memories that were asked for."""
        return self.chosen.source

    @property
    def problem(self) -> Problem:
        """The records that were placed."""
        return self.source.problem

    @property
    def plan(self) -> Plan:
        """The offsets, with the proof."""
        return self.outcome.plan

    @property
    def offsets(self) -> Mapping[str, int]:
        """Offset of each record in bytes, by the record's name."""
        names = (record.name for record in self.problem.records)
        return dict(zip(names, self.plan.offsets, strict=True))

    @property
    def file(self) -> PlanFile:
        """The plan as a plan file states it."""
        reading, source = self.chosen.reading, self.source
        alignments = (record.alignment for record in source.problem.records)
        return PlanFile(
            ModelReference(
                source.name,
                source.digest,
                reading.dims,
                reading.shapes,
                "" if reading.weight_budget is None else str(reading.weight_budget),
                reading.values,
                reading.activations or "",
                reading.cache or "",
            ),
            self.chosen.target.name,
            reading.boundary,
            reading.alignment or min(alignments, default=DEFAULT_ALIGNMENT),
            self.chosen.aliases,
            source.problem,
            self.plan,
            dimensions=source.dimensions,
        )

    def save(self, path: Path | str) -> None:
        """Write the plan file.

        Raises:
            OutputError: It cannot be written.
        """
        planfile.write(Path(path), self.file)

    def __str__(self) -> str:
        return (
            f"{self.source.name}: {both(self.height)} {self.chosen.phrase}, "
            f"{distance(self.plan)}; {plural(len(self.problem.records), 'record')}, "
            f"{both(self.problem.naive)} without reuse"
        )

    def _repr_html_(self) -> str:
        from arenite.pipeline.report.notebook import plan_as_html

        return plan_as_html(str(self), self.source, self.plan)


def plan_model(
    model: Path,
    reading: Reading | None = None,
    *,
    strategy: Strategy | None = None,
    capacity: int | None = None,
    memories: Sequence[CostedMemory] = (),
) -> PlannedModel:
    """Plan the memory of a model.

    Args:
        model: An ONNX or TFLite model, or a CSV of records.
        strategy: Places the records; `best` by default.
        capacity: Most bytes that the arena may take; None for no limit.
        memories: Memories to spread the records over; one by default.

    Raises:
        ModelError: The model cannot be read.
        PlanError: There is no plan.
        OptionsError: Options exclude each other.
    """
    if memories and capacity is not None:
        raise OptionsError("--memory states capacities; leave out --capacity")
    reading = reading or Reading()
    strategy = strategy or find("best")
    chosen = choose_target(reading, model, capacity)
    stated = chosen.source.problem.capacity
    if capacity is None and stated is not None and chosen.source.program is None:
        reading.limits.observer.note(
            f"{chosen.source.name}: the capacity of {stated:,} B comes from the file's name, as "
            "in instances of minimalloc; --capacity sets another"
        )
    try:
        return _planned(chosen, strategy, memories)
    except UnloadableError as error:
        if reading.target is not None:
            raise
        chosen = choose_as_written(reading, model, capacity, error.reason)
        return _planned(chosen, strategy, memories)


def _planned(chosen: Chosen, strategy: Strategy, memories: Sequence[CostedMemory]) -> PlannedModel:
    source, limits, spread = chosen.source, chosen.reading.limits, None
    if chosen.note is not None:
        limits.observer.note(chosen.note)
    if memories:
        source, outcome, spread = spread_over(source, memories, strategy, limits)
    else:
        check_bound(source.problem)
        outcome = place(strategy, source.problem, limits)
        check_capacity(source.problem, outcome, strategy)
    verify_sizes(source.problem, source.dimensions)
    held = held_bytes(Compiled(source), outcome.plan) if chosen.target is ARENITE else None
    return PlannedModel(replace(chosen, source=source), outcome, held, spread)
