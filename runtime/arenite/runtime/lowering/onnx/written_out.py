"""Activations and norms that a model writes out as several operators."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from arenite.planner import DType, Step
from arenite.planner.sizes import depends
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, attributes_of
from arenite.runtime.operators.elementwise import BinaryFunction, Unary, UnaryFunction
from arenite.runtime.operators.normalisation import LayerNorm

_A_SIXTH: Final = {"Div": 6.0, "Mul": 1 / 6}


def translate_activation(t: OnnxTranslation) -> bool:
    """Translate a Mul or Div that is the end of an activation: x * sigmoid(x) and the like."""
    if t.dtype is not DType.FLOAT32:
        return False
    if t.step.operator.label == "Mul" and (_translate_gated(t) or _translate_gelu(t)):
        return True
    return _translate_sixth(t)


def _finish(t: OnnxTranslation, operator: Unary, source: str) -> bool:
    """Make the result a function of the elements of a tensor."""
    value = t.builder.value(source)
    t.finish(t.emit(operator, [value], shape=value.shape, order=value.order))
    return True


def _translate_gated(t: OnnxTranslation) -> bool:
    for source, name in (t.step.inputs, t.step.inputs[::-1]):
        gate = t.producers.get(name)
        found = _gate(t, source, gate) if gate is not None else None
        if found is not None:
            return _finish(t, found, source)
    return False


def _gate(t: OnnxTranslation, source: str, gate: Step) -> Unary | None:
    """Return the activation that is `source` times this gate of it."""
    if gate.operator.label == "Sigmoid" and gate.inputs[0] == source:
        return Unary(function=UnaryFunction.SWISH, alpha=1.0)
    if gate.operator.label == "HardSigmoid" and gate.inputs[0] == source:
        alpha, beta = attributes_of(gate).get("alpha", 0.2), attributes_of(gate).get("beta", 0.5)
        if _near(alpha, 1 / 6) and _near(beta, 0.5):
            return Unary(function=UnaryFunction.HARD_SWISH)
    if gate.operator.label == "Tanh":
        inner = t.producers.get(gate.inputs[0])
        if inner is not None and inner.operator.label == "Softplus" and inner.inputs[0] == source:
            return Unary(function=UnaryFunction.MISH)
    if _is_hard_sigmoid(t, source, gate):
        return Unary(function=UnaryFunction.HARD_SWISH)
    return None


def _is_hard_sigmoid(t: OnnxTranslation, source: str, operator: Step) -> bool:
    """Tell whether the operator ends clip(source + 3, 0, 6) / 6."""
    scaled = _operand(t, operator, _A_SIXTH)
    return scaled is not None and _is_clipped(t, source, scaled)


def _is_clipped(t: OnnxTranslation, source: str, name: str) -> bool:
    """Tell whether a tensor is clip(source + 3, 0, 6)."""
    clip = t.producers.get(name)
    if clip is None or clip.operator.label != "Clip" or _bounds(t, clip) != (0.0, 6.0):
        return False
    shifted = t.producers.get(clip.inputs[0])
    return shifted is not None and _operand(t, shifted, {"Add": 3.0}) == source


def _translate_sixth(t: OnnxTranslation) -> bool:
    """Translate x * clip(x + 3, 0, 6) / 6, a hard swish as Paddle's exporter writes it."""
    product = t.producers.get(_operand(t, t.step, _A_SIXTH) or "")
    if product is None or product.operator.label != "Mul":
        return False
    for source, gate in (product.inputs, product.inputs[::-1]):
        if _is_clipped(t, source, gate):
            return _finish(t, Unary(function=UnaryFunction.HARD_SWISH), source)
    return False


def _bounds(t: OnnxTranslation, clip: Step) -> tuple[float, float]:
    bounds = []
    for position, (name, default) in enumerate((("min", -math.inf), ("max", math.inf)), 1):
        number: object = attributes_of(clip).get(name, default)
        if position < len(clip.inputs) and clip.inputs[position]:
            array = t.builder.array(clip.inputs[position])
            number = math.nan if array is None else float(array.reshape(-1)[0])
        bounds.append(float(number) if isinstance(number, int | float) else math.nan)
    return bounds[0], bounds[1]


