"""TFLite models that keep variables from one run to the next."""

from collections.abc import Sequence

import numpy as np
from tflite import BuiltinOperator as Op
from tflite import TensorType

from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

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
