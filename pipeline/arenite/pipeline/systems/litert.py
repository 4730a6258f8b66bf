"""A system for LiteRT: an interpreter for each model, all with their tensors in one arena."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.pipeline.base.placing import Placed
from arenite.pipeline.systems.description import SystemDescription
from arenite.pipeline.systems.foreign import (
    SharedArena,
    check_as_in_file,
    join_models,
    share_arena,
)
from arenite.planner import Plan, Strategy
from arenite.planner.errors import about_file
from arenite.runtime.targets.litert import (
    RULES,
    PlannedInterpreter,
    SharedBytes,
    arena_of,
    probe_arena,
)
from arenite.strategies import find


@dataclass(frozen=True, slots=True)
class LitertSystem(Placed):
    """A system that interpreters of TFLite or LiteRT run.

    An input that another model hands on is read where it lies: leave it out. Write the other
    inputs of a model just before its run. The order is the caller's to keep.

    Attributes:
        interpreters: By name of the model.
        arena: The bytes that all of them share.
        shared: The records of all models, and their offsets.
    """

    interpreters: Mapping[str, PlannedInterpreter]
    arena: NDArray[np.uint8]
    shared: SharedArena

    @property
    def plan(self) -> Plan:
        """The offsets, with the proof."""
        return self.shared.plan


def interpret_system(
    system: SystemDescription | Path | str, *, strategy: Strategy | None = None,
    limits: SearchLimits = UNLIMITED,
) -> LitertSystem:  # fmt: skip
    """Return interpreters of TFLite or LiteRT for several models in one arena.

    States, weights and what kernels allocate lie outside the arena.

    Args:
        system: A description of TFLite models, or the TOML file of one.
        strategy: Places the records; `best` by default.
        limits: Limits of the search.

    Raises:
        SystemFileError: The models do not fit together, or what is asked for is not possible.
        PlanError: There is no plan, or a model may overwrite what another needs.
        UnsupportedModelError: The runtime refuses a model.
        UnexpectedRuntimeError: The runtime is not one we know, or rejects the plan.
        MissingDependencyError: There is no runtime.
    """
    if not isinstance(system, SystemDescription):
        with about_file(system):
            read = SystemDescription.read(Path(system))
            return interpret_system(read, strategy=strategy, limits=limits)
    check_as_in_file(system, "LiteRT")
    probes = {name: probe_arena(each.path) for name, each in system.models.items()}
    programs = {name: each.program for name, each in probes.items()}
    joined = join_models(system, programs)
    shared = share_arena(joined, RULES, strategy or find("best"), limits)
    arena = arena_of(shared.plan.height)
    interpreters = {
        name: PlannedInterpreter.sharing(
            model.path, probes[name], shared.problem,
            SharedBytes(arena, shared.plan, shared.places(name)),
        )
        for name, model in system.models.items()
    }  # fmt: skip
    return LitertSystem(interpreters, arena, shared)