def _translate_gelu(t: OnnxTranslation) -> bool:
    """Translate half of x * (1 + gate(x)), in whichever order it is multiplied."""
    for whole in ("", *_products(t, t.step, 2)):  # x may be a product itself
        names, number = _split(_factors(t, t.step, 2, whole))
        if len(names) != 2 or not _near(number, 0.5):
            continue
        for source, shifted in (names, names[::-1]):
            sum_of_one = t.producers.get(shifted)
            name = _operand(t, sum_of_one, {"Add": 1.0}) if sum_of_one is not None else None
            gate = t.producers.get(name) if name is not None else None
            function = _gelu(t, source, gate) if gate is not None else None
            if function is not None:
                return _finish(t, Unary(function=function), source)
    return False


def _products(t: OnnxTranslation, product: Step, depth: int) -> list[str]:
    """Return the products and quotients in a tree of Mul, of so many levels before the last."""
    found: list[str] = []
    for name in product.inputs:
        producer = t.producers.get(name)
        label = "" if producer is None else producer.operator.label
        if producer is not None and depth > 0 and label in ("Mul", "Div"):
            found.append(name)
            found += _products(t, producer, depth - 1) if label == "Mul" else []
    return found


def _gelu(t: OnnxTranslation, source: str, gate: Step) -> UnaryFunction | None:
    """Return which gelu of a source has this gate, None if it is that of none."""
    inner = t.producers.get(gate.inputs[0])
    if inner is None:
        return None
    if gate.operator.label == "Erf":
        scaled = _operand(t, inner, {"Div": math.sqrt(2), "Mul": math.sqrt(0.5)})
        return UnaryFunction.GELU if scaled == source else None
    if gate.operator.label != "Tanh" or inner.operator.label != "Mul":
        return None
    names, number = _split(_factors(t, inner, 1, source))
    if not _near(number, math.sqrt(2 / math.pi)):
        return None
    if len(names) == 1:  # x + 0.044715 x^3
        is_cubic = _adds_powers(t, names[0], source, 3)
    else:  # x * (1 + 0.044715 x^2)
        others = [name for name in names if name != source]
        is_cubic = len(names) == 2 and len(others) == 1 and _adds_powers(t, others[0], source, 2)
    return UnaryFunction.GELU_TANH if is_cubic else None


def _adds_powers(t: OnnxTranslation, name: str, source: str, power: int) -> bool:
    """Tell whether a tensor is source^(power - 2) + 0.044715 source^power."""
    total = t.producers.get(name)
    if total is None or total.operator.label != "Add":
        return False
    for first, second in (total.inputs, total.inputs[::-1]):
        product = t.producers.get(second)
        one = _operand(t, total, {"Add": 1.0})
        is_first = first == source if power == 3 else one == second
        if product is None or not is_first or product.operator.label != "Mul":
            continue
        names, number = _split(_factors(t, product, 2, source))
        raised = t.producers.get(names[0]) if len(names) == 1 else None
        is_power = raised is not None and _operand(t, raised, {"Pow": float(power)}) == source
        if _near(number, 0.044715) and (is_power or names == [source] * power):
            return True
    return False


def _split(factors: Sequence[str | float]) -> tuple[list[str], float]:
    """Return the factors that have names, and the product of the others."""
    names = [each for each in factors if isinstance(each, str)]
    return names, math.prod(each for each in factors if isinstance(each, float))


def translate_norm(t: OnnxTranslation, function: BinaryFunction) -> bool:
    """Translate the quotient that a norm ends with, or the product with a reciprocal."""
    one, other = t.step.inputs
    if function is BinaryFunction.DIVIDE:
        return _translate_layer_norm(t, one, other)
    for distance, factor in ((one, other), (other, one)):
        producer = t.producers.get(factor)
        if producer is None:
            continue
        deviation = producer.inputs[0] if producer.operator.label == "Reciprocal" else None
        if producer.operator.label == "Div":
            ones = t.builder.array(producer.inputs[0])
            is_reciprocal = ones is not None and ones.size == 1 and _near(ones.item(), 1.0)
            deviation = producer.inputs[1] if is_reciprocal else None
        if deviation is not None and _translate_layer_norm(t, distance, deviation):
            return True
    return False


