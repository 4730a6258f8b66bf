"""Einsum of two operands: a product of matrices, or of elements."""

import math
import re
from collections.abc import Sequence

from arenite.planner import DType
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Shape, StoredValue, as_written
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.operators.elementwise import BinaryFunction
from arenite.runtime.operators.linear import MatMul


@translates("Einsum")
def einsum(t: OnnxTranslation) -> None:
    """Translate Einsum of two operands, each letter once in each, none summed over one alone."""
    require_type(t.dtype, DType.FLOAT32)
    terms, result = _letters(t.attribute("equation", ""))
    values = [t.value(position) for position in range(len(t.step.inputs))]
    if len(values) != len(terms) or any(
        len(value.shape) != len(term) for value, term in zip(values, terms, strict=True)
    ):
        raise NotLoweredError(f"its operands have other axes than {', '.join(terms)}")
    lengths = _lengths(t, terms, values)
    (one, other), (first, second) = terms, values
    summed = [each for each in one if each in other and each not in result]
    if not summed:
        parts = [
            _spread(t, value, term, result) for value, term in zip(values, terms, strict=True)
        ]
        t.finish(combine(t, BinaryFunction.MULTIPLY, parts[0], parts[1], t.target))
        return
    batch = [each for each in one if each in other and each in result]
    rows = [each for each in one if each not in other]
    columns = [each for each in other if each not in one]
    many = tuple(lengths[each] for each in batch)
    groups = [math.prod(lengths[each] for each in group) for group in (rows, summed, columns)]
    left = _grouped(t, first, one, (*batch, *rows, *summed), (*many, *groups[:2]))
    right = _grouped(t, second, other, (*batch, *summed, *columns), (*many, *groups[1:]))
    product = t.emit(
        MatMul(), [left, right], shape=(*many, groups[0], groups[2]),
        order=as_written(len(many) + 2), name=f"{t.target}/product",
    )  # fmt: skip
    made = (*batch, *rows, *columns)
    product = t.builder.reshaped(product, tuple(lengths[each] for each in made), t.target)
    t.finish(t.builder.transposed(product, [made.index(each) for each in result]))


def _letters(equation: str) -> tuple[list[str], str]:
    """Return the letters of both operands and of the result.

    Raises:
        NotLoweredError: It is another form of equation.
    """
    plain = equation.replace(" ", "")
    form = "two operands of letters"
    if not re.fullmatch(r"[A-Za-z]*,[A-Za-z]*(->[A-Za-z]*)?", plain):
        raise unsupported("equation", equation, form)
    left, arrow, result = plain.partition("->")
    one, other = left.split(",")
    if not arrow:
        result = "".join(sorted({*one} ^ {*other}))
    if any(len(set(each)) < len(each) for each in (one, other, result)):
        raise unsupported("equation", equation, f"{form}, each once in an operand")
    if not {*result} <= {*one, *other} or not ({*one} ^ {*other}) <= {*result}:
        raise unsupported("equation", equation, f"{form}, those that are summed in both")
    return [one, other], result


def _lengths(
    t: OnnxTranslation, terms: Sequence[str], values: Sequence[StoredValue]
) -> dict[str, int]:
    """Return the length of each letter.

    Raises:
        NotLoweredError: The operands differ in one.
    """
    lengths: dict[str, int] = {}
    for term, value in zip(terms, values, strict=True):
        for letter, length in zip(term, value.shape, strict=True):
            known = lengths.setdefault(letter, length)
            if not t.builder.agree((known,), (length,)):
                raise NotLoweredError(f"the lengths of {letter} are {known} and {length}")
    return lengths


def _grouped(
    t: OnnxTranslation, value: StoredValue, term: str, letters: Sequence[str], shape: Shape
) -> StoredValue:
    """Return an operand with its letters in another order, of this shape."""
    value = t.builder.transposed(value, [term.index(each) for each in letters])
    value = t.builder.reshaped(value, shape, t.target)
    return t.builder.as_written(value, t.target)


def _spread(t: OnnxTranslation, value: StoredValue, term: str, result: str) -> StoredValue:
    """Return an operand with an axis for each letter of the result."""
    letters = [each for each in result if each in term]
    value = t.builder.transposed(value, [term.index(each) for each in letters])
    lengths = dict(zip(letters, value.shape, strict=True))
    return t.builder.reshaped(value, tuple(lengths.get(each, 1) for each in result), t.target)
