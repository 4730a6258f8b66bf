"""Small TFLite models that real interpreters run."""

from collections.abc import Sequence

import numpy as np
from tflite import BuiltinOperator, TensorType

from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

MOBILE_SIZES = (48, 32, 32, 64)
"""As MobileNet begins: largest first, these floats take 512 B, the best plan 384 B."""


def float_tensor(name: str, size: int, data: bytes = b"") -> TinyTensor:
    return TinyTensor(name, (1, size), TensorType.FLOAT32, data)


def dense_subgraph(sizes: Sequence[int]) -> TinySubgraph:
    """A chain of fully connected layers: sizes of the input, of each layer's output."""
    random = np.random.default_rng(0)
    tensors = [float_tensor(f"x{step}", size) for step, size in enumerate(sizes)]
    operators = []
    for step in range(1, len(sizes)):
        shape = (sizes[step], sizes[step - 1])
        weights = random.standard_normal(shape).astype(np.float32).tobytes()
        operators.append(
            TinyOperator(BuiltinOperator.FULLY_CONNECTED, [step - 1, len(tensors), -1], [step])
        )
        tensors.append(TinyTensor(f"w{step}", shape, TensorType.FLOAT32, weights))
    return TinySubgraph(tensors, operators, [0], [len(sizes) - 1])


def dense_chain(sizes: Sequence[int] = MOBILE_SIZES) -> bytes:
    return tiny_tflite(dense_subgraph(sizes))


def binary_then(op: int, *, operands: int, size: int = 40) -> bytes:
    """ABS twice, then the operator on the two results or on one, then ABS again."""
    absolute = BuiltinOperator.ABS
    return tiny_tflite(
        TinySubgraph(
            [float_tensor(name, size) for name in "xabcy"],
            [
                TinyOperator(absolute, [0], [1]),
                TinyOperator(absolute, [1], [2]),
                TinyOperator(op, [2, 1][:operands], [3]),
                TinyOperator(absolute, [3], [4]),
            ],
            [0],
            [4],
        )
    )
