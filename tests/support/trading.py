"""Training steps that policies rewrote, run by our runtime."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from arenite.pipeline.making.trading import one_lane, trade
from arenite.pipeline.targets.compiling import Lowered, lower_model, rules
from arenite.planner.placement.strategy import run
from arenite.planner.programs.costs import Budget, Costs, Link
from arenite.planner.programs.policy import Policy
from arenite.planner.rewrites.candidate import Candidate
from arenite.runtime import SessionPort
from arenite.runtime.program import Assembly, program_pieces
from arenite.strategies import find
from arenite.training import TrainingRecipe
from support.gradients import randomised, step_of
from support.tiny_onnx import parse

CARRIED = """(float[2,8,16,16] x) => (y) <float[8,8,1,1] u, float[8,8,1,1] v, float[8,8,1,1] w>
{ a = Conv(x, u) b = Conv(a, v) c = Conv(b, w) d = Conv(c, u)
  f = ReduceMean<axes=[2,3], keepdims=1>(d) g = Mul(a, f)
  y = ReduceMean<axes=[2,3], keepdims=0>(g) }"""
"""Two images, which no bands are cut of, and a skip over most of it."""
COSTS = one_lane(Costs(1e9, 1e9, Link(1e9, 1e9)))


def swish_layers(num_layers: int = 5) -> onnx.ModelProto:
    """Return a network whose backward pass reads three tensors of every layer."""
    layers = range(num_layers)
    weights = "".join(f"float[6,6,3,3] w{n}, " for n in layers)
    steps = [
        f"c{n} = Conv<pads=[1,1,1,1]>({f's{n - 1}' if n else 'x'}, w{n}) g{n} = Sigmoid(c{n})"
        f" s{n} = Mul(c{n}, g{n})"
        for n in layers
    ]
    text = (
        f"(float[2,6,12,12] x) => (y) <{weights}float[4,6] f> {{ {' '.join(steps)} "
        f"p = GlobalAveragePool(s{layers[-1]}) q = Flatten(p) y = Gemm<transB=1>(q, f) }}"
    )
    return randomised(parse(text))


def step_file(folder: Path) -> Path:
    """Return the training step of a small network, of which most is carried at its peak."""
    step = step_of(folder, swish_layers(), TrainingRecipe("cross-entropy", "momentum", 0.01))
    path = folder / "step.onnx"
    onnx.save(step.model, path)
    return path


def masked_step_file(folder: Path) -> Path:
    """Return the training step of a network with a mask of 3,570 booleans, no multiple of 8."""
    text = """(float[2,3,17,15] x) => (y)
    <float[7,3,3,3] w, float[4,7] z, float o = {0}, float s = {6}>
    { c = Conv<pads=[1,1,1,1]>(x, w) r = Clip(c, o, s) p = GlobalAveragePool(r) f = Flatten(p)
      y = Gemm<transB=1>(f, z) }"""
    step = step_of(folder, randomised(parse(text)), TrainingRecipe("cross-entropy"))
    path = folder / "masked.onnx"
    onnx.save(step.model, path)
    return path


def traded(lowered: Lowered, policy: Policy, budget: Budget, costs: Costs = COSTS) -> Candidate:
    """Return what a policy makes of a model."""
    place = partial(run, find("best"))
    given = Candidate.of(lowered.program, rules(), place, 0.0)
    return trade(given, policy, budget, costs, rules(), place)


def assembled(lowered: Lowered, found: Candidate) -> Assembly:
    """Return the program file of it, in parts."""
    return lowered.compiled(found.derivation).assemble(found.plan)


def pieces_of(assembly: Assembly) -> list[bytes]:
    """Return the bytes of a program file."""
    return [bytes(piece) for piece in program_pieces(assembly)]


def lowered_step(folder: Path) -> Lowered:
    """Return the training step of a small network as our runtime runs it."""
    return lower_model(step_file(folder))


def some_feeds(ports: Sequence[SessionPort], seed: int = 0) -> dict[str, np.ndarray]:
    """Return inputs of a training step: numbers, and labels of the first class or the second."""
    generator = np.random.default_rng(seed)
    return {
        port.name: generator.standard_normal(port.shape).astype(port.dtype)
        if port.dtype.kind == "f"
        else generator.integers(0, 2, port.shape).astype(port.dtype)
        for port in ports
    }
