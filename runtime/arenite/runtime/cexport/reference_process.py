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


def tflm(model: str, arrays: Arrays) -> Arrays:
    """Return the outputs of TensorFlow Lite Micro's interpreter."""
    from tflite_micro.python.tflite_micro.runtime import Interpreter

    interpreter = Interpreter.from_file(model, arena_size=ARENA)
    for index, array in enumerate(arrays):
        interpreter.set_input(array, index)
    interpreter.invoke()
    outputs: Arrays = []
    while True:
        try:
            outputs.append(np.array(interpreter.get_output(len(outputs))))
        except (IndexError, RuntimeError, ValueError):
            return outputs


def litert(model: str, arrays: Arrays) -> Arrays:
    """Return the outputs of LiteRT's reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kind = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model, experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(details["index"], array.reshape(details["shape"]))
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def main() -> None:
    """Run one model once."""
    kind, model, given, made = sys.argv[1:]
    with np.load(given) as stored:
        arrays = [stored[f"arr_{index}"] for index in range(len(stored.files))]
    outputs = {"tflm": tflm, "litert": litert}[kind](model, arrays)
    np.savez(made, *outputs)


if __name__ == "__main__":
    main()
