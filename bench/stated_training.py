"""Training steps of the zoo's networks as programs: forward, backward, and updates of weights.

Every layer's backward steps read what differentiation needs: a convolution its input and its
filter, batch normalisation by the statistics of the batch its input, an activation its result.
Steps have sizes and multiply-adds but no kernels: these programs are planned and timed, not run.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import onnx

from arenite.planner.dtypes import DType
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.memory import Memory
from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.program import Program, Step
from arenite.planner.tensors import Tensor, TensorKind

WEIGHTS = "weights"
"""Memory of the weights, which is not counted."""


@dataclass(frozen=True, slots=True)
class Stated(Operator):
    """An operator whose price is stated.

    Attributes:
        what: Name for display.
        adds: Multiply-adds.
        updated: Position of the state that it updates; -1 if there is none.
        clamps: Whether about half of what it makes is zero.
    """

    repeatable: ClassVar[bool] = True

    what: str
    adds: int = 0
    updated: int = -1

    @property
    def label(self) -> str:
        """Name for display."""
        return self.what

    @property
    def updates(self) -> tuple[int, ...]:
        """Position of the weights, for an update."""
        return () if self.updated < 0 else (self.updated,)

    def multiply_adds(self, operands: Operands) -> int:
        """Return what is stated."""
        return self.adds


@dataclass(frozen=True, slots=True)
class StatedClamp(Stated):
    """An activation that leaves zeros."""

    is_clamp: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class StatedView(Stated):
    """The same bytes in another shape."""

    def is_view(self, operands: Operands) -> bool:
        """Tell that it is one."""
        return True


def training_step(model: onnx.ModelProto, batch: int, *, batch_statistics: bool) -> Program:
    """Return the training step of a network.

    Args:
        model: The network, for one image.
        batch: Number of images.
        batch_statistics: Whether a batch normalisation follows every convolution.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        onnx.save(model, path)
        return _Differentiation(read_onnx(path), batch, batch_statistics).step()


