"""The classes of LiteRT and TFLite that programs use, run by Arenite.

    >>> from arenite.compat.tflite import Interpreter
    >>> interpreter = Interpreter(model_path="model.tflite")

Classes, arguments, indices of tensors, errors and the first words of their texts are those of
`ai_edge_litert.interpreter`, which was `tflite_runtime.interpreter` before.
"""

from arenite.compat.tflite.delegates import Delegate, OpResolverType, experimental, load_delegate
from arenite.compat.tflite.interpreter import Interpreter, InterpreterWithCustomOps
from arenite.compat.tflite.signature import SignatureRunner

__all__ = [
    "Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner",
    "experimental", "load_delegate",
]  # fmt: skip
