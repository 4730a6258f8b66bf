"""Runs the reference kernels of TensorFlow Lite on inputs, as a program of its own.

An interpreter may bring its process down. Takes what runs, the model, and files for the inputs
and the outputs; imports nothing of ours.
"""

import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = list[NDArray[Any]]

ARENA = 1 << 26


def tflm(model: str, runs: list[Arrays]) -> Arrays:
    """Return the outputs of TensorFlow Lite Micro's interpreter, run after run."""
    from tflite_micro.python.tflite_micro.runtime import Interpreter

    interpreter = Interpreter.from_file(model, arena_size=ARENA)
    outputs: Arrays = []
    for arrays in runs:
        for index, array in enumerate(arrays):
            interpreter.set_input(array, index)
        interpreter.invoke()
        outputs += _all_outputs(interpreter)
    return outputs


def _all_outputs(interpreter: Any) -> Arrays:
    outputs: Arrays = []
    while True:
        try:
            outputs.append(np.array(interpreter.get_output(len(outputs))))
        except (IndexError, RuntimeError, ValueError):
            return outputs


def litert(model: str, runs: list[Arrays]) -> Arrays:
    """Return the outputs of LiteRT's reference kernels, run after run."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kind = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model, experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
    outputs: Arrays = []
    for arrays in runs:
        for details, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(details["index"], array.reshape(details["shape"]))
        interpreter.invoke()
        outputs += [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    return outputs


def main() -> None:
    """Run one model as often as there are sets of inputs."""
    kind, model, given, made, count = sys.argv[1:]
    with np.load(given) as stored:
        arrays = [stored[f"arr_{index}"] for index in range(len(stored.files))]
    each = len(arrays) // int(count)
    runs = [arrays[run * each : (run + 1) * each] for run in range(int(count))]
    outputs = {"tflm": tflm, "litert": litert}[kind](model, runs)
    np.savez(made, *outputs)


if __name__ == "__main__":
    main()
