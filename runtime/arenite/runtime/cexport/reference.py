"""The inputs and outputs that the test of an exported model checks.

The outputs are those of a reference, never of the exported program: TensorFlow Lite's reference
kernels to the bit where their package is installed, else our runtime, whose scales of integers
are floats and so may round another way.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner import DType, Program, Step, TensorKind, model_format
from arenite.planner.errors import OutputError
from arenite.runtime.cexport.base.layout import CPort, Interface
from arenite.runtime.cexport.base.options import Rounding, Vectors
from arenite.runtime.cexport.steps.hybrid import QuantiseRows
from arenite.runtime.operators.convolution import Convolution
from arenite.runtime.operators.elementwise import Binary, Convert, Unary, UnaryFunction
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.movement import Copy

_PROGRAM: Final = Path(__file__).with_name("reference_process.py")
_TIME_LIMIT_S: Final = 120
_SEED: Final = 0
_RUNS: Final = 4
_FEWER_RUNS: Final = 2
_LARGE_OUTPUTS: Final = 1 << 16
"""Elements of outputs from which on fewer runs are tested."""
_UNITS: Final = 4
"""Largest difference of integers whose reference rounds in another way."""
_SAME_NETWORK: Final = 5e-6
"""Largest difference of floats, in parts of the output's scale, of two ways to add them up."""
_SHARE_OF_ROUNDED: Final = 0.1
"""The same of floats that are computed from such integers, in parts of the output's scale."""
_SHARE_OF_OPERANDS: Final = 0.02
"""The same where layers with weights of bytes round operands whose last bits may differ."""
_MARGIN: Final = 4
"""Times that outputs of floats may differ as much as by the last bits of the inputs."""
_ENDS: Final = np.array([-np.inf, np.inf], np.float32)
_MOST_OF_LAST_BITS: Final = 1e-3
"""Most that this makes the difference, in parts of the output's scale."""

_INTERPRETERS: Final = (
    ("tflm", "tflite_micro", "TensorFlow Lite Micro's interpreter"),
    ("litert", "ai_edge_litert", "LiteRT's reference kernels"),
)

Arrays: TypeAlias = dict[str, NDArray[Any]]
Run: TypeAlias = Callable[[Sequence[Mapping[str, NDArray[Any]]]], Sequence[Mapping[str, Any]]]


def vectors(
    path: Path,
    program: Program,
    interface: Interface,
    run: Run,
    *,
    rounding: Rounding,
    is_rewritten: bool = False,
    handed: Mapping[str, Sequence[NDArray[Any]]] | None = None,
) -> Vectors:
    """Return seeded inputs of several runs, and the outputs of the best reference there is.

    Integers are compared to the bit with a reference that rounds as the export does.

    Args:
        path: The model.
        program: The exported program.
        interface: Inputs and outputs as callers see them.
        run: Runs the model by our runtime, once for each set of inputs, states kept from run to
            run; takes and returns arrays in the model's own axes.
        rounding: How products of integers are rounded.
        is_rewritten: Whether the program's inputs and outputs are others than the model's, so that
            no other runtime can run it.
        handed: Inputs that another model makes, for each run, in the model's own axes; it has as
            many as there are runs, or sets the number of runs.
    """
    handed = handed or {}
    size = sum(each.tensor.num_elements for each in interface.outputs)
    given = Vectors(_drawn(interface), (), "")
    count = _FEWER_RUNS if size > _LARGE_OUTPUTS else _RUNS
    count = min([count, *map(len, handed.values())])
    ports = {port.port.name: port for port in interface.inputs}
    runs = [
        given.inputs_of(index)
        | {name: _to_stored(arrays[index], ports[name]) for name, arrays in handed.items()}
        for index in range(count)
    ]
    units = int(rounds(program) and _computes_in_floats(program))
    asked = [
        {p.port.name: _to_model(each[p.port.name], p) for p in interface.inputs} for each in runs
    ]
    made = run(asked)
    ours = tuple(
        {p.port.name: _to_stored(each[p.port.name], p) for p in interface.outputs} for each in made
    )
    share = _SHARE_OF_OPERANDS if _rounds_inexact_floats(program) else given.share
    if not rounds(program) and any(each.c_type == "float" for each in interface.inputs):
        moved = _MARGIN * _largest_share(
            made, run([_with_last_bits_moved(each, handed, share) for each in asked])
        )
        share = max(share, min(moved, _MOST_OF_LAST_BITS))
    if model_format(path) == "tflite" and rounding == "double" and not is_rewritten:
        for kind, package, label in _INTERPRETERS:
            outputs = _interpreted(kind, package, path, interface, runs)
            if outputs is not None and (rounds(program) or _is_same_network(outputs, ours)):
                apart = int(kind == "litert" and _multiplies_16_bits(program))
                return Vectors(given.inputs, outputs, label, max(units, apart), share)
    label = "Arenite's runtime"
    if rounding == "even" or not rounds(program):
        return Vectors(given.inputs, ours, label, units, share)
    return Vectors(given.inputs, ours, label, _UNITS, _SHARE_OF_ROUNDED)


def _computes_in_floats(program: Program) -> bool:
    """Tell whether floats are computed, which rounding to integers may bring to either side."""
    return any(
        program.tensors[name].dtype is DType.FLOAT32
        for step in program.steps
        if not isinstance(step.operator, Convert | Copy)
        for name in step.outputs
    )


