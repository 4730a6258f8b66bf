"""Reverse-mode differentiation: from the last node to the first, each by its rule."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from arenite.training.errors import NotDifferentiableError
from arenite.training.graph import Array, Node, StepGraph, Value


class NoRuleError(Exception):
    """A rule does not support an operator with these attributes or operands."""


@dataclass(slots=True)
class Backward:
    """One node, as its rule sees it.

    Attributes:
        graph: Where the gradient is written.
        gradients: Gradients of its outputs by position; None for outputs without one.
        wanted: Positions of the inputs whose gradient is needed.
        makers: The node that makes each value, by the value's name.
        image_by_image: Whether the gradient of weights is summed an image at a time.
        given: Gradients of inputs from the rule, by position.
    """

    graph: StepGraph
    node: Node
    gradients: Sequence[Value | None]
    wanted: frozenset[int]
    makers: Mapping[str, Node] = field(default_factory=dict)
    image_by_image: bool = False
    given: dict[int, Value] = field(default_factory=dict)

    @property
    def gradient(self) -> Value:
        """The gradient of the first output.

        Raises:
            NoRuleError: Only another output has one.
        """
        if self.gradients[0] is None:
            raise NoRuleError("the loss depends on another output of the operator than the first")
        return self.gradients[0]

    @property
    def num_inputs(self) -> int:
        """Number of inputs, those left out among them."""
        return len(self.node.inputs)

    def needs(self, position: int) -> bool:
        """Tell whether the gradient of an input is needed."""
        return position in self.wanted

    def has(self, position: int) -> bool:
        """Tell whether an input is there."""
        return position < len(self.node.inputs) and self.node.inputs[position] != ""

    def input(self, position: int) -> Value:
        return self.graph.values[self.node.inputs[position]]

    def output(self, position: int = 0) -> Value:
        return self.graph.values[self.node.outputs[position]]

    def constant(self, position: int) -> Array:
        """Return the elements of a constant input.

        Raises:
            NoRuleError: It is not.
        """
        found = self.graph.constants.get(self.node.inputs[position])
        if found is None:
            raise NoRuleError(f"input {position} is not a constant")
        return found

    def ints(self, name: str, position: int, default: Sequence[int] = ()) -> list[int]:
        """Return integers that an attribute or, in later versions, a constant input states."""
        found = self.node.attributes.get(name)
        if found is None and self.has(position):
            found = self.constant(position)
        return [int(each) for each in np.asarray(default if found is None else found).reshape(-1)]

    def give(self, position: int, gradient: Value) -> None:
        """Give the gradient of an input; broadcasting is undone."""
        source = self.input(position)
        self.given[position] = self.graph.sum_to(gradient, source.shape)


Rule: TypeAlias = Callable[[Backward], None]
"""Gives the wanted gradients of the inputs of a node."""


def differentiate(
    graph: StepGraph,
    nodes: Sequence[Node],
    seeds: Mapping[str, Value],
    wanted: Sequence[str],
    rules: Mapping[str, Rule],
    ready: Callable[[str, Value], None],
    image_by_image: Callable[[Node], bool],
) -> None:
    """Write the gradients of `wanted` and their intermediate gradients.

    Args:
        graph: Where they are written.
        nodes: The nodes to differentiate, in order.
        seeds: Gradients of the results by name.
        wanted: Names of the values whose gradient is wanted.
        rules: The rules by name.
        ready: Called with each wanted name and its complete gradient, as early as possible.
        image_by_image: Tells for a node whether the gradient of its weights is to be summed
            an image at a time.

    Raises:
        NotDifferentiableError: A node on the way has no rule.

    Cost: O(nodes and their operands).
    """
    active = set(wanted)
    for node in nodes:
        if not active.isdisjoint(node.inputs):
            active.update(name for name in node.outputs if name)
    gradients = dict(seeds)
    open_uses = _uses(nodes, seeds, active)
    leaves = frozenset(wanted)
    makers = {name: node for node in nodes for name in node.outputs}
    for node in reversed(nodes):
        found = [gradients.get(name) if name else None for name in node.outputs]
        positions = frozenset(p for p, name in enumerate(node.inputs) if name in active)
        if not positions or not any(each is not None for each in found):
            continue
        state = Backward(graph, node, found, positions, makers, image_by_image(node))
        _apply(state, rules)
        for position in sorted(positions):
            name = node.inputs[position]
            gradient = state.given.get(position)
            if gradient is not None:
                before = gradients.get(name)
                gradients[name] = gradient if before is None else graph.plus(before, gradient)
            open_uses[name] -= 1
            if not open_uses[name] and name in leaves and name in gradients:
                ready(name, gradients.pop(name))
        for name in node.outputs:
            gradients.pop(name, None)
    for name in wanted:  # some of whose readers gave no gradient after all
        if name in gradients:
            ready(name, gradients.pop(name))


def _uses(nodes: Sequence[Node], seeds: Mapping[str, Value], active: set[str]) -> dict[str, int]:
    """Return the number of gradients that each value sums."""
    reached = set(seeds)
    uses: dict[str, int] = {}
    for node in reversed(nodes):
        names = [name for name in node.inputs if name in active]
        if names and not reached.isdisjoint(node.outputs):
            reached.update(names)
            for name in names:
                uses[name] = uses.get(name, 0) + 1
    return uses


def _apply(state: Backward, rules: Mapping[str, Rule]) -> None:
    node = state.node
    rule = rules.get(node.rule)
    try:
        if rule is None:
            raise NoRuleError("this operator is unsupported")
        state.graph.named(f"d/{node.name}/")
        rule(state)
    except NoRuleError as reason:
        raise NotDifferentiableError(node.name, node.op_type, str(reason)) from reason
