"""A whole training step: forward, loss, backward and updates, as one ONNX model."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
from numpy.typing import NDArray

from arenite.planner import AliasKind, Program, Step, Tensor, TensorKind, liveness
from arenite.planner.importers.onnx import (
    FORMER_ATTRIBUTES,
    Dialect,
    Origin,
    States,
    TensorType,
    onnx_operator,
    placed,
    write_type,
)
from arenite.planner.operators import Imported
from arenite.planner.rewrites import share
from arenite.training.backward import differentiate
from arenite.training.errors import MaskError, NothingToTrainError, UnfitLossError
from arenite.training.files import state_metadata, training_metadata
from arenite.training.forward import Codebooks, Forward, codebook_name, write_forward
from arenite.training.graph import Node, StepGraph, Value
from arenite.training.losses import LOSSES, Loss
from arenite.training.optimisers import OPTIMISERS, StateUpdate
from arenite.training.parameters import chosen
from arenite.training.rules import RULES

_SHARED = (AliasKind.VIEWS, AliasKind.IN_PLACE, AliasKind.SLICES)


def loads(
    graph: StepGraph,
    nodes: Sequence[Node],
    inputs: Collection[str],
    states: Mapping[str, str],
    loss: str,
) -> dict[str, int]:
    """Return the live bytes at each node by its name, states left out.

    Args:
        nodes: Its nodes that run, in order.
        inputs: Names of the inputs that are not states.
        states: The value that replaces each state.
        loss: Name of the result.
    """
    names = {name for node in nodes for name in (*node.inputs, *node.outputs) if name}
    names.update(inputs)
    kinds = dict.fromkeys(inputs, TensorKind.INPUT)
    kinds.update(dict.fromkeys(graph.constants, TensorKind.CONSTANT))
    kinds.update(dict.fromkeys(states, TensorKind.STATE))
    kinds[loss] = TensorKind.OUTPUT
    flat = [
        Tensor(value.name, value.dtype, value.shape, kinds.get(value.name, TensorKind.ACTIVATION))
        for value in graph.values.values()
        if value.name in names
    ]
    given = [_step(graph, node) for node in nodes]
    tensors, steps = placed(States(states, {}), flat, given, Dialect(0, {}))
    program = Program.of("step", tensors, steps, list(inputs), [loss])
    found = liveness(share(program, _SHARED))
    change = np.zeros(len(steps) + 1, np.int64)
    for record in found.records:
        if record.name not in states:
            change[record.start] += record.size
            change[record.end] -= record.size
    return dict(zip(found.steps, np.cumsum(change).tolist(), strict=False))


def _step(graph: StepGraph, node: Node) -> Step:
    attributes = dict(node.attributes)
    for position, name in enumerate(FORMER_ATTRIBUTES.get(node.op_type, ()), 1):
        if position < len(node.inputs) and node.inputs[position] in graph.constants:
            numbers = graph.constants[node.inputs[position]]
            attributes[name] = tuple(int(each) for each in numbers.reshape(-1))
    return Step(node.name, onnx_operator(node.op_type, attributes), node.inputs, node.outputs)


_OPSET, _IR_VERSION = 17, 8

Masks: TypeAlias = Mapping[str, NDArray[np.bool_]]
"""Masks by parameter name, True for trained weights; parameters without a mask train whole."""

_NO_MASKS: Masks = MappingProxyType({})
_NO_CODEBOOKS: Codebooks = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """The parameters, loss and optimiser of a step.

    Attributes:
        loss: Name of the loss function, or the function.
        optimiser: Name of the optimiser.
        rate: Learning rate; None makes it an input of the step, `rate`.
        train_only: Patterns of the names of the parameters to train; empty for all.
        batch_statistics: Whether batch norms use the statistics of the batch and update their
            running averages, instead of using the averages in the model.
        output: Output that the loss function reads; None if the model has only one.
        weight_decay: Share of a weight, times the learning rate, that each update subtracts
            (decoupled from the gradient, as in AdamW).
    """

    loss: str | Loss
    optimiser: str = "sgd"
    rate: float | None = 0.01
    train_only: tuple[str, ...] = ()
    batch_statistics: bool = False
    output: str | None = None
    weight_decay: float = 0.0


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A training step.

    Attributes:
        model: The step as ONNX.
        loss: Name of the output that is the loss.
        inputs: Inputs besides the states: name and type.
        states: The output that replaces each state.
        state_types: Type of each state.
        trained: Names of the parameters that are trained.
        peak: Most live bytes besides the states, when the nodes run in order.
        num_gradients: Number of nodes that compute gradients and updates.
    """

    model: onnx.ModelProto
    loss: str
    inputs: Mapping[str, TensorType]
    states: Mapping[str, str]
    state_types: Mapping[str, TensorType]
    trained: tuple[str, ...]
    peak: int
    num_gradients: int


