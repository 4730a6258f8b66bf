"""Gradients of element-wise operators and activations; operands broadcast."""

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from arenite.training.backward import Backward, NoRuleError, Rule
from arenite.training.graph import StepGraph, Value


def add(s: Backward) -> None:
    """Add, Sum: each operand takes the gradient."""
    for position in sorted(s.wanted):
        s.give(position, s.gradient)


def mean(s: Backward) -> None:
    """Mean of several operands."""
    for position in sorted(s.wanted):
        s.give(position, s.graph.scaled(s.gradient, 1 / s.num_inputs))


def subtract(s: Backward) -> None:
    """Difference of a and b: g, and -g."""
    if s.needs(0):
        s.give(0, s.gradient)
    if s.needs(1):
        s.give(1, s.graph.unary("Neg", s.graph.sum_to(s.gradient, s.input(1).shape)))


def multiply(s: Backward) -> None:
    """Product: each operand takes the gradient times the other."""
    for position in sorted(s.wanted):
        s.give(position, s.graph.times(s.gradient, s.input(1 - position)))


def divide(s: Backward) -> None:
    """Quotient y = a / b: g / b, and -g y / b."""
    scaled = s.graph.over(s.gradient, s.input(1))
    if s.needs(0):
        s.give(0, scaled)
    if s.needs(1):
        product = s.graph.times(scaled, s.output())
        s.give(1, s.graph.unary("Neg", s.graph.sum_to(product, s.input(1).shape)))


def power(s: Backward) -> None:
    """Power of a constant exponent p: g p a^(p - 1)."""
    if s.needs(1):
        raise NoRuleError("training the exponent is unsupported")
    exponent, slope = s.constant(1), s.input(0)
    if np.any(exponent != 2):
        slope = s.graph.binary("Pow", slope, s.graph.constant(exponent - 1, slope.dtype))
    slope = s.graph.times(slope, s.graph.constant(exponent, slope.dtype))
    s.give(0, s.graph.times(s.gradient, slope))


def _of_one_number(write: Callable[[StepGraph, Value, Value, Value], Value]) -> Rule:
    def rule(s: Backward) -> None:
        s.give(0, write(s.graph, s.gradient, s.input(0), s.output()))

    return rule


OF_ONE_NUMBER: Final[Mapping[str, Rule]] = {
    "Neg": _of_one_number(lambda n, g, x, y: n.unary("Neg", g)),
    "Exp": _of_one_number(lambda n, g, x, y: n.times(g, y)),
    "Log": _of_one_number(lambda n, g, x, y: n.over(g, x)),
    "Sqrt": _of_one_number(lambda n, g, x, y: n.over(n.scaled(g, 0.5), y)),
    "Reciprocal": _of_one_number(lambda n, g, x, y: n.unary("Neg", n.times(g, n.times(y, y)))),
    "Abs": _of_one_number(lambda n, g, x, y: n.times(g, n.unary("Sign", x))),
    "Erf": _of_one_number(lambda n, g, x, y: n.times(g, _erf_slope(n, x))),
    "Sin": _of_one_number(lambda n, g, x, y: n.times(g, n.unary("Cos", x))),
    "Cos": _of_one_number(lambda n, g, x, y: n.times(g, n.unary("Neg", n.unary("Sin", x)))),
    # The sign of the result takes its place: no mask is made beside it.
    "Relu": _of_one_number(lambda n, g, x, y: n.times(g, n.unary("Sign", y))),
    "Tanh": _of_one_number(lambda n, g, x, y: n.times(g, n.minus(n.scalar(1, y), n.times(y, y)))),
    "Softplus": _of_one_number(lambda n, g, x, y: n.times(g, n.unary("Sigmoid", x))),
}
"""Gradients of functions y of one number x: written into the graph n by g, the gradient of y."""


def _erf_slope(graph: StepGraph, x: Value) -> Value:
    """Return 2 / sqrt(pi) e^(-x x)."""
    bell = graph.unary("Exp", graph.unary("Neg", graph.times(x, x)))
    return graph.scaled(bell, 2 / math.sqrt(math.pi))


def largest(s: Backward) -> None:
    """Max, Min: the operand that is the result; equal ones share the gradient."""
    equal = [
        s.graph.cast(s.graph.compare("Equal", s.input(p), s.output()), s.gradient.dtype)
        for p in range(s.num_inputs)
    ]
    share = s.gradient
    if s.num_inputs > 1:
        count = equal[0]
        for each in equal[1:]:
            count = s.graph.plus(count, each)
        share = s.graph.over(s.gradient, count)
    for position in sorted(s.wanted):
        s.give(position, s.graph.times(share, equal[position]))


def where(s: Backward) -> None:
    """Where: the gradient goes where the value came from."""
    zero = s.graph.scalar(0, s.gradient)
    if s.needs(1):
        s.give(1, s.graph.where(s.input(0), s.gradient, zero))
    if s.needs(2):
        s.give(2, s.graph.where(s.input(0), zero, s.gradient))


def identity(s: Backward) -> None:
    """Identity, and Dropout, which does nothing in inference."""
    s.give(0, s.gradient)


def cast(s: Backward) -> None:
    """Between types of floating point."""
    source = s.input(0)
    if not source.dtype.label.startswith("float"):
        raise NoRuleError(f"element type {source.dtype.label} has no gradient")
    s.give(0, s.graph.cast(s.gradient, source.dtype))


