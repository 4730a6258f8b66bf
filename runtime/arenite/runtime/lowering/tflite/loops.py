"""Loops whose condition depends on data."""

from collections.abc import Callable, Iterator

from arenite.planner import DType, Port, Program, TensorKind
from arenite.planner.importers.tflite import Loop
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Shape
from arenite.runtime.lowering.tflite.translation import TfliteTranslation
from arenite.runtime.operators.loops import MAX_DEPTH, InnerProgram, While, depth_of


def carry(t: TfliteTranslation, lower: Callable[[Program], Program]) -> None:
    """Translate a loop into one step.

    Args:
        t: The step to translate.
        lower: Lowers the programs of the loop.

    Raises:
        NotLoweredError: It carries values of other shapes or types out of a round than into it.
    """
    loop = t.step.operator
    assert isinstance(loop, Loop)
    if t.builder.model.dimensions:
        raise NotLoweredError("a loop in a model with a range of sizes is unsupported")
    for program in (loop.condition, loop.body):
        for tensor in program.tensors.values():
            if tensor.kind is TensorKind.STATE:
                raise NotLoweredError(f"a variable tensor in a loop, {tensor.name!r}")
    condition, body = lower(loop.condition), lower(loop.body)
    if max(map(depth_of, (condition, body))) >= MAX_DEPTH:
        raise NotLoweredError(f"loops that are nested deeper than {MAX_DEPTH} are unsupported")
    values = [t.value(position) for position in range(len(t.step.inputs))]
    carried = [(value.shape, value.dtype) for value in values]
    for program, ports in (
        (condition, condition.inputs), (body, body.inputs), (body, body.outputs)
    ):  # fmt: skip
        for position, (expected, found) in enumerate(
            zip(carried, _carried(program, ports), strict=True)
        ):
            if found != expected:
                raise NotLoweredError(
                    f"carried value {position} is {_text(*expected)} before the loop and "
                    f"{_text(*found)} in {program.name!r}"
                )
    ((shape, dtype),) = _carried(condition, condition.outputs)
    if dtype is not DType.BOOL or any(length != 1 for length in shape):
        raise NotLoweredError(f"its condition makes {_text(shape, dtype)}, supported: one boolean")
    t.emit_all(
        While(condition=InnerProgram(condition), body=InnerProgram(body)),
        values,
        [(name, shape) for name, (shape, _) in zip(t.step.outputs, carried, strict=True)],
        [dtype for _, dtype in carried],
    )


def _carried(program: Program, ports: tuple[Port, ...]) -> Iterator[tuple[Shape, DType]]:
    for port in ports:
        tensor = program.tensors[port.tensor]
        yield port.shape(tensor.shape), tensor.dtype


def _text(shape: Shape, dtype: DType) -> str:
    return f"{dtype.label}{list(shape)}"