def _multiplies_16_bits(program: Program) -> bool:
    """Tell whether it has matrix products of 16-bit integers, which LiteRT rounds as floats."""
    operands = map(
        program.operands, (s for s in program.steps if type(s.operator) is FullyConnected)
    )
    return any(each.source is not None and each.source.dtype is DType.INT16 for each in operands)


def _rounds_inexact_floats(program: Program) -> bool:
    """Tell whether layers with weights of bytes round floats to bytes that may end on either side.

    Such floats come from functions of C's library, or from sums of floats in another order.
    """
    inexact: set[str] = set()
    for _ in range(2):  # what a run leaves in a state is read by the next one
        for step in program.steps:
            read = {program.root(name)[0] for name in step.reads}
            if inexact.isdisjoint(read) and _is_exact(program, step):
                continue
            if isinstance(step.operator, QuantiseRows):
                return True
            inexact.update(program.root(name)[0] for name in step.writes)
    return False


def _is_exact(program: Program, step: Step) -> bool:
    """Tell whether a step has the same bits wherever it runs."""
    operator, operands = step.operator, program.operands(step)
    if isinstance(operator, Convolution):
        return operands.source is None or operands.source.dtype in (DType.INT8, DType.INT16)
    if isinstance(operator, Unary):
        return operator.function is UnaryFunction.CLAMP
    return isinstance(operator, Binary | Convert | Copy | QuantiseRows)


def _is_same_network(outputs: Sequence[Arrays], ours: Sequence[Arrays]) -> bool:
    """Tell whether an interpreter computes a network of floats as we do.

    Where weights alone are bytes, it may round activations to bytes too.
    """
    return all(
        array.dtype.kind != "f"
        or np.abs(array - own[name]).max(initial=0.0)
        <= _SAME_NETWORK * np.abs(own[name]).max(initial=0.0)
        for each, own in zip(outputs, ours, strict=True)
        for name, array in each.items()
    )


def _with_last_bits_moved(
    arrays: Mapping[str, NDArray[Any]], handed: Container[str], share: float
) -> Arrays:
    """Return inputs, each float of them moved to the next one, up or down.

    Args:
        arrays: The inputs.
        handed: Names of those that another model makes.
        share: How far those move instead, in parts of their scale.
    """
    random = np.random.default_rng(_SEED)

    def moved(name: str, array: NDArray[Any]) -> NDArray[Any]:
        if array.dtype != np.float32:
            return array
        ways: NDArray[np.float32] = random.choice(_ENDS, array.shape)
        if name not in handed:
            ends: NDArray[np.float32] = np.nextafter(array, ways)
            return ends
        most = np.float32(share * np.abs(array[np.isfinite(array)]).max(initial=0.0))
        found: NDArray[np.float32] = array + np.copysign(most, ways)
        return found

    return {name: moved(name, array) for name, array in arrays.items()}


def _largest_share(
    ours: Sequence[Mapping[str, NDArray[Any]]], others: Sequence[Mapping[str, NDArray[Any]]]
) -> float:
    """Return the largest difference of floats, in parts of the output's scale."""
    largest = 0.0
    for one, other in zip(ours, others, strict=True):
        for name, array in one.items():
            if array.dtype != np.float32 or array.shape != other[name].shape:
                continue
            is_number = np.isfinite(array) & np.isfinite(other[name])
            scale = np.abs(array[is_number]).max(initial=0.0)
            most = np.abs(array[is_number] - other[name][is_number]).max(initial=0.0)
            largest = max(largest, float(most / max(scale, 1e-30)))
    return largest


def rounds(program: Program) -> bool:
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
    stored = np.ascontiguousarray(stored)
    return stored if port.is_counted else stored.reshape(port.tensor.shape)


def _interpreted(
    kind: str, package: str, path: Path, interface: Interface, runs: Sequence[Arrays]
) -> tuple[Arrays, ...] | None:
    """Return the outputs of an interpreter, None if it is absent or does not run the model."""
    if find_spec(package) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "inputs.npz", Path(folder) / "outputs.npz"
        ordered = [each[port.port.name] for each in runs for port in interface.inputs]
        try:
            with given.open("wb") as stream:
                np.savez(stream, *ordered)
        except OSError as error:
            reason = f"inputs of the test cannot be written: {error.strerror}"
            raise OutputError(reason, path=given) from error
        command = [sys.executable, str(_PROGRAM), kind, str(path), str(given), str(made)]
        command.append(str(len(runs)))
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIME_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode or not made.is_file():
            return None
        with np.load(made) as stored:
            found = [stored[f"arr_{index}"] for index in range(len(stored.files))]
    each_run = len(found) // len(runs)
    if each_run < len(interface.outputs):
        return None
    outputs: list[Arrays] = []
    for run in range(len(runs)):
        arrays: Arrays = {}
        for port, array in zip(interface.outputs, found[run * each_run :], strict=False):
            if array.size != port.tensor.num_elements:
                return None
            if array.dtype.name != port.tensor.dtype.label:
                return None
            arrays[port.port.name] = array.reshape(port.tensor.shape)
        outputs.append(arrays)
    return tuple(outputs)
