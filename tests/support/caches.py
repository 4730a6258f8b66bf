"""A model with a cache: the largest of all rows so far, of keys of two heads."""

from pathlib import Path

import onnx

from arenite.pipeline.base import Reading
from arenite.pipeline.base.reading import StatedDims, lengths_of
from arenite.pipeline.targets.compiling import Compiled, compile_model
from arenite.runtime.rewrites import Caches
from support.tiny_onnx import parse, save

CACHE = """(float[1,s,4] x, float[1,2,p,2] past) => (float[1,2,2] y, float[1,2,t,2] present)
<int64[4] h = {0,0,2,2}>
{ r = Reshape(x, h) n = Transpose<perm=[0,2,1,3]>(r) present = Concat<axis=2>(past, n)
  y = ReduceMax<axes=[2], keepdims=0>(present) }"""
DIMS = {"s": "1..4", "p": "0..9+"}


def compiled(
    folder: Path,
    text: str = CACHE,
    dims: StatedDims = DIMS,
    model: onnx.ModelProto | None = None,
    cache: Caches | None = None,
) -> Compiled:
    """Return the program of a model, by default of that one, whose cache grows up to 9 rows."""
    path = save(folder, parse(text) if model is None else model)
    return compile_model(path, Reading(*lengths_of(dims, None), cache=cache))
