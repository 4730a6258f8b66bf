"""The kernels of a model's convolutions, measured on this machine step by step."""

import statistics
from collections import defaultdict

from arenite.pipeline.base.observing import SILENT, Observer
from arenite.pipeline.making.programs import random_inputs, session_of
from arenite.pipeline.targets.compiling import Tuning
from arenite.planner import Program
from arenite.runtime import processor_name
from arenite.runtime.rewrites import (
    DIRECT,
    TILES_HERE,
    all_by,
    measured,
    steps_by_tiles,
    takes_tiles,
)

_ROUNDS = 7
_SEED = 0


def tuned(program: Program, observer: Observer = SILENT) -> Tuning:
    """Return which tiles are the quickest on this processor.

    Every candidate runs the whole program on one thread, in turn, so that each step is measured
    with the caches as its neighbours leave them, and other work of the machine affects all alike.

    Raises:
        UnloadableError: No session runs the program.
    """
    if not any(takes_tiles(program, step) for step in program.steps):
        return Tuning(processor_name(), measured({}))
    arrays = random_inputs(program, _SEED)
    times: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    programs = {tile: all_by(program, tile) for tile in (DIRECT, *TILES_HERE)}
    sessions = {tile: session_of(each) for tile, each in programs.items()}
    by_tiles = {tile: steps_by_tiles(each) for tile, each in programs.items()}
    with observer.searching("tune") as search:
        for number in range(_ROUNDS):
            search.show(f"tune: round {number + 1} of {_ROUNDS}")
            for tile, session in sessions.items():
                session.run(arrays)
                for step in session.profile():
                    if tile == DIRECT or step.name in by_tiles[tile]:
                        times[step.name][tile].append(step.nanoseconds)
    for session in sessions.values():
        session.close()
    medians = {
        name: {tile: statistics.median(each) for tile, each in by_tile.items()}
        for name, by_tile in times.items()
    }
    return Tuning(processor_name(), measured(medians))