class _Differentiation:
    """Walks the network forwards, then backwards."""

    def __init__(self, network: Program, batch: int, batch_statistics: bool) -> None:
        self._network = network
        self._batch = batch
        self._batch_statistics = batch_statistics
        self._tensors: dict[str, Tensor] = {}
        self._steps: list[Step] = []
        self._tape: list[Step] = []
        self._gradients: dict[str, list[str]] = {}

    def step(self) -> Program:
        inputs = self._network.input_tensors
        for name in inputs:
            self._add(name, self._scaled(name), TensorKind.INPUT)
        last = ""
        for step in self._network.steps:
            if step.outputs[0] in self._network.output_tensors and step.operator.label in (
                "Sigmoid",
                "Softmax",
            ):
                last = step.inputs[0]  # part of the loss
                continue
            self._forward(step)
            last = step.outputs[0]
        self._add("labels", self._tensors[last].shape, TensorKind.INPUT)
        self._add("loss", (1,), TensorKind.OUTPUT)
        self._gradients[last] = [self._add(f"d {last}", self._tensors[last].shape)]
        self._run("Loss", (last, "labels"), ("loss", *self._gradients[last]))
        for step in reversed(self._tape):
            self._backward(step)
        memories = (Memory(), Memory(WEIGHTS))
        return Program.of(
            f"{self._network.name}_step_b{self._batch}",
            self._tensors.values(), self._steps, [*inputs, "labels"], ["loss"],
            memories=memories,
        )  # fmt: skip

    def _forward(self, step: Step) -> None:
        weights = [name for name in step.inputs[1:] if self._is_weight(step, name)]
        for name in weights:
            self._add(name, self._network.tensors[name].shape, TensorKind.STATE, memory=WEIGHTS)
        data = [name for name in step.inputs if name in self._tensors and name not in weights]
        result = step.outputs[0]
        operands = self._network.operands(step)
        adds = self._batch * step.operator.multiply_adds(operands)
        if step.operator.label == "ConvTranspose":
            image, weight = operands.source, operands.inputs[1]
            assert image is not None
            assert weight is not None
            adds = self._batch * image.num_elements * weight.num_elements // weight.shape[0]
        normalised = step.operator.label == "Conv" and self._batch_statistics
        made = f"{result} before" if normalised else result
        self._add(made, self._scaled(result))
        self._record(step.operator.label, (*data, *weights), (made,), adds)
        if normalised:
            channels = self._scaled(result)[1]
            self._add(f"{result} statistics", (2, channels))
            self._add(f"{result} scale", (2, channels), TensorKind.STATE, memory=WEIGHTS)
            self._add(result, self._scaled(result))
            self._run("Statistics", (made,), (f"{result} statistics",))
            self._record(
                "BatchNorm", (made, f"{result} statistics", f"{result} scale"), (result,), 0
            )

    def _backward(self, step: Step) -> None:
        label, adds = step.operator.label, step.operator.multiply_adds(Operands((), ()))
        gradient = self._gradient(step.outputs[0])
        if gradient is None:
            return
        data = [name for name in step.inputs if self._tensors[name].memory != WEIGHTS]
        weights = [name for name in step.inputs if name not in data]
        source = data[0]
        if label in ("Conv", "ConvTranspose", "Gemm"):
            if self._tensors[source].kind is not TensorKind.INPUT:
                self._pass(f"{label}X", (gradient, weights[0]), source, adds)
            self._update(f"{label}W", (source, gradient), weights[0], adds)
            for bias in weights[1:]:
                self._update("ReduceSum", (gradient,), bias)
        elif label == "BatchNorm":
            sums = self._add(f"sums {step.outputs[0]}", self._tensors[data[1]].shape)
            self._run("Sums", (source, gradient, data[1]), (sums,))
            self._pass("BatchNormX", (gradient, source, data[1], sums, weights[0]), source)
            self._update("Scale", (sums,), weights[0])
        elif label in ("Relu", "Clip"):
            mask = self._add(f"mask {source}", self._tensors[source].shape, dtype=DType.BOOL)
            self._run("Greater", (step.outputs[0],), (mask,))
            self._pass("Where", (mask, gradient), source)
        elif label == "MaxPool":
            indices = self._add(f"indices {source}", (2, *self._tensors[step.outputs[0]].shape))
            self._run("MaxPool", (source,), (indices,))
            self._pass("ScatterElements", (indices, gradient), source)
        elif label == "Add":
            for name in data:
                self._gradients.setdefault(name, []).append(gradient)
        elif label == "Concat":
            for name in data:
                self._pass("Slice", (gradient,), name)
        elif label in ("AveragePool", "BatchNormalization", "GlobalAveragePool", "Reshape"):
            self._pass(label, (gradient,), source)
        else:
            raise ValueError(f"{label} has no stated gradient")

    def _gradient(self, name: str) -> str | None:
        """Return the gradient of a tensor, the sum of those of its readers."""
        parts = self._gradients.get(name)
        while parts and len(parts) > 1:
            total = self._add(f"d {name} of {len(parts)}", self._tensors[name].shape)
            self._run("Add", (parts.pop(), parts.pop()), (total,))
            parts.append(total)
        return parts[0] if parts else None

    def _pass(self, label: str, reads: Sequence[str], to: str, adds: int = 0) -> None:
        """Add the step that makes a gradient of a tensor."""
        parts = self._gradients.setdefault(to, [])
        made = self._add(f"d {to} part {len(parts)}", self._tensors[to].shape)
        self._run(label, reads, (made,), adds)
        parts.append(made)

    def _update(self, label: str, reads: Sequence[str], weight: str, adds: int = 0) -> None:
        made = self._add(f"d {weight}", self._tensors[weight].shape)
        self._run(label, reads, (made,), adds)
        update = Stated("Sub", updated=1)
        self._steps.append(Step(f"update {weight}", update, (made, weight), ()))

    def _record(self, label: str, reads: Sequence[str], makes: tuple[str, ...], adds: int) -> None:
        self._run(label, reads, makes, adds)
        self._tape.append(self._steps[-1])

    def _run(
        self, label: str, reads: Sequence[str], makes: tuple[str, ...], adds: int = 0
    ) -> None:
        kind = {"Relu": StatedClamp, "Clip": StatedClamp, "Reshape": StatedView}.get(label, Stated)
        name = f"{label} {makes[0]}"
        self._steps.append(Step(name, kind(label, adds), tuple(reads), makes))

    def _add(
        self,
        name: str,
        shape: tuple[int, ...],
        kind: TensorKind = TensorKind.ACTIVATION,
        memory: str = Memory().name,
        dtype: DType = DType.FLOAT32,
    ) -> str:
        self._tensors[name] = Tensor(name, dtype, shape, kind, memory=memory)
        return name

    def _is_weight(self, step: Step, name: str) -> bool:
        is_constant = self._network.tensors[name].kind is TensorKind.CONSTANT
        return is_constant and step.operator.label in ("Conv", "ConvTranspose", "Gemm")

    def _scaled(self, name: str) -> tuple[int, ...]:
        shape = self._network.tensors[name].shape
        return (self._batch * shape[0], *shape[1:])
