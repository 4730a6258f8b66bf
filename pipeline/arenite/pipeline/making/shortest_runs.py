"""How long the shortest run of a program takes: one token of a decoder, its cache full."""

import math
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from arenite.pipeline.making.programs import random_inputs
from arenite.planner import Costs, Program
from arenite.planner.programs import COMPUTE
from arenite.planner.sizes import Size, at, first_sizes, with_sizes
from arenite.runtime import Session
from arenite.runtime.operators import LoadWeights

_ROUNDS = 5
"""Rounds in which programs take turns."""
_ROUND_S = 0.1
"""Seconds that a program runs in each round, at least."""


def predicted_s(program: Program, costs: Costs, slowdown: float) -> float:
    """Return the predicted seconds of the shortest run of a program.

    Weights that are not resident come over the link of the machine: before the step that reads
    them, or beside the steps before it.

    Args:
        program: The steps, whole, with those that load weights.
        slowdown: Of its bands: their time over that of the whole program, less 1.
    """
    program = _of_one_size(program)
    computing = loading = 0.0
    is_beside = False
    for step in program.steps:
        if isinstance(step.operator, LoadWeights):
            loading += costs.link.back_s(program.constants[step.inputs[0]].nbytes)
            is_beside = step.lane != COMPUTE
        else:
            computing += costs.seconds(program, step)
    computing *= 1 + slowdown
    return max(computing, loading) if is_beside else computing + loading


def measured_s(paths: Sequence[Path], program: Program) -> list[float]:
    """Return the median seconds of the shortest run of each program file, on one thread.

    They take turns, so that other work of the machine affects all of them. Weights that are not
    resident come from the file, as it is: the system may have it in memory.

    Args:
        paths: Files of one model.
        program: The steps of one of them.
    """
    with ExitStack() as stack:
        runs = [_ShortestRun(stack.enter_context(Session(path)), program) for path in paths]
        rounds = [[run.least_s(_ROUND_S) for run in runs] for _ in range(_ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def _shortest(program: Program) -> dict[str, int]:
    """Return the lowest sizes, with as many rows of caches as there is room for."""
    return {each.name: each.high if each.grows else each.low for each in program.dimensions}


def _of_one_size(program: Program) -> Program:
    """Return a program of the sizes of its shortest run in the place of one for a range."""
    sizes = _shortest(program)
    if not sizes:
        return program

    def here(size: Size) -> int:
        return at(size, sizes)

    return replace(
        program,
        tensors={name: with_sizes(each, here) for name, each in program.tensors.items()},
        steps=tuple(with_sizes(each, here) for each in program.steps),
        dimensions=(),
        rows={},
    )


class _ShortestRun:
    """A session of a program, its caches full but for what a run adds."""

    def __init__(self, session: Session, program: Program) -> None:
        self._session = session
        sizes = _shortest(program)
        growing = [each for each in program.dimensions if each.grows]
        self._full = {each.name: each.high for each in growing}
        if growing and not session.states.can_truncate:
            self._full = dict.fromkeys(self._full, 0)
        self._arrays = random_inputs(program, 0, {**sizes, **self._full})
        for chunk in (first_sizes(program.dimensions), sizes):
            added = {each.name: at(each.growth, chunk) for each in growing}
            while growing and all(
                held + added[name] <= self._full[name]
                for name, held in session.states.lengths.items()
            ):
                session.run(random_inputs(program, 0, {**chunk, **session.states.lengths}))

    def least_s(self, round_s: float) -> float:
        """Return the least seconds of a run, of as many as fill a round of so many seconds."""
        states = self._session.states
        best, end = math.inf, time.perf_counter() + round_s
        while best == math.inf or time.perf_counter() < end:
            if states.lengths:
                if states.can_truncate:
                    states.truncate(min(self._full.values()))
                else:
                    states.reset()
            begun = time.perf_counter()
            self._session.run(self._arrays, copy=False)
            best = min(best, time.perf_counter() - begun)
        return best
