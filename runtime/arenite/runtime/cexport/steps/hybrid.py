"""Layers of floats whose weights are bytes: what they read is rounded to bytes, as LiteRT does.

Such a layer becomes two steps. The first rounds rows of floats to bytes, each by a scale of its
own; the second multiplies bytes, and turns the sums into floats.

Source: LiteRT's reference kernels (`EvalHybrid` of its kernels, portable_tensor_utils.cc).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from arenite.planner import DType, Program, Step, Tensor, TensorKind
from arenite.planner.operators import Operator
from arenite.planner.programs import Names
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.steps.writer import Plane, StepWriter, writes
from arenite.runtime.operators.convolution import Conv2D, Convolution, DepthwiseConv2D
from arenite.runtime.operators.linear import FullyConnected

SCALE_BYTES = 8
"""Of a row: its scale and its zero point, both floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantiseRows(Operator):
    """Rounds floats to bytes: makes the bytes, and the scale and zero point of each row.

    Attributes:
        rows: How many parts of equal length have a scale each.
        is_symmetric: Whether all zero points are 0.
    """

    repeatable: ClassVar[bool] = True

    rows: int
    is_symmetric: bool


def quantise_operands(program: Program, asymmetric: frozenset[str]) -> Program:
    """Return the program with a step that rounds what layers with weights of bytes read.

    Args:
        program: Steps of our own operators; convolutions and products of floats may have weights
            of bytes.
        asymmetric: Names of the matrix products whose operands have zero points.
    """
    names = Names([*program.tensors, *(step.name for step in program.steps)])
    tensors = dict(program.tensors)
    made: dict[tuple[str, QuantiseRows], tuple[str, str]] = {}
    steps: list[Step] = []
    for step in program.steps:
        if not is_hybrid(program, step):
            steps.append(step)
            continue
        source = program.tensors[step.inputs[0]]
        key = source.name, _operator(program, step, asymmetric)
        if key not in made or source.kind is TensorKind.STATE:
            rounded, scales = (names.take(f"{source.name}/{each}") for each in ("bytes", "scales"))
            tensors[rounded] = Tensor(rounded, DType.INT8, source.shape, TensorKind.ACTIVATION)
            tensors[scales] = Tensor(
                scales, DType.FLOAT32, (key[1].rows, 2), TensorKind.ACTIVATION
            )
            made[key] = rounded, scales
            name = names.take(f"{step.name}/bytes")
            steps.append(Step(name, key[1], (source.name,), made[key]))
        rounded, scales = made[key]
        _, weights, bias, *_ = (*step.inputs, "")
        steps.append(replace(step, inputs=(rounded, weights, bias, "", scales)))
    return replace(program, tensors=tensors, steps=tuple(steps))


def is_hybrid(program: Program, step: Step) -> bool:
    """Tell whether a step multiplies floats by bytes."""
    if not isinstance(step.operator, Convolution):
        return False
    source, weights = (program.tensors[name].dtype for name in step.inputs[:2])
    return (source, weights) == (DType.FLOAT32, DType.INT8)


def _operator(program: Program, step: Step, asymmetric: frozenset[str]) -> QuantiseRows:
    source, weights = (program.tensors[name] for name in step.inputs[:2])
    if isinstance(step.operator, FullyConnected):
        rows = source.num_elements // weights.shape[1]
        return QuantiseRows(rows=rows, is_symmetric=step.name not in asymmetric)
    is_symmetric = not isinstance(step.operator, DepthwiseConv2D) and not multiplies_in_turn(
        step.operator, weights
    )
    return QuantiseRows(rows=source.shape[0], is_symmetric=is_symmetric)


def multiplies_in_turn(operator: Operator, weights: Tensor) -> bool:
    """Tell whether sums are multiplied by the weights' scale first, then by the operand's.

    LiteRT does so in convolutions whose outputs have scales of their own, or whose channels come
    in groups.
    """
    if not isinstance(operator, Conv2D) or weights.quantisation is None:
        return False
    return operator.groups > 1 or len(set(weights.quantisation.scales)) > 1


@writes(QuantiseRows)
def quantise_rows(t: StepWriter) -> None:
    operator, source = t.operator, t.input()
    assert isinstance(operator, QuantiseRows)
    if t.num_rows or not source.num_elements:
        raise NotWrittenError("it is not written by rows")
    t.call(
        f"quantise_rows_{'symmetric' if operator.is_symmetric else 'asymmetric'}",
        operator.rows,
        source.num_elements // operator.rows,
        f"(const float *)(const void *)({t.address(source)})",
        f"(int8_t *)({t.address(t.output())})",
        f"(float *)(void *)({t.address(t.output(1))})",
    )


def scales_of(t: StepWriter, plane: Plane) -> str:
    """Return where the scales of a layer's operand lie: of all its rows, or of a plane."""
    scales = t.address(t.input(Convolution.SCALES), plane, SCALE_BYTES)
    return f"(const float *)(const void *)({scales})"
