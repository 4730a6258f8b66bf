"""Small TFLite models that real interpreters run: chains, variables, sparse constants."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from tflite import BuiltinOperator, TensorType
from tflite import BuiltinOperator as Op

from support.tiny_tflite import TinyOperator, TinySparsity, TinySubgraph, TinyTensor, tiny_tflite

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


LENGTH = 4


def numbers(name: str, data: Sequence[float] = (), shape: Sequence[int] = (LENGTH,)) -> TinyTensor:
    return TinyTensor(
        name, shape, TensorType.FLOAT32, np.array(data, "<f4").tobytes() if data else b""
    )


def handle(name: str) -> TinyTensor:
    return TinyTensor(name, (), TensorType.RESOURCE)


def initial(**values: Sequence[float]) -> TinySubgraph:
    """The subgraph that assigns each variable of these names its first value."""
    tensors: list[TinyTensor] = []
    operators: list[TinyOperator] = []
    for name, data in values.items():
        first = len(tensors)
        tensors += [handle(f"{name}/handle"), numbers(f"{name}/start", data, (len(data),))]
        operators += [
            TinyOperator(Op.VAR_HANDLE, [], [first], variable=name),
            TinyOperator(Op.ASSIGN_VARIABLE, [first, first + 1], []),
        ]
    return TinySubgraph(tensors, operators, [], [], "initial")


class Main:
    """The first subgraph, written one operator after the other; tensors are named."""

    def __init__(self, *inputs: str, once: Sequence[int] = (1,)) -> None:
        self.tensors = [numbers(name) for name in inputs]
        self.inputs = list(range(len(inputs)))
        self.operators = [TinyOperator(Op.CALL_ONCE, [], [], [index]) for index in once]
        self._indexes = {name: index for index, name in enumerate(inputs)}

    def add(self, tensor: TinyTensor) -> int:
        self._indexes[tensor.name] = len(self.tensors)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def variable(self, name: str) -> "Main":
        index = self.add(handle(name))
        self.operators.append(TinyOperator(Op.VAR_HANDLE, [], [index], variable=name))
        return self

    def step(self, code: int | str, inputs: str, output: str = "") -> "Main":
        read = [self._indexes[name] for name in inputs.split()]
        made = [self.add(numbers(output))] if output else []
        self.operators.append(TinyOperator(code, read, made))
        return self

    def read(self, name: str, output: str) -> "Main":
        return self.step(Op.READ_VARIABLE, name, output)

    def assign(self, name: str, value: str) -> "Main":
        return self.step(Op.ASSIGN_VARIABLE, f"{name} {value}")

    def subgraph(self, *outputs: str) -> TinySubgraph:
        indexes = [self._indexes[name] for name in outputs]
        return TinySubgraph(self.tensors, self.operators, self.inputs, indexes, "main")

    def model(self, outputs: str, **starts: Sequence[float]) -> bytes:
        return tiny_tflite(self.subgraph(*outputs.split()), initial(**starts))


def running_sum() -> bytes:
    """`y` is the sum of all inputs so far, and of 1, 2, 3, 4."""
    main = Main("x").variable("s").read("s", "old").step(Op.ADD, "old x", "y").assign("s", "y")
    return main.model("y", s=[1, 2, 3, 4])


def stored_sparse(
    dense: np.ndarray,
    order: Sequence[int] | None = None,
    blocks: Mapping[int, int] | None = None,
    sparse: Sequence[int] = (),
    kind: str = "Int32Vector",
) -> tuple[TinySparsity, bytes]:
    """Return how the array is stored, and its elements.

    Args:
        dense: The array.
        order: Its axes and behind them its blocks, in the order of the levels.
        blocks: Length of the blocks that an axis is cut into.
        sparse: Levels that are sparse.
        kind: How indices are stored.
    """
    cut = dict(blocks or {})
    order = list(range(dense.ndim + len(cut))) if order is None else order
    shape: list[int] = []
    source: list[int] = [0] * (dense.ndim + len(cut))
    for axis, length in enumerate(dense.shape):
        source[axis] = len(shape)
        if axis in cut:
            source[dense.ndim + list(cut).index(axis)] = len(shape) + 1
            shape += [length // cut[axis], cut[axis]]
        else:
            shape.append(length)
    tree = dense.reshape(shape).transpose([source[each] for each in order])
    levels: list[int | tuple[list[int], list[int]]] = []
    nodes = [tree]
    for level, size in enumerate(tree.shape):
        if level not in sparse:
            levels.append(size)
            nodes = [child for node in nodes for child in node]
            continue
        kept = [[i for i, child in enumerate(node) if np.any(child)] for node in nodes]
        segments = np.cumsum([0, *map(len, kept)]).tolist()
        levels.append((segments, [i for each in kept for i in each]))
        nodes = [node[i] for node, each in zip(nodes, kept, strict=True) for i in each]
    return TinySparsity(order, list(cut), levels, kind), np.array(nodes, dense.dtype).tobytes()