def _translate_layer_norm(t: OnnxTranslation, distance: str, deviation: str) -> bool:
    """Translate d / sqrt(mean(d * d) + epsilon), along the last axis; d may be x - mean(x).

    The scale is 1 and the bias 0: a later Mul and Add are folded into them.

    Args:
        t: The operator that makes the quotient.
        distance: The tensor d.
        deviation: The tensor that it is divided by.
    """
    source = _centred(t, distance)
    root = t.producers.get(deviation)
    if t.dtype is not DType.FLOAT32 or root is None:
        return False
    total = t.producers.get(root.inputs[0]) if root.operator.label == "Sqrt" else None
    if total is None or total.operator.label != "Add":
        return False
    for variance, term in (total.inputs, total.inputs[::-1]):
        epsilon = t.builder.array(term)
        squares = t.producers.get(_averaged(t, variance) or "")
        if epsilon is None or epsilon.size != 1 or squares is None:
            continue
        is_square = squares.operator.label == "Mul" and squares.inputs[0] == squares.inputs[1]
        base = squares.inputs[0] if is_square else _operand(t, squares, {"Pow": 2.0})
        if base is None or _centred(t, base) != source:
            continue
        if source is not None or base == distance:
            value = t.builder.as_written(t.builder.value(source or distance), t.target)
            if depends(value.shape[-1]):
                return False
            ones = np.ones(value.shape[-1], np.float32)
            scale, bias = (
                t.builder.constant(array, f"{t.target}/{name}")
                for name, array in (("scale", ones), ("bias", 0 * ones))
            )
            operator = LayerNorm(epsilon=float(epsilon.reshape(())), centres=source is not None)
            t.finish(t.emit(operator, [value, scale, bias], shape=value.shape))
            return True
    return False


def _centred(t: OnnxTranslation, name: str) -> str | None:
    """Return x where a tensor is x - mean(x)."""
    step = t.producers.get(name)
    if step is None or step.operator.label != "Sub":
        return None
    return step.inputs[0] if _averaged(t, step.inputs[1]) == step.inputs[0] else None


def _averaged(t: OnnxTranslation, name: str) -> str | None:
    """Return x where a tensor is the mean of x along its last axis, which is kept."""
    step = t.producers.get(name)
    if step is None or step.operator.label != "ReduceMean":
        return None
    given = t.builder.array(step.inputs[1]) if len(step.inputs) > 1 and step.inputs[1] else None
    attributes = attributes_of(step)
    axes = attributes.get("axes") if given is None else tuple(given.reshape(-1).tolist())
    rank = len(t.builder.value(step.inputs[0]).shape)
    is_kept = attributes.get("keepdims", 1) == 1
    return step.inputs[0] if is_kept and axes in ((-1,), (rank - 1,)) else None


def _factors(t: OnnxTranslation, product: Step, depth: int, whole: str = "") -> list[str | float]:
    """Return the factors of a tree of Mul: names, and constants as numbers.

    Args:
        t: The operator that is translated.
        product: The Mul at the end of the tree.
        depth: How many Mul before it are part of the tree.
        whole: A tensor that is one factor, whatever made it.
    """
    found: list[str | float] = []
    for name in product.inputs:
        array = t.builder.array(name)
        producer = t.producers.get(name)
        if array is not None and array.size == 1:
            found.append(float(array.reshape(-1)[0]))
        elif producer is None or depth == 0 or name == whole:
            found.append(name)
        elif producer.operator.label == "Mul":
            found.extend(_factors(t, producer, depth - 1, whole))
        elif producer.operator.label == "Div":
            inner = _operand(t, producer, {"Div": 2.0})
            found.extend([name] if inner is None else [inner, 0.5])
        else:
            found.append(name)
    return found


def _operand(t: OnnxTranslation, operator: Step, constants: dict[str, float]) -> str | None:
    """Return the other operand of an operator that has a given constant as one of its two."""
    wanted = constants.get(operator.operator.label)
    if wanted is None:
        return None
    commutes = operator.operator.label in ("Add", "Mul")
    for position in (1, 0) if commutes else (1,):
        array = t.builder.array(operator.inputs[position])
        if array is not None and array.size == 1 and _near(float(array.reshape(-1)[0]), wanted):
            return operator.inputs[1 - position]
    return None


def _near(value: object, wanted: float) -> bool:
    return isinstance(value, int | float) and bool(np.isclose(value, wanted, rtol=1e-4))
