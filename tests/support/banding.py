"""Networks run in bands as the search for a budget would have it, and whole."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from arenite.pipeline.targets.compiling import Lowered, lower_model, rules, runs_by_rows
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.verification import verify
from arenite.planner.programs.costs import Costs, Link
from arenite.planner.rewrites.candidate import Candidate
from arenite.planner.rewrites.derivation import Derivation
from arenite.runtime.program import program_pieces
from arenite.strategies import BandsSearch, StripsSearch, find
from support.running import PoisonedSession

COSTS = Costs(30e9, 20e9, Link(1e9, 1e9), step_s=3e-7)


def placed(problem: Problem) -> Plan:
    """Return the best plan, verified."""
    plan = find("best")(problem)
    verify(problem, plan)
    return plan


def banding(path: Path) -> tuple[Lowered, BandsSearch]:
    """Return a model as steps of our runtime, and the ways to run it in bands."""
    lowered = lower_model(path)
    return lowered, BandsSearch(
        lowered.program, rules(), COSTS, placed, is_allowed=partial(runs_by_rows, lowered.program)
    )


def banded_ways(path: Path) -> tuple[Lowered, StripsSearch]:
    """Return the same, with those that make rows again."""
    lowered = lower_model(path)
    return lowered, StripsSearch(
        lowered.program, rules(), COSTS, placed, is_allowed=partial(runs_by_rows, lowered.program)
    )


def fed(lowered: Lowered, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random inputs of a program."""
    draw = np.random.default_rng(seed)
    found = {}
    for port in lowered.program.inputs:
        tensor = lowered.program.tensors[port.tensor]
        shape, dtype = port.shape(tensor.shape), np.dtype(tensor.dtype.label)
        if dtype.kind == "f":
            found[port.name] = draw.standard_normal(shape).astype(dtype)
        else:
            found[port.name] = draw.integers(-128, 128, shape).astype(dtype)
    return found


def outputs(
    lowered: Lowered, banded: Candidate, arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return what a banded program makes, whatever dead memory holds."""
    return outputs_of(lowered, banded.derivation, banded.plan, arrays)


def outputs_of(
    lowered: Lowered, derivation: Derivation, plan: Plan, arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return what a program makes by a plan, whatever dead memory holds."""
    assembly = lowered.compiled(derivation).assemble(plan)
    data = b"".join(bytes(piece) for piece in program_pieces(assembly))
    with PoisonedSession([data]) as session:
        return session.run(dict(arrays))


def assert_same_bits(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> None:
    """Compare outputs bit for bit."""
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.tobytes() == np.asarray(theirs[name]).tobytes(), name
