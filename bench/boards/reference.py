"""The outputs that a model's C source must give, from the interpreters that it is measured by."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import tflite
from numpy.typing import NDArray

Array = NDArray[Any]
ARENA: Final = 64 << 20
_DTYPES: Final = {
    getattr(tflite.TensorType, name.upper()): name
    for name in ("float32", "int32", "uint8", "int64", "bool", "int16", "int8")
}


def random_inputs(path: Path, num_runs: int, seed: int = 0) -> list[list[Array]]:
    """Return the inputs of each run: noise, the first over the whole range of an integer type.

    The others take a part of the range each, as pictures differ in light: outputs of networks
    that average would all be alike.
    """
    random = np.random.default_rng(seed)
    graph = tflite.Model.GetRootAs(path.read_bytes(), 0).Subgraphs(0)
    tensors = [graph.Tensors(graph.Inputs(n)) for n in range(graph.InputsLength())]
    ports = [(each.ShapeAsNumpy(), np.dtype(_DTYPES[each.Type()])) for each in tensors]
    return [[_drawn(random, *port, whole=n == 0) for port in ports] for n in range(num_runs)]


def _drawn(random: np.random.Generator, shape: Any, dtype: np.dtype[Any], *, whole: bool) -> Array:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        if not whole:
            low, high = sorted(random.integers(low, high, 2, endpoint=True).tolist())
        return np.asarray(random.integers(low, high, shape, dtype, endpoint=True))
    shift = 0.0 if whole else random.normal()
    return np.asarray(shift + random.standard_normal(shape), dtype)


def joined(runs: Sequence[Sequence[Array]]) -> bytes:
    """Return the arrays of all runs, one behind the other, as a board reads and writes them."""
    return b"".join(np.ascontiguousarray(array).tobytes() for run in runs for array in run)


def tflm_outputs(path: Path, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Return what TensorFlow Lite Micro's interpreter makes of the runs, states kept between."""
    from tflite_micro.python.tflite_micro.runtime import Interpreter

    interpreter = Interpreter.from_bytes(path.read_bytes(), arena_size=ARENA)
    count = tflite.Model.GetRootAs(path.read_bytes(), 0).Subgraphs(0).OutputsLength()
    found = []
    for arrays in runs:
        for index, array in enumerate(arrays):
            interpreter.set_input(array, index)
        interpreter.invoke()
        found.append([np.array(interpreter.get_output(index)) for index in range(count)])
    return found


def litert_outputs(path: Path, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Return what LiteRT's reference kernels make of the runs, states kept between."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    found = []
    for arrays in runs:
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        found.append([interpreter.get_tensor(each["index"]) for each in outputs])
    return found
