"""From the description of a system to a placed program."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.memories import spread_over
from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.pipeline.base.placing import Placed, check_bound, check_capacity
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import Built, build_lowered
from arenite.pipeline.making.programs import session_of_assembly, write_loaded
from arenite.pipeline.making.schedule_checks import check_system
from arenite.pipeline.systems.apart import place_apart
from arenite.pipeline.systems.description import SystemDescription, SystemFileError, SystemModel
from arenite.pipeline.systems.joining import join, prefixed, with_operators
from arenite.pipeline.targets.compiling import Compiled, lower_model, rules
from arenite.planner import Plan, Problem, Program, Source, Strategy, derive
from arenite.planner.errors import about_file
from arenite.planner.files import model_digest
from arenite.planner.programs import CostedMemory, SectionKind
from arenite.runtime import SessionMemory
from arenite.runtime.program import Assembly, root_of
from arenite.runtime.rewrites import Kernels, WeightBudgetError
from arenite.strategies import find


@dataclass(frozen=True, slots=True)
class PlannedSystem(Placed):
    """A system and the plan of its memory.

    Attributes:
        built: The program of all models, placed.
        alone: Bytes of the arena that each model takes alone, by name.
        assembly: The program file, checked for every order that the schedule allows.
    """

    built: Built
    alone: Mapping[str, int]
    assembly: Assembly

    @property
    def problem(self) -> Problem:
        """The records that were placed."""
        return self.built.compiled.source.problem

    @property
    def plan(self) -> Plan:
        """The offsets, with the proof."""
        return self.built.plan

    def write(self, output: Path | str) -> SessionMemory:
        """Write the program file, once it was loaded, and return the bytes a session holds.

        Raises:
            UnloadableError: No session runs the program; nothing is written.
            OutputError: The file cannot be written.
        """
        return write_loaded(Path(output), self.built.compiled.source.name, self.assembly)


def plan_system(
    system: SystemDescription | Path | str,
    *,
    strategy: Strategy | None = None,
    capacity: int | None = None,
    memories: Sequence[CostedMemory] = (),
    limits: SearchLimits = UNLIMITED,
) -> PlannedSystem:
    """Plan several models in one arena.

    Each model gets the order, bands and kernels that it has alone, so it computes the same to the
    bit. Then the records of all are placed together.

    Args:
        system: A description, or the TOML file of one.
        strategy: Places the records; `best` by default.
        capacity: Most bytes that the arena may take; None for no limit.
        memories: Memories to spread the records over, in place of those of the description.
        limits: Limits of each search.

    Raises:
        SystemFileError: The models do not fit together, or what is asked for is not supported.
        ModelError: A model cannot be read or run.
        OptionsError: There are memories, which have capacities, and a capacity beside them.
        PlanError: There is no plan, or a model may overwrite what another needs.
    """
    if not isinstance(system, SystemDescription):
        with about_file(system):
            return plan_system(
                SystemDescription.read(Path(system)), strategy=strategy, capacity=capacity,
                memories=memories, limits=limits,
            )  # fmt: skip
    memories = tuple(memories) or system.memories
    if memories:
        check_for_memories(system)
        if capacity is not None:
            raise OptionsError("memories state capacities; leave out --capacity")
    strategy = strategy or find("best")
    built = {name: _built(name, model, limits) for name, model in system.models.items()}
    joined = join(system, {name: _unshared(each.compiled) for name, each in built.items()})
    derivation = derive(joined, replace(rules(capacity), outlines=True))
    source = Source.derived(system.name, digest_of(system), derivation)
    if memories:
        source, outcome, _ = spread_over(source, memories, strategy, limits)
    else:
        check_bound(source.problem)
        outcome = place_apart(strategy, derivation.program, source.problem, limits)
        check_capacity(source.problem, outcome, strategy)
    compiled = Compiled(source, kernels=Kernels.DIRECT)
    alone = {name: each.arena_bytes for name, each in built.items()}
    whole = Built.of(compiled, outcome)
    assembly = whole.assemble()
    with session_of_assembly(assembly, system.name) as session:
        check_system(root_of(session.flatbuffer()))
    return PlannedSystem(whole, alone, assembly)


def _built(name: str, model: SystemModel, limits: SearchLimits) -> Built:
    """Return the program of a model as it is built alone, but for its names.

    Raises:
        SystemFileError: The budget of its weights cannot be met.
    """
    reading = Reading(
        model.dims, model.shapes, model.values, hops=model.hops, weight_budget=model.weights,
        limits=limits,
    )  # fmt: skip
    with about_weights(name, model):
        lowered = lower_model(model.path, reading)
    lowered = replace(lowered, program=prefixed(lowered.program, name))
    return build_lowered(lowered, reading, strategy=find("best"))


@contextmanager
def about_weights(name: str, model: SystemModel) -> Iterator[None]:
    """Name the model in an error about the budget of its weights.

    Raises:
        SystemFileError: That error.
    """
    what = f"model {name!r} has weights={str(model.weights)!r}"
    try:
        yield
    except WeightBudgetError as error:
        raise SystemFileError(
            f"{what}, which need at least {error.least:,} B, the budget is {error.budget:,} B; "
            "raise it"
        ) from error
    except OptionsError as error:
        raise SystemFileError(f"{what}: {error}") from error


def _unshared(compiled: Compiled) -> Program:
    """Return a program with its kernels chosen, none of its storage shared."""
    assert compiled.unshared is not None
    return with_operators(compiled.unshared, compiled.program)


def check_for_memories(system: SystemDescription) -> None:
    """Check that the models of a system may lie in several memories.

    Raises:
        SystemFileError: They run at once.
    """
    if SectionKind.AT_ONCE in {each.kind for each in system.schedule.sections()}:
        raise SystemFileError("models that run at_once share one memory; state no memories")


def digest_of(system: SystemDescription) -> str:
    """Return one digest of all models."""
    digests = map(model_digest, system.paths)
    return hashlib.sha256("".join(digests).encode()).hexdigest()
