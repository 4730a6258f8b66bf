"""Operators of one element at a time that are no activation; operands broadcast."""

import math

import numpy as np

from arenite.training.backward import Backward, NoRuleError


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


def negate(s: Backward) -> None:
    """Negative: -g."""
    s.give(0, s.graph.unary("Neg", s.gradient))


def exponential(s: Backward) -> None:
    """Exponential: g y."""
    s.give(0, s.graph.times(s.gradient, s.output()))


def logarithm(s: Backward) -> None:
    """Logarithm: g / x."""
    s.give(0, s.graph.over(s.gradient, s.input(0)))


def square_root(s: Backward) -> None:
    """The square root: g / 2y."""
    s.give(0, s.graph.over(s.graph.scaled(s.gradient, 0.5), s.output()))


def reciprocal(s: Backward) -> None:
    """Reciprocal: -g y y."""
    square = s.graph.times(s.output(), s.output())
    s.give(0, s.graph.unary("Neg", s.graph.times(s.gradient, square)))


def absolute(s: Backward) -> None:
    """The absolute value: g times the sign."""
    s.give(0, s.graph.times(s.gradient, s.graph.unary("Sign", s.input(0))))


def error_function(s: Backward) -> None:
    """Error function: g 2 / sqrt(pi) e^(-x x)."""
    source = s.input(0)
    bell = s.graph.unary("Exp", s.graph.unary("Neg", s.graph.times(source, source)))
    s.give(0, s.graph.times(s.gradient, s.graph.scaled(bell, 2 / math.sqrt(math.pi))))


def sine(s: Backward) -> None:
    """Sine."""
    s.give(0, s.graph.times(s.gradient, s.graph.unary("Cos", s.input(0))))


def cosine(s: Backward) -> None:
    """Cosine."""
    slope = s.graph.unary("Neg", s.graph.unary("Sin", s.input(0)))
    s.give(0, s.graph.times(s.gradient, slope))


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
        raise NoRuleError(f"{source.dtype.label} has no gradient")
    s.give(0, s.graph.cast(s.gradient, source.dtype))


def no_gradient(s: Backward) -> None:
    """Floor, comparisons and the like: constant almost everywhere."""
