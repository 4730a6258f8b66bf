"""Activations that exporters write as several operators."""

import math

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.program import Step
from arenite.runtime.lowering.onnx.translation import Translation, attributes_of
from arenite.runtime.operators.elementwise import Unary, UnaryFunction


def translate_product(t: Translation) -> bool:
    """Translate a Mul that is the end of an activation: x * sigmoid(x) and the like."""
    if t.dtype is not DType.FLOAT32:
        return False
    for position in (0, 1):
        source = t.source(position)
        other = t.producers.get(t.source(1 - position))
        if other is None:
            continue
        found = _gate(t, source, other)
        if found is not None:
            value = t.value(position)
            t.finish(t.emit(found, [value], shape=value.shape, order=value.order))
            return True
    return _translate_gelu(t)


def _gate(t: Translation, source: str, gate: Step) -> Unary | None:
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


def _is_hard_sigmoid(t: Translation, source: str, operator: Step) -> bool:
    """Tell whether the operator ends clip(source + 3, 0, 6) / 6."""
    scaled = _operand(t, operator, {"Div": 6.0, "Mul": 1 / 6})
    clip = t.producers.get(scaled) if scaled is not None else None
    if clip is None or clip.operator.label != "Clip" or _bounds(t, clip) != (0.0, 6.0):
        return False
    shifted = t.producers.get(clip.inputs[0])
    return shifted is not None and _operand(t, shifted, {"Add": 3.0}) == source


def _bounds(t: Translation, clip: Step) -> tuple[float, float]:
    bounds = []
    for position, (name, default) in enumerate((("min", -math.inf), ("max", math.inf)), 1):
        number: object = attributes_of(clip).get(name, default)
        if position < len(clip.inputs) and clip.inputs[position]:
            array = t.builder.array(clip.inputs[position])
            number = math.nan if array is None else float(array.reshape(-1)[0])
        bounds.append(float(number) if isinstance(number, int | float) else math.nan)
    return bounds[0], bounds[1]


def _translate_gelu(t: Translation) -> bool:
    """Translate x * (1 + erf(x / sqrt 2)) / 2, in whichever order it is multiplied."""
    factors = list(_factors(t, t.step, 2))
    half = [f for f in factors if isinstance(f, float)]
    names = [f for f in factors if isinstance(f, str)]
    if len(names) != 2 or not _near(math.prod(half), 0.5):
        return False
    for source, gate in (names, names[::-1]):
        shifted = t.producers.get(gate)
        erf_name = _operand(t, shifted, {"Add": 1.0}) if shifted is not None else None
        erf = t.producers.get(erf_name) if erf_name is not None else None
        if erf is None or erf.operator.label != "Erf":
            continue
        scaled = t.producers.get(erf.inputs[0])
        if scaled is None:
            continue
        inner = _operand(t, scaled, {"Div": math.sqrt(2), "Mul": math.sqrt(0.5)})
        if inner == source:
            value = t.builder.value(source)
            t.finish(
                t.emit(
                    Unary(function=UnaryFunction.GELU), [value],
                    shape=value.shape, order=value.order,
                )
            )  # fmt: skip
            return True
    return False


def _factors(t: Translation, product: Step, depth: int) -> list[str | float]:
    """Return the factors of a tree of Mul: names, and constants as numbers."""
    found: list[str | float] = []
    for name in product.inputs:
        array = t.builder.array(name)
        producer = t.producers.get(name)
        if array is not None and array.size == 1:
            found.append(float(array.reshape(-1)[0]))
        elif producer is not None and producer.operator.label == "Mul" and depth > 0:
            found.extend(_factors(t, producer, depth - 1))
        elif producer is not None and producer.operator.label == "Div" and depth > 0:
            inner = _operand(t, producer, {"Div": 2.0})
            found.extend([name] if inner is None else [inner, 0.5])
        else:
            found.append(name)
    return found


def _operand(t: Translation, operator: Step, constants: dict[str, float]) -> str | None:
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
