"""Programs whose weights are coded, and streamed into the arena."""

from pathlib import Path

import numpy as np
import onnx

from arenite import compression
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import Compiled, compile_model
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import WeightBudget
from arenite.strategies import find
from support.tiny_onnx import parse, save, with_random_weights

KINDS = {
    "many values": {},
    "shared": {"num_values": 32},
    "pruned": {"num_values": 32, "density": 0.1},
}
"""Weights to draw, by what is special about their values."""

_NETWORK = """(float[1,3,20,20] x) => (y)
<float[40,3,3,3] a, float[40] b, float[100,40,3,3] c, float[100] d, float[77,100,1,1] e,
float[1925,200] f, float[200] g, float[200,50] h>
{ p = Conv<pads=[1,1,1,1], strides=[2,2]>(x, a, b) q = Relu(p)
  r = Conv<pads=[1,1,1,1], strides=[2,2]>(q, c, d) s = Relu(r) t = Conv(s, e) u = Flatten(t)
  v = Gemm(u, f, g) w = Relu(v) y = MatMul(w, h) }"""


def shared_weights(
    shape: int | tuple[int, ...], density: float, num_values: int, seed: int = 0
) -> np.ndarray:
    """Return weights of which so many remain, with values as skewed as those of networks."""
    random = np.random.default_rng(seed)
    codebook = np.linspace(-1, 1, num_values - 1, dtype=np.float32) + np.float32(1e-3)
    places = (random.standard_normal(shape) * num_values / 6 + num_values / 2).astype(int)
    weights = codebook[np.clip(places, 0, num_values - 2)]
    return np.where(random.random(shape) < density, weights, np.float32(0))


def network(folder: Path, *, num_values: int | None = None, density: float = 1.0) -> Path:
    """Write a network of convolutions and products; with so many values a layer, or any."""
    model = with_random_weights(parse(_NETWORK))
    if num_values is not None:
        for index, tensor in enumerate(model.graph.initializer):
            share = density if len(tensor.dims) > 1 else 1.0
            weights = shared_weights(tuple(tensor.dims), share, num_values, index)
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights * np.float32(0.1), tensor.name))
    return save(folder, model)


def code(weights: np.ndarray) -> bytes | None:
    """Return the code of weights, if they have one."""
    coded = compression.code(weights)
    return None if coded is None else bytes(coded)


def build_coded(
    path: Path, folder: Path, budget: WeightBudget | None = None, *, coded: bool = True
) -> tuple[Path, Compiled]:
    """Write the program of a model and return it with what it is made of."""
    compiled = compile_model(path, Reading(weight_budget=budget))
    file = folder / f"{path.stem}.arena"
    plan = find("best")(compiled.source.problem)
    write_assembly(file, compiled.assemble(plan, code if coded else None))
    return file, compiled
