"""How quick this machine is, by small programs on one thread of our runtime."""

import time

from arenite.pipeline.calibration.programs import (
    convolutions,
    depthwise_convolutions,
    passes,
    separable_convolutions,
)
from arenite.pipeline.making.costs import DESKTOP, FLOAT, INTEGER
from arenite.pipeline.making.programs import random_inputs
from arenite.pipeline.targets.compiling import Compiled, rules
from arenite.planner.costs import Costs
from arenite.planner.derive import Derivation, derive
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.program import Program
from arenite.planner.source import Source
from arenite.planner.verify import verify
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D
from arenite.runtime.program import file as program_file
from arenite.runtime.session import Session
from arenite.strategies import find
from arenite.strategies.bands.search import BandsSearch

_ROUNDS = 5
_ROUND_S = 0.04
"""Seconds that each program runs in a round, at least."""
_LEAST_STEP_S = 1e-9

Runnable = tuple[Derivation, Plan]


def measured() -> dict[str, Costs]:
    """Return what work costs here, by type of element. It takes a few seconds."""
    stream = _whole(passes(4, 64, 128))
    runnables: dict[str, Runnable] = {"bytes": stream}
    for label in (FLOAT, INTEGER):
        # In most networks the filters of one row and column do most of the work.
        runnables[f"{label} conv"] = _whole(convolutions(label, (1,) * 9 + (3,), 28, 64))
        runnables[f"{label} depthwise"] = _whole(depthwise_convolutions(label, 8, 28, 128))
        small = separable_convolutions(label, 4, 32, 16)
        runnables[f"{label} whole"] = _whole(small)
        runnables[f"{label} bands"] = _in_bands(small)
    seconds = _least_seconds(runnables)
    found: dict[str, Costs] = {}
    for label in (FLOAT, INTEGER):
        work = {
            kind: _work(runnables[f"{label} {name}"]) / seconds[f"{label} {name}"]
            for kind, name in ((Conv2D, "conv"), (DepthwiseConv2D, "depthwise"))
        }
        whole, bands = (f"{label} {name}" for name in ("whole", "bands"))
        turns = _num_steps(runnables[bands]) - _num_steps(runnables[whole])
        found[label] = Costs(
            work[Conv2D],
            _bytes_touched(stream) / seconds["bytes"],
            DESKTOP.link,
            {kind.__name__: speed for kind, speed in work.items()},
            max((seconds[bands] - seconds[whole]) / max(1, turns), _LEAST_STEP_S),
        )
    return found


def _least_seconds(runnables: dict[str, Runnable]) -> dict[str, float]:
    """Return the least seconds of a run of each; they take turns, so that all meet the same."""
    best = dict.fromkeys(runnables, float("inf"))
    sessions = {name: _session(each) for name, each in runnables.items()}
    arrays = {name: random_inputs(each[0].program, 0) for name, each in runnables.items()}
    for _ in range(_ROUNDS):
        for name, session in sessions.items():
            end = time.perf_counter() + _ROUND_S
            while time.perf_counter() < end:
                begun = time.perf_counter()
                session.run(arrays[name])
                best[name] = min(best[name], time.perf_counter() - begun)
    for session in sessions.values():
        session.close()
    return best


def _whole(program: Program) -> Runnable:
    found = derive(program, rules())
    return found, _placed(found.problem)


def _in_bands(program: Program) -> Runnable:
    *_, least = BandsSearch(program, rules(), DESKTOP, _placed).frontier()
    return least.derivation, least.plan


def _placed(problem: Problem) -> Plan:
    plan = find("best")(problem)
    verify(problem, plan)
    return plan


def _session(runnable: Runnable) -> Session:
    derivation, plan = runnable
    source = Source.derived("calibration", "", derivation)
    return Session.of_pieces(
        list(program_file.pieces(Compiled(source).assemble(plan))), "calibration"
    )


def _work(runnable: Runnable) -> int:
    program = runnable[0].program
    return sum(step.operator.multiply_adds(program.operands(step)) for step in program.steps)


def _bytes_touched(runnable: Runnable) -> int:
    """Return what steps read and write, as predictions count it: twice what they make."""
    program = runnable[0].program
    return 2 * sum(program.tensors[name].size for step in program.steps for name in step.writes)


def _num_steps(runnable: Runnable) -> int:
    return len(runnable[0].program.steps)
