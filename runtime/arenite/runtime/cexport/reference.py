"""The inputs and outputs that the test of an exported model checks.

The outputs are those of a reference, never of the exported program: TensorFlow Lite's reference
kernels to the bit where their package is installed, else our runtime, whose scales of integers
are floats and so may round another way.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner import Program, TensorKind, model_format
from arenite.runtime.cexport.base.layout import CPort, Interface
from arenite.runtime.cexport.base.options import Vectors

_PROGRAM: Final = Path(__file__).with_name("reference_process.py")
_TIME_LIMIT_S: Final = 120
_SEED: Final = 0
_FLOAT_TOLERANCE: Final = 1e-4
_BYTE_TOLERANCE: Final = 4.0
_ROUNDED_TOLERANCE: Final = 0.1
_SAME_NETWORK: Final = 1e-3

_INTERPRETERS: Final = (
    ("tflm", "tflite_micro", "TensorFlow Lite Micro's interpreter"),
    ("litert", "ai_edge_litert", "LiteRT's reference kernels"),
)

Arrays: TypeAlias = dict[str, NDArray[Any]]
Run: TypeAlias = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]


def vectors(
    path: Path, program: Program, interface: Interface, run: Run, *, double_rounding: bool
) -> Vectors:
    """Return seeded inputs of a model, and the outputs of the best reference there is.

    Args:
        path: The model.
        program: What was exported of it.
        interface: How callers see it.
        run: Runs it by our runtime; takes and returns arrays in the model's own axes.
        double_rounding: Whether integers are rounded as the interpreters do.
    """
    inputs = _drawn(interface)
    given = {each.port.name: _to_model(inputs[each.port.name], each) for each in interface.inputs}
    made = run(given)
    ours = {each.port.name: _to_stored(made[each.port.name], each) for each in interface.outputs}
    if model_format(path) == "tflite" and double_rounding:
        for kind, package, label in _INTERPRETERS:
            outputs = _interpreted(kind, package, path, interface, inputs)
            if outputs is not None and (_rounds(program) or _is_same_network(outputs, ours)):
                floats = any(each.dtype.kind == "f" for each in outputs.values())
                return Vectors(inputs, outputs, label, _FLOAT_TOLERANCE if floats else 0.0)
    tolerance = max((_tolerance(program, each) for each in interface.outputs), default=0.0)
    return Vectors(inputs, ours, "Arenite's runtime", tolerance)


def _is_same_network(outputs: Arrays, ours: Arrays) -> bool:
    """Tell whether an interpreter computes a network of floats as we do.

    Where weights alone are bytes, it may round what flows through the network to bytes too.
    """
    return all(
        array.dtype.kind != "f"
        or np.abs(array - ours[name]).max(initial=0.0)
        <= _SAME_NETWORK * max(1.0, np.abs(ours[name]).max(initial=0.0))
        for name, array in outputs.items()
    )


def _tolerance(program: Program, port: CPort) -> float:
    """Return how far an output may be from that of our runtime.

    Where bytes are rounded on the way, that is some of their steps.
    """
    if port.tensor.dtype.label != "float32":
        return _BYTE_TOLERANCE
    root, _ = program.root(port.tensor.name)
    scales = [
        stated.scales[0] * _BYTE_TOLERANCE
        for step in program.steps
        for name in (step.inputs[:1] if root in step.outputs else ())
        if (stated := program.tensors[name].quantisation) is not None
    ]
    if not scales and _rounds(program):
        return _ROUNDED_TOLERANCE
    return max([_FLOAT_TOLERANCE, *scales])


def _rounds(program: Program) -> bool:
    """Tell whether what flows through a network is rounded to integers that stand for numbers."""
    return any(
        each.quantisation is not None and each.kind is not TensorKind.CONSTANT
        for each in program.tensors.values()
    )


def _drawn(interface: Interface) -> Arrays:
    random = np.random.default_rng(_SEED)
    found: Arrays = {}
    for each in interface.inputs:
        dtype, shape = np.dtype(each.tensor.dtype.label), each.tensor.shape
        if dtype.kind == "f":
            found[each.port.name] = random.standard_normal(shape).astype(dtype)
        elif dtype.kind == "b":
            found[each.port.name] = random.integers(0, 2, shape).astype(dtype)
        else:
            low, high = (0, 2) if dtype.itemsize > 1 else (np.iinfo(dtype).min, 128)
            found[each.port.name] = random.integers(low, high, shape).astype(dtype)
    return found


def _to_model(array: NDArray[Any], port: CPort) -> NDArray[Any]:
    """Return stored elements in the model's axes."""
    axes = port.port.axes
    return np.ascontiguousarray(array if axes is None else array.transpose(np.argsort(axes)))


def _to_stored(array: NDArray[Any], port: CPort) -> NDArray[Any]:
    axes = port.port.axes
    stored = array if axes is None else array.transpose(axes)
    return np.ascontiguousarray(stored).reshape(port.tensor.shape)


def _interpreted(
    kind: str, package: str, path: Path, interface: Interface, inputs: Arrays
) -> Arrays | None:
    """Return the outputs of an interpreter, None if it is absent or does not run the model."""
    if find_spec(package) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "inputs.npz", Path(folder) / "outputs.npz"
        ordered = [inputs[each.port.name] for each in interface.inputs]
        with given.open("wb") as stream:
            np.savez(stream, *ordered)
        command = [sys.executable, str(_PROGRAM), kind, str(path), str(given), str(made)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIME_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode or not made.is_file():
            return None
        with np.load(made) as stored:
            found = [stored[f"arr_{index}"] for index in range(len(stored.files))]
    if len(found) < len(interface.outputs):
        return None
    outputs: Arrays = {}
    for port, array in zip(interface.outputs, found, strict=False):
        if array.size != port.tensor.num_elements or array.dtype.name != port.tensor.dtype.label:
            return None
        outputs[port.port.name] = array.reshape(port.tensor.shape)
    return outputs