def make_step(
    program: Program,
    recipe: TrainingRecipe,
    masks: Masks = _NO_MASKS,
    shared: Codebooks = _NO_CODEBOOKS,
) -> TrainingStep:
    """Return the training step of a model.

    The gradients of convolution weights are summed image by image where the whole batch at once
    would raise the peak.

    Args:
        program: A model of ONNX of operator set 17 or later, read with its weights.
        recipe: The parameters to train, and how.
        masks: Where a mask is False the gradient is 0: a weight of 0 stays 0.
        shared: Parameters that take the values of a codebook, by name. The step trains the
            codebook, a state `NAME/codebook` that may have a mask; its gradient is the sum over
            the weights of each value.

    Raises:
        NothingToTrainError: There are no such parameters, or the loss does not depend on them.
        MaskError: A mask or a codebook fits no trained parameter.
        NotDifferentiableError: An operator between the parameters and the loss has no rule.
        UnfitLossError: The loss is not defined for the output.

    Cost: the steps three times, if the batch has several images.
    """
    draft_of = partial(_Draft, program, recipe, masks=masks, shared=shared)
    drafts = [draft_of(lambda _: False)]
    if any(program.tensors[name].shape[:1] > (1,) for name in program.input_tensors):
        drafts.append(draft_of(lambda _: True))
        whole, single = (draft.loads() for draft in drafts)
        limit = max(single.values())
        if max(whole.values()) > limit:
            high = [name for name, load in whole.items() if load > limit]
            drafts.append(draft_of(lambda node: _leads_to(node, high)))
    best = min(drafts, key=lambda draft: (max(draft.loads().values()), len(draft.graph.nodes)))
    return best.finished(program.name)


def _leads_to(node: Node, names: Collection[str]) -> bool:
    return any(name.startswith(f"d/{node.name}/") for name in names)


class _Draft:
    """A step, with a choice of the nodes whose gradients are summed image by image."""

    def __init__(
        self,
        program: Program,
        recipe: TrainingRecipe,
        image_by_image: Callable[[Node], bool],
        masks: Masks = _NO_MASKS,
        shared: Codebooks = _NO_CODEBOOKS,
    ) -> None:
        self._recipe = recipe
        self._masks = masks
        self._updates: list[StateUpdate] = []
        self._trained: list[str] = []
        self._loads: dict[str, int] = {}
        self._dialect = _dialect(program)
        self._rates: list[Value] = []
        self.graph = graph = StepGraph({*program.tensors, *_boundary(program)})
        names = chosen(program, recipe.train_only)
        _check_codebooks(program, names, shared)
        forward = write_forward(
            graph, program, names, shared, batch_statistics=recipe.batch_statistics
        )
        wanted = [codebook_name(name) if name in shared else name for name in names]
        _check_masks(graph, wanted, masks)
        self._inputs = [forward.values[name] for name in program.input_tensors]
        nodes = tuple(graph.nodes)
        seeds = self._measure(forward.values[_output(program, recipe)], nodes)
        self._num_forward = len(graph.nodes)
        differentiate(graph, nodes, seeds, wanted, RULES, self._update, image_by_image)
        if not self._trained:
            raise NothingToTrainError("the loss depends on none of them", wanted)
        self._keep_statistics(forward)
        self._finish()

    def _measure(self, output: Value, nodes: tuple[Node, ...]) -> dict[str, Value]:
        graph, recipe = self.graph, self._recipe
        graph.named("loss/")
        rate = self._learning_rate = self._rate(output)
        self._optimiser = OPTIMISERS[recipe.optimiser]()
        scale: Value | float = 1.0
        if self._optimiser.scales_seed:
            scale = rate if recipe.rate is None else recipe.rate
        makers = {name: node for node in nodes for name in node.outputs}
        loss = LOSSES[recipe.loss] if isinstance(recipe.loss, str) else recipe.loss
        written = loss(graph, output, makers, scale)
        graph.named(f"{recipe.optimiser}/")
        self._updates += self._optimiser.begin(graph, rate)
        self._loss = written.loss
        self._inputs += written.targets
        return {written.source.name: written.seed}

    def _rate(self, output: Value) -> Value:
        if self._recipe.rate is not None:
            return self.graph.scalar(self._recipe.rate, output)
        rate = self.graph.new("rate", output.dtype, ())
        self._inputs.append(rate)
        return rate

    def _update(self, name: str, gradient: Value) -> None:
        graph = self.graph
        graph.named(f"{self._recipe.optimiser}/{name}/")
        weight = kept = graph.values[name]
        if name in self._masks:
            gradient = graph.masked(graph.constant(self._masks[name]), gradient)
        moved, moments = self._optimiser.update(graph, weight, gradient)
        if self._recipe.weight_decay:
            decay = graph.scaled(self._learning_rate, self._recipe.weight_decay)
            kept = graph.minus(weight, graph.times(weight, decay))
        self._updates += [StateUpdate(weight, graph.minus(kept, moved)), *moments]
        self._trained.append(name)

    def _keep_statistics(self, forward: Forward) -> None:
        graph = self.graph
        for each in forward.statistics:
            graph.named(f"statistics/{each.name}/")
            state = graph.values.get(each.name)
            if state is None:
                raise AssertionError(each.name)
            kept = graph.scaled(state, each.momentum)
            new = graph.plus(kept, graph.scaled(each.value, 1 - each.momentum))
            self._updates.append(StateUpdate(state, new))

    def _finish(self) -> None:
        """Drop nodes that no result needs."""
        needed = {self._loss.name, *(each.new.name for each in self._updates)}
        kept: list[Node] = []
        num_forward = 0
        for number, node in reversed(list(enumerate(self.graph.nodes))):
            if not needed.isdisjoint(node.outputs):
                kept.append(node)
                needed.update(node.inputs)
                num_forward += number < self._num_forward
        self._num_forward = num_forward
        self.graph.nodes = kept[::-1]
        self._needed = needed

    def loads(self) -> dict[str, int]:
        """Return the live bytes at each node by its name, states left out."""
        if not self._loads:
            states = {each.state.name: each.new.name for each in self._updates}
            inputs = [each.name for each in self._inputs]
            self._loads = loads(self.graph, self.graph.nodes, inputs, states, self._loss.name)
        return self._loads

    def finished(self, name: str) -> TrainingStep:
        states = {each.state.name: f"{each.state.name}/next" for each in self._updates}
        renamed = {each.new.name: states[each.state.name] for each in self._updates}
        renamed[self._loss.name] = "loss"
        graph = onnx.GraphProto(name=name)
        for node in self.graph.nodes:
            written = node.written()
            for position, output in enumerate(written.output):
                written.output[position] = renamed.get(output, output)
            for position, read in enumerate(written.input):
                written.input[position] = renamed.get(read, read)
            graph.node.append(written)
        for value in self._inputs:
            _declare(graph.input.add(), value.name, value)
        for each in self._updates:
            _declare(graph.input.add(), each.state.name, each.state)
        _declare(graph.output.add(), "loss", self._loss)
        for each in self._updates:
            _declare(graph.output.add(), states[each.state.name], each.state)
        for constant, array in self.graph.constants.items():
            if constant in self._needed or constant in states:
                graph.initializer.append(onnx.numpy_helper.from_array(array, constant))
        model = onnx.ModelProto(
            ir_version=max(_IR_VERSION, self._dialect.ir_version), graph=graph,
            producer_name="arenite",
        )  # fmt: skip
        for domain, version in self._dialect.opsets.items():
            model.opset_import.add(domain=domain, version=version)
        state_metadata(model, states)
        recipe = self._recipe
        training_metadata(
            model,
            {"loss": str(recipe.loss), "optimiser": recipe.optimiser, "trained": self._trained},
        )
        return TrainingStep(
            model,
            "loss",
            {each.name: TensorType(each.dtype, each.shape) for each in self._inputs},
            states,
            {
                each.state.name: TensorType(each.state.dtype, each.state.shape)
                for each in self._updates
            },
            tuple(self._trained),
            max(self.loads().values()),
            len(self.graph.nodes) - self._num_forward,
        )


