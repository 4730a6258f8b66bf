"""Softmax."""

from arenite.planner.tensors import Tensor
from arenite.runtime.cexport import tables
from arenite.runtime.cexport.arithmetic import scale_of, zero_of
from arenite.runtime.cexport.errors import NotWrittenError
from arenite.runtime.cexport.literals import number
from arenite.runtime.cexport.steps.registry import writes
from arenite.runtime.cexport.steps.writer import StepWriter
from arenite.runtime.operators.normalisation import Softmax


def check_256ths(result: Tensor) -> None:
    """Check that a result of bytes is of 256ths, from 0 to 1.

    Raises:
        NotWrittenError: It is not.
    """
    if (scale_of(result), zero_of(result)) != (1 / 256, -128):
        raise NotWrittenError("its result is not of 256ths")


@writes(Softmax)
def softmax(t: StepWriter) -> None:
    """Write a softmax over the last axis: of bytes by a table of exponentials."""
    operator = t.operator
    assert isinstance(operator, Softmax)
    source, result = t.input(), t.output()
    if operator.logarithm:
        raise NotWrittenError("it makes logarithms")
    width = source.shape[-1]
    rows = source.num_elements // width
    if t.types("int8", "float32") == "float32":
        places = t.rows_of(source, 4 * width), t.rows_to(result, 4 * width), 0, rows
        t.call("softmax_f32", width, number(float(operator.beta)), *places)
        return
    check_256ths(result)
    table = tables.exponentials(scale_of(source), operator.beta)
    layer = t.layer(
        "softmax_layer", width=width, least=len(table) - 1,
        exponentials=t.constant(table, "exponentials"),
    )  # fmt: skip
    t.call("softmax_s8", layer, t.rows_of(source, width), t.rows_to(result, width), 0, rows)
