"""Networks run in bands as the search for a budget would have it, and whole; random ones too."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

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


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Draw a network of spatial steps with windows of every kind, some with a way around."""
    rows, columns = draw(st.integers(1, 18)), draw(st.integers(1, 9))
    channels, steps, weights = 4, [], []
    last, count = "x", draw(st.integers(1, 5))
    shape = [rows, columns]
    for number in range(count):
        kind = draw(st.sampled_from(["conv", "depthwise", "pool", "add", "relu", "resize"]))
        name = f"t{number}"
        if kind in ("conv", "depthwise", "pool"):
            kernel = [draw(st.integers(1, 3)) for _ in range(2)]
            strides = [draw(st.integers(1, 2)) for _ in range(2)]
            dilations = [draw(st.integers(1, 2)) for _ in range(2)] if kind != "pool" else [1, 1]
            pads = [draw(st.integers(0, k - 1)) for k in kernel * 2]
            made = [
                (shape[a] + pads[a] + pads[a + 2] - dilations[a] * (kernel[a] - 1) - 1)
                // strides[a]
                + 1
                for a in range(2)
            ]
            if min(made) < 1:
                continue
            shape = made
            given = f"strides={strides}, pads={pads}, dilations={dilations}"
            if kind == "pool":
                steps.append(f"{name} = MaxPool<{given}, kernel_shape={kernel}>({last})")
            else:
                group = channels if kind == "depthwise" else 1
                weights.append(
                    f"float[{channels},{channels // group},{kernel[0]},{kernel[1]}] w{number}"
                )
                steps.append(f"{name} = Conv<{given}, group={group}>({last}, w{number})")
        elif kind == "add":
            steps.append(f"r{number} = Relu({last}) {name} = Add(r{number}, {last})")
        elif kind == "relu":
            steps.append(f"{name} = Relu({last})")
        else:
            weights.append(f"float[4] s{number} = {{1,1,2,2}}")
            steps.append(
                f'{name} = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", '
                f'nearest_mode="floor">({last}, , s{number})'
            )
            shape = [2 * length for length in shape]
        last = name
    steps.append(f"y = Abs({last})")
    return (
        f"(float[1,{channels},{rows},{columns}] x) => (y) <{', '.join(weights)}> "
        f"{{ {' '.join(steps)} }}"
    ).replace("<>", "")
