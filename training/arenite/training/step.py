"""A whole training step: forward, loss, backward and updates, as one ONNX model."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import onnx
import onnx.helper
import onnx.numpy_helper

from arenite.planner.importers.onnx.node import Dialect, Origin
from arenite.planner.importers.onnx.types import TensorType, write_type
from arenite.planner.operators.imported import Imported
from arenite.planner.program import Program
from arenite.training.backward import differentiate
from arenite.training.builder import Builder
from arenite.training.errors import NothingToTrainError, UnfitLossError
from arenite.training.forward import Forward, write_forward
from arenite.training.graph import Node, Value
from arenite.training.losses.table import LOSSES
from arenite.training.optimisers.optimiser import Update
from arenite.training.optimisers.table import OPTIMISERS
from arenite.training.parameters import chosen
from arenite.training.peak import loads
from arenite.training.rules.table import RULES
from arenite.training.states import state_metadata, training_metadata

_OPSET, _IR_VERSION = 17, 8


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a step trains, and how.

    Attributes:
        loss: Name of the loss.
        optimiser: Name of the optimiser.
        rate: Learning rate; None for an input of the step, `rate`.
        train_only: Patterns of the names of the parameters to train; all without any.
        batch_statistics: Whether batch norms take the statistics of the batch and keep their
            average, instead of those that the model states.
        output: The output that the loss is of; None where the model has only one.
    """

    loss: str
    optimiser: str = "sgd"
    rate: float | None = 0.01
    train_only: tuple[str, ...] = ()
    batch_statistics: bool = False
    output: str | None = None


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
        peak: Bytes that are live at once besides the states, when the nodes run in order.
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


def make_step(program: Program, recipe: Recipe) -> TrainingStep:
    """Return the training step of a model.

    The gradients of the weights of convolutions are summed an image at a time where the whole
    batch at once would raise the peak.

    Args:
        program: A model of ONNX of operator set 17 or later, read with its weights.
        recipe: What to train, and how.

    Raises:
        NothingToTrainError: There are no such parameters, or the loss does not depend on them.
        NotDifferentiableError: An operator between the parameters and the loss has no rule.
        UnfitLossError: The loss does not go with the output.

    Cost: the steps three times, if the batch has several images.
    """
    drafts = [_Draft(program, recipe, lambda _: False)]
    if any(program.tensors[name].shape[:1] > (1,) for name in program.input_tensors):
        drafts.append(_Draft(program, recipe, lambda _: True))
        whole, single = (draft.loads() for draft in drafts)
        limit = max(single.values())
        if max(whole.values()) > limit:
            high = [name for name, load in whole.items() if load > limit]
            drafts.append(_Draft(program, recipe, lambda node: _leads_to(node, high)))
    best = min(drafts, key=lambda draft: (max(draft.loads().values()), len(draft.graph.nodes)))
    return best.finished(program.name)


def _leads_to(node: Node, names: Collection[str]) -> bool:
    prefix = _prefix(node)
    return any(name.startswith(prefix) for name in names)


def _prefix(node: Node) -> str:
    return f"d/{node.name}/"


class _Draft:
    """A step with the choice of what is summed an image at a time."""

    def __init__(
        self, program: Program, recipe: Recipe, image_by_image: Callable[[Node], bool]
    ) -> None:
        self._recipe = recipe
        self._updates: list[Update] = []
        self._trained: list[str] = []
        self._loads: dict[str, int] = {}
        self._dialect = _dialect(program)
        self._rates: list[Value] = []
        names = {*program.tensors, *_boundary(program)}
        self.graph = graph = Builder(names)
        wanted = chosen(program, recipe.train_only)
        forward = write_forward(graph, program, wanted, batch_statistics=recipe.batch_statistics)
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
        rate = self._rate(output)
        self._optimiser = OPTIMISERS[recipe.optimiser]()
        scale: Value | float = 1.0
        if self._optimiser.scales_seed:
            scale = rate if recipe.rate is None else recipe.rate
        makers = {name: node for node in nodes for name in node.outputs}
        measured = LOSSES[recipe.loss](graph, output, makers, scale)
        graph.named(f"{recipe.optimiser}/")
        self._updates += self._optimiser.begin(graph, rate)
        self._loss = measured.loss
        self._inputs.append(measured.target)
        return {measured.source.name: measured.seed}

    def _rate(self, output: Value) -> Value:
        if self._recipe.rate is not None:
            return self.graph.scalar(self._recipe.rate, output)
        rate = self.graph.new("rate", output.dtype, ())
        self._inputs.append(rate)
        return rate

    def _update(self, name: str, gradient: Value) -> None:
        self.graph.named(f"{self._recipe.optimiser}/{name}/")
        weight = self.graph.values[name]
        self._updates += self._optimiser.update(self.graph, weight, gradient)
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
            self._updates.append(Update(state, new))

    def _finish(self) -> None:
        """Drop what leads to no result."""
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
        """Return the bytes that are live at each node, by its name; states aside."""
        if not self._loads:
            states = {each.state.name: each.new.name for each in self._updates}
            inputs = [each.name for each in self._inputs]
            self._loads = loads(self.graph, self.graph.nodes, inputs, states, self._loss.name)
        return self._loads

    def finished(self, name: str) -> TrainingStep:
        """Return the step."""
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
            {"loss": recipe.loss, "optimiser": recipe.optimiser, "trained": self._trained},
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


def _declare(field: onnx.ValueInfoProto, name: str, value: Value) -> None:
    field.name = name
    write_type(field.type, TensorType(value.dtype, value.shape))


def _boundary(program: Program) -> set[str]:
    """Return the names that the step's own outputs are to have."""
    return {"loss", *(f"{name}/next" for name in program.tensors)}


def _output(program: Program, recipe: Recipe) -> str:
    """Return the tensor that the loss is of.

    Raises:
        UnfitLossError: It is not clear which, or there is none of that name.
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
