"""Small TFLite models that real interpreters run."""

from collections.abc import Sequence
from dataclasses import replace

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


def branching(sizes: Sequence[int] = MOBILE_SIZES) -> bytes:
    """The chain in one branch of an IF, a single layer in the other."""
    single = dense_subgraph((sizes[0], sizes[-1]))
    verdict = TinyTensor("is", (1, 1), TensorType.BOOL)
    main = TinySubgraph(
        [float_tensor("x", sizes[0]), verdict, float_tensor("y", sizes[-1])],
        [TinyOperator(BuiltinOperator.IF, [1, 0], [2], [1, 2])],
        [0, 1],
        [2],
        "main",
    )
    inner = [replace(dense_subgraph(sizes), name="then"), replace(single, name="else")]
    return tiny_tflite(main, *inner)


def looping(sizes: Sequence[int] = (*MOBILE_SIZES, MOBILE_SIZES[0])) -> bytes:
    """The chain three times over, in the body of a WHILE that counts."""

    def number(name: str, value: float) -> TinyTensor:
        return float_tensor(name, 1, np.float32(value).tobytes())

    chain = dense_subgraph(sizes)
    first = len(chain.tensors)
    body = TinySubgraph(
        [*chain.tensors, float_tensor("n", 1), number("one", 1), float_tensor("next", 1)],
        [*chain.operators, TinyOperator(BuiltinOperator.ADD, [first, first + 1], [first + 2])],
        [0, first],
        [len(sizes) - 1, first + 2],
        "body",
    )
    cond = TinySubgraph(
        [
            float_tensor("data", sizes[0]),
            float_tensor("n", 1),
            number("three", 3),
            TinyTensor("again", (1, 1), TensorType.BOOL),
        ],
        [TinyOperator(BuiltinOperator.LESS, [1, 2], [3])],
        [0, 1],
        [3],
        "cond",
    )
    main = TinySubgraph(
        [float_tensor("x", sizes[0]), number("zero", 0), float_tensor("n", 1),
         float_tensor("y", sizes[0]), float_tensor("end", 1)],
        [TinyOperator(BuiltinOperator.ABS, [1], [2]),
         TinyOperator(BuiltinOperator.WHILE, [0, 2], [3, 4], [1, 2])],
        [0],
        [3],
        "main",
    )  # fmt: skip
    return tiny_tflite(main, cond, body)


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