def _check_codebooks(program: Program, trained: Collection[str], shared: Codebooks) -> None:
    for name, each in shared.items():
        if name not in trained:
            raise MaskError(f"codebook {name!r}: the step trains no parameter of this name")
        shape, found = program.tensors[name].shape, each.indices.shape
        if found != shape:
            raise MaskError(f"indices {name!r} have shape {list(found)}, not {list(shape)}")


def _check_masks(graph: StepGraph, trained: Collection[str], masks: Masks) -> None:
    for name, mask in masks.items():
        if name not in trained:
            raise MaskError(f"mask {name!r}: the step trains no parameter of this name")
        shape = graph.values[name].shape
        if mask.shape != shape:
            raise MaskError(f"mask {name!r} has shape {list(mask.shape)}, not {list(shape)}")


def _declare(field: onnx.ValueInfoProto, name: str, value: Value) -> None:
    field.name = name
    write_type(field.type, TensorType(value.dtype, value.shape))


def _boundary(program: Program) -> set[str]:
    """Return the names of the step's outputs."""
    return {"loss", *(f"{name}/next" for name in program.tensors)}


def _output(program: Program, recipe: TrainingRecipe) -> str:
    """Return the tensor that the loss reads.

    Raises:
        UnfitLossError: The model has several outputs, or none of that name.
    """
    ports = {port.name: port.tensor for port in program.outputs}
    known = ", ".join(map(repr, ports))
    if recipe.output is None:
        if len(ports) != 1:
            raise UnfitLossError(f"the model has {len(ports)} outputs; name one of {known}")
        return next(iter(ports.values()))
    if recipe.output not in ports:
        raise UnfitLossError(f"the model has no output {recipe.output!r}, but {known}")
    return ports[recipe.output]


def _dialect(program: Program) -> Dialect:
    for step in program.steps:
        if isinstance(step.operator, Imported) and isinstance(step.operator.origin, Origin):
            return step.operator.origin.dialect
    return Dialect(_IR_VERSION, {"": _OPSET})