def no_gradient(s: Backward) -> None:
    """Floor, comparisons and the like: constant almost everywhere."""


def clip(s: Backward) -> None:
    """Clip: g where the result lies between its bounds; ask the result, not the operand."""
    if not s.wanted <= {0}:
        raise NoRuleError("training min or max is unsupported")
    result, mask = s.output(), None
    for position, attribute, op_type in ((1, "min", "Greater"), (2, "max", "Less")):
        if s.has(position):
            bound = s.input(position)
        elif attribute in s.node.attributes:
            bound = s.graph.scalar(float(s.node.attributes[attribute]), result)
        else:
            continue
        elements = s.graph.constants.get(bound.name)
        if elements is not None and np.all(np.abs(elements) >= np.finfo(np.float32).max):
            continue
        inside = s.graph.compare(op_type, result, bound)
        mask = inside if mask is None else s.graph.both(mask, inside)
    s.give(0, s.gradient if mask is None else s.graph.masked(mask, s.gradient))


def leaky_relu(s: Backward) -> None:
    """LeakyRelu: g, times alpha below 0."""
    alpha = float(s.node.attributes.get("alpha", 0.01))
    _by_sign(s, s.graph.scaled(s.gradient, alpha))


def prelu(s: Backward) -> None:
    """PRelu: LeakyRelu whose slope is a value."""
    zero = s.graph.scalar(0, s.gradient)
    below = s.graph.compare("Less", s.input(0), zero)
    if s.needs(0):
        s.give(0, s.graph.where(below, s.graph.times(s.gradient, s.input(1)), s.gradient))
    if s.needs(1):
        s.give(1, s.graph.masked(below, s.graph.times(s.gradient, s.input(0))))


def elu(s: Backward) -> None:
    """Elu: g, times y + alpha below 0."""
    alpha = float(s.node.attributes.get("alpha", 1.0))
    slope = s.graph.plus(s.output(), s.graph.scalar(alpha, s.gradient))
    _by_sign(s, s.graph.times(s.gradient, slope))


def selu(s: Backward) -> None:
    """Selu: g gamma, times alpha e^x below 0, which is y + gamma alpha."""
    alpha = float(s.node.attributes.get("alpha", 1.67326319217681884765625))
    gamma = float(s.node.attributes.get("gamma", 1.05070102214813232421875))
    slope = s.graph.plus(s.output(), s.graph.scalar(alpha * gamma, s.gradient))
    above = s.graph.scaled(s.gradient, gamma)
    _by_sign(s, s.graph.times(s.gradient, slope), above)


def sigmoid(s: Backward) -> None:
    """Sigmoid: g y (1 - y)."""
    result = s.output()
    rest = s.graph.minus(s.graph.scalar(1, result), result)
    s.give(0, s.graph.times(s.graph.times(s.gradient, result), rest))


def hard_sigmoid(s: Backward) -> None:
    """HardSigmoid: g alpha where 0 < y < 1."""
    result, alpha = s.output(), float(s.node.attributes.get("alpha", 0.2))
    inside = s.graph.both(
        s.graph.compare("Greater", result, s.graph.scalar(0, result)),
        s.graph.compare("Less", result, s.graph.scalar(1, result)),
    )
    s.give(0, s.graph.masked(inside, s.graph.scaled(s.gradient, alpha)))


def hard_swish(s: Backward) -> None:
    """HardSwish: x / 3 + 1 / 2 where abs x < 3, else 1 above and 0 below."""
    x = s.input(0)
    line = s.graph.plus(s.graph.scaled(x, 1 / 3), s.graph.scalar(0.5, x))
    step = s.graph.cast(s.graph.compare("Greater", x, s.graph.scalar(0, x)), x.dtype)
    inside = s.graph.compare("Less", s.graph.unary("Abs", x), s.graph.scalar(3, x))
    s.give(0, s.graph.times(s.gradient, s.graph.where(inside, line, step)))


def softsign(s: Backward) -> None:
    """Softsign: g (1 - abs y)^2."""
    rest = s.graph.minus(s.graph.scalar(1, s.output()), s.graph.unary("Abs", s.output()))
    s.give(0, s.graph.times(s.gradient, s.graph.times(rest, rest)))


def softmax(s: Backward) -> None:
    """Softmax: y (g - sum g y)."""
    product = s.graph.times(s.gradient, s.output())
    total = s.graph.reduce_sum(product, [_axis(s)], keepdims=True)
    s.give(0, s.graph.times(s.output(), s.graph.minus(s.gradient, total)))


def log_softmax(s: Backward) -> None:
    """LogSoftmax: g - e^y sum g."""
    total = s.graph.reduce_sum(s.gradient, [_axis(s)], keepdims=True)
    s.give(0, s.graph.minus(s.gradient, s.graph.times(s.graph.unary("Exp", s.output()), total)))


def _axis(s: Backward) -> int:
    return int(s.node.attributes.get("axis", -1)) % s.output().rank


def _by_sign(s: Backward, below: Value, above: Value | None = None) -> None:
    """Give one gradient where the operand is above 0, another elsewhere."""
    mask = s.graph.compare("Greater", s.input(0), s.graph.scalar(0, s.gradient))
    s.give(0, s.graph.where(mask, above or s.gradient, below))
